"""The control bus's frames, both ways and broken."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.errors import Code, StrobeError
from strobe.protocol.indexer import Unwind
from strobe.protocol.session import Input
from strobe.protocol.store import Pending
from strobe.runtime.context import Context
from strobe.runtime.envelope import PROTO, Envelope, EnvelopeError, Header, Kind, monotonic_ms, pack, pack_model, parse, unpack, unpack_model

HEADER = Header("a~1.7", Kind.ASK, "store.pending", "request-1", 12_345)


@given(st.text(), st.text(), st.text(), st.sampled_from(Kind), st.text(), st.integers(0, 2**62), st.binary())
def test_every_envelope_survives_the_wire(to: str, sender: str, cause: str, kind: Kind, message_type: str, deadline_ms: int, body: bytes) -> None:
    envelope = Envelope(to, sender, Header("id", kind, message_type, cause, deadline_ms), body)
    assert parse(envelope.frames()) == envelope


def test_header_is_what_the_design_names() -> None:
    packed = Envelope("store", "gateway", HEADER).frames()[2]
    assert unpack(packed) == {"proto": PROTO, "id": "a~1.7", "cause": "request-1", "kind": "ask", "type": "store.pending", "deadline_ms": 12_345}


@given(st.lists(st.binary(), max_size=6))
def test_noise_is_refused_and_never_more_than_refused(frames: list[bytes]) -> None:
    with pytest.raises(EnvelopeError):
        parse(frames)


@pytest.mark.parametrize(
    "change",
    [{"proto": PROTO + 1}, {"proto": [[]]}, {"kind": "shout"}, {"deadline_ms": "soon"}, {"deadline_ms": math.inf}, {"deadline_ms": -1}, {"id": None}],
)
def test_other_protocols_and_kinds_are_refused(change: dict[str, object]) -> None:
    head = {"proto": PROTO, "id": "1", "cause": "", "kind": "ask", "type": "t", "deadline_ms": 0} | change
    with pytest.raises(EnvelopeError):
        parse([b"a", b"b", pack(head), b""])


def test_names_that_are_not_utf8_are_refused() -> None:
    frames = Envelope("store", "gateway", HEADER).frames()
    with pytest.raises(EnvelopeError):
        parse([b"\xff", *frames[1:]])


def test_answer_goes_back_with_the_same_id_and_cause() -> None:
    answer = Envelope("store", "gateway", HEADER, b"x").answer(Kind.REPLY, b"y")
    assert (answer.to, answer.sender, answer.body) == ("gateway", "store", b"y")
    assert (answer.header.id, answer.header.cause, answer.header.kind) == (HEADER.id, HEADER.cause, Kind.REPLY)


def test_models_keep_bytes_and_integer_keys() -> None:
    ask = Unwind(modules=[], regs={7: 2**64 - 1}, stack_base=2**63, stack=b"\x00\xff")
    assert unpack_model(Unwind, pack_model(ask)) == ask
    assert unpack_model(Input, pack_model(Input(data=b"\x80"))).data == b"\x80"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"clientId": 1}, "clientId"),
        ({"clientId": "c", "chang": {}}, "chang"),
        ({}, "clientId"),
        ({"clientId": "c", "change": {"add": ["x", 3]}}, "change.add.1"),
        ([], "(all)"),
    ],
)
def test_bad_body_names_its_field(body: object, field: str) -> None:
    with pytest.raises(StrobeError) as caught:
        unpack_model(Pending, pack(body))
    assert caught.value.code is Code.VALIDATION_ERROR
    assert caught.value.value["field"] == field and field in caught.value.what


@given(st.binary(max_size=64))
def test_body_of_noise_is_a_validation_error_or_a_model(body: bytes) -> None:
    try:
        unpack_model(Pending, body)
    except StrobeError as error:
        assert error.code is Code.VALIDATION_ERROR


def test_context_counts_the_deadline_down_and_never_below_nothing() -> None:
    late = Context.of(Envelope("a", "b", Header("i", Kind.ASK, "t", "c", monotonic_ms() - 1000)))
    assert late.deadline_s == 0
    soon = Context.of(Envelope("a", "b", Header("i", Kind.ASK, "t", "c", monotonic_ms() + 1000)))
    assert 0 < soon.deadline_s <= 1
    assert Context.of(Envelope("a", "b", Header("i", Kind.ASK))).deadline_s == float("inf")
