"""A shim's memory of its client's talk: what is answered from the card, forwarded, replayed, and told when a gateway dies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from strobe.cli.conversation import CARD_AFTER_S, INVALID_REQUEST, UNAVAILABLE, VERSION_KEY, WAIT_S, WAITING_MAX, Conversation

CARD: dict[str, Any] = {
    "latest": "B",
    "initialize": {"A": {"protocolVersion": "A"}, "B": {"protocolVersion": "B"}},
    "discover": {"M": {"supportedVersions": ["M"]}},
    "tools": {"A": {"tools": ["a"]}, "B": {"tools": ["b"]}, "M": {"tools": ["m"]}},
}


def request(number: int | str, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def notification(method: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method}).encode()


def answer(number: int | str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {}}).encode()


def said(talk: Conversation) -> list[Any]:
    """What the client was told, and forgets it."""
    found = [json.loads(line) for line in talk.to_client]
    talk.to_client.clear()
    return found


def sent(talk: Conversation) -> list[bytes]:
    found = list(talk.to_gateway)
    talk.to_gateway.clear()
    return found


@pytest.fixture
def talk() -> Conversation:
    return Conversation(lambda: CARD)


INITIALIZE = request(1, "initialize", protocolVersion="A", clientInfo={"name": "editor"})
INITIALIZED = notification("notifications/initialized")


def open_talk(talk: Conversation) -> None:
    talk.gateway_up()
    talk.from_client(INITIALIZE, 0)
    talk.from_client(INITIALIZED, 0)
    talk.from_gateway(answer(1))
    said(talk)
    sent(talk)


@pytest.mark.parametrize(("asked", "given"), [("A", "A"), ("B", "B"), ("1999-01-01", "B")])
def test_initialize_is_answered_at_once(talk: Conversation, asked: str, given: str) -> None:
    talk.from_client(request("x", "initialize", protocolVersion=asked), 0)
    assert said(talk) == [{"jsonrpc": "2.0", "id": "x", "result": {"protocolVersion": given}}]


def test_initialize_without_a_version_is_an_error(talk: Conversation) -> None:
    talk.from_client(request(1, "initialize"), 0)
    assert said(talk)[0]["error"]["code"] == -32602


def test_gateway_hears_the_clients_own_opening_and_its_answer_is_dropped(talk: Conversation) -> None:
    talk.from_client(INITIALIZE, 0)
    talk.from_client(INITIALIZED, 0)
    said(talk)
    talk.gateway_up()
    assert sent(talk) == [INITIALIZE, INITIALIZED]
    talk.from_gateway(answer(1))
    assert said(talk) == []
    talk.from_client(request(1, "tools/call"), 0)
    talk.from_gateway(answer(1))
    assert [message["id"] for message in said(talk)] == [1], "only the duplicate is dropped"


def test_initialized_said_after_the_gateway_came_is_forwarded_once(talk: Conversation) -> None:
    talk.from_client(INITIALIZE, 0)
    talk.gateway_up()
    talk.from_client(INITIALIZED, 0)
    assert sent(talk) == [INITIALIZE, INITIALIZED]


def test_tools_list_waits_a_moment_then_comes_from_the_card(talk: Conversation) -> None:
    talk.from_client(INITIALIZE, 0)
    talk.from_client(request(2, "tools/list"), 10.0)
    said(talk)
    talk.tick(10.0 + CARD_AFTER_S / 2, None)
    assert said(talk) == []
    assert 0 < (talk.next_tick_s(10.0 + CARD_AFTER_S / 2) or 0) <= CARD_AFTER_S
    talk.tick(10.0 + 1.1 * CARD_AFTER_S, None)
    assert said(talk) == [{"jsonrpc": "2.0", "id": 2, "result": {"tools": ["a"]}}]
    talk.gateway_up()
    assert request(2, "tools/list") not in sent(talk), "answered already"


def test_modern_requests_carry_their_version(talk: Conversation) -> None:
    talk.from_client(request(1, "server/discover", _meta={VERSION_KEY: "M"}), 0)
    talk.from_client(request(2, "tools/list", _meta={VERSION_KEY: "M"}), 0)
    talk.from_client(request(3, "tools/list", _meta={VERSION_KEY: "Z"}), 0)
    talk.tick(1, None)
    assert [message["result"] for message in said(talk)] == [CARD["discover"]["M"], {"tools": ["m"]}]
    talk.gateway_up()
    assert [json.loads(line)["id"] for line in sent(talk)] == [3]


def test_ping_does_not_need_the_gateway(talk: Conversation) -> None:
    talk.from_client(INITIALIZE, 0)
    talk.from_client(request(2, "ping"), 0)
    talk.tick(1, None)
    assert said(talk)[-1] == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_calls_wait_for_the_gateway_in_order(talk: Conversation) -> None:
    lines = [request(n, "tools/call", name=str(n)) for n in range(5)] + [notification("notifications/roots/list_changed")]
    for line in lines:
        talk.from_client(line, 0)
    talk.gateway_up()
    assert sent(talk) == lines
    assert set(talk.in_flight) == {"0", "1", "2", "3", "4"}


def test_calls_that_waited_too_long_or_for_a_node_that_will_not_start_are_told(talk: Conversation) -> None:
    talk.from_client(request(1, "tools/call"), 0)
    talk.tick(WAIT_S - 1, None)
    assert said(talk) == []
    talk.tick(WAIT_S + 1, None)
    assert said(talk)[0]["error"]["code"] == UNAVAILABLE
    talk.from_client(request(2, "tools/call"), 0)
    talk.tick(1, "it ends at once (exit status 70)")
    (told,) = said(talk)
    assert told["id"] == 2 and "exit status 70" in told["error"]["message"]


def test_lost_gateway_is_told_for_each_request_in_flight_and_replayed_to_the_next(talk: Conversation) -> None:
    open_talk(talk)
    talk.from_client(request(2, "tools/call"), 0)
    talk.from_client(request("three", "tools/list"), 0)
    talk.from_gateway(answer(2))
    said(talk)
    sent(talk)
    talk.gateway_lost("ended")
    (told,) = said(talk)
    assert (told["id"], told["error"]["code"]) == ("three", UNAVAILABLE)
    assert "tools/list" in told["error"]["message"] and "try again" in told["error"]["message"]
    talk.from_client(request(4, "tools/call"), 0)
    talk.gateway_up()
    assert sent(talk) == [INITIALIZE, INITIALIZED, request(4, "tools/call")]
    talk.from_gateway(answer(1))
    assert said(talk) == []
    talk.from_gateway(answer(4))
    assert [message["id"] for message in said(talk)] == [4]


def test_gateway_that_dies_before_its_answer_to_the_replay_leaves_no_trap(talk: Conversation) -> None:
    open_talk(talk)
    for _ in range(3):
        talk.gateway_lost("ended")
        talk.gateway_up()
    talk.from_gateway(answer(1))
    assert said(talk) == []
    talk.from_client(request(1, "tools/call"), 0)
    talk.from_gateway(answer(1))
    assert len(said(talk)) == 1


def test_what_waits_is_bounded(talk: Conversation) -> None:
    for number in range(WAITING_MAX + 5):
        talk.from_client(request(number, "tools/call"), 0)
    assert [message["id"] for message in said(talk)] == list(range(WAITING_MAX, WAITING_MAX + 5))
    talk.gateway_up()
    assert len(sent(talk)) == WAITING_MAX


@pytest.mark.parametrize(("line", "code"), [(b"{", -32700), (b"[" * 5000, -32700), (b"\xff\xfe", -32700), (b"[]", -32600), (b"3", -32600)])
def test_what_is_no_message_is_answered(talk: Conversation, line: bytes, code: int) -> None:
    talk.from_client(line, 0)
    (told,) = said(talk)
    assert told["id"] is None and told["error"]["code"] == code


@pytest.mark.parametrize("number", [None, True, 1.5, [], {}, [[1]]])
def test_an_id_of_another_kind_is_refused(talk: Conversation, number: Any) -> None:
    """The gateway would answer without it, and its answer would be waited for."""
    open_talk(talk)
    talk.from_client(request(number, "ping"), 0)
    (told,) = said(talk)
    assert told["id"] is None and told["error"]["code"] == INVALID_REQUEST and not talk.owes_answers and not sent(talk)


def test_an_id_that_is_no_unicode_is_given_back_as_it_came(talk: Conversation) -> None:
    talk.from_client(request("\ud800", "initialize"), 0)
    assert said(talk)[0]["id"] == "\ud800"


def test_oversized_line_is_answered_with_its_id(talk: Conversation) -> None:
    talk.oversized(b'"a"', 40_000_000, 33_554_432)
    (told,) = said(talk)
    assert told["id"] == "a" and "40,000,000" in told["error"]["message"] and "33,554,432" in told["error"]["message"]


def test_gateways_own_messages_pass(talk: Conversation) -> None:
    open_talk(talk)
    talk.from_gateway(notification("notifications/progress"))
    talk.from_client(json.dumps({"jsonrpc": "2.0", "id": 99, "result": {}}).encode(), 0)
    assert said(talk) == [{"jsonrpc": "2.0", "method": "notifications/progress"}]
    assert len(sent(talk)) == 1 and not talk.in_flight


def test_what_has_no_answer_is_owed_until_it_has_one(talk: Conversation) -> None:
    talk.from_client(request(7, "tools/call", name="early"), 0)
    talk.from_client(notification("notifications/progress"), 0)
    assert talk.owes_answers
    talk.from_client(notification("notifications/initialized"), 0)
    talk.gateway_up()
    talk.from_client(request("eight", "tools/call", name="late"), 1)
    talk.from_gateway(answer(7))
    assert talk.owes_answers
    talk.from_gateway(answer("eight"))
    assert not talk.owes_answers


@pytest.mark.parametrize("connected", [False, True])
def test_what_is_cancelled_is_not_owed(talk: Conversation, connected: bool) -> None:
    if connected:
        talk.gateway_up()
    talk.from_client(request(7, "tools/call"), 0)
    cancel = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}).encode()
    talk.from_client(cancel, 0)
    assert not talk.owes_answers
    assert sent(talk) == ([request(7, "tools/call"), cancel] if connected else [])
    talk.gateway_lost("was restarted")
    assert said(talk) == []


def test_giving_up_answers_everything_once(talk: Conversation) -> None:
    talk.from_client(request(7, "tools/call"), 0)
    talk.from_client(notification("notifications/progress"), 0)
    talk.give_up("15 s after the end of stdin")
    talk.give_up("15 s after the end of stdin")
    talk.gateway_up()
    talk.from_client(request(8, "tools/call"), 0)
    talk.give_up("15 s after the end of stdin")
    answers = said(talk)
    assert [one["id"] for one in answers] == [7, 8] and all(one["error"]["code"] == UNAVAILABLE for one in answers)
    assert not talk.owes_answers
