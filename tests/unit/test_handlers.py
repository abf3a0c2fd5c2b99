"""Which method takes which message, and who may ask whom."""

from __future__ import annotations

import graphlib
from typing import Any

import pytest

from strobe.protocol.base import Message
from strobe.protocol.session import Flush
from strobe.protocol.store import Drain, SessionChanged, StoreStatus
from strobe.protocol.supervisor import ActorGone
from strobe.runtime import Actor, Context, handles, on_notice
from strobe.runtime.order import MAY_ASK, AskOrderError, check_order, role_of


def test_handlers_are_collected_with_those_of_the_base() -> None:
    class One(Actor):
        role = "store"

        @handles(Drain, completes=True)
        async def drain(self, ask: Drain, context: Context) -> Any: ...

        @on_notice(ActorGone)
        async def gone(self, notice: ActorGone) -> None: ...

    assert {"store.drain", "actor.adopt"} <= set(One._handlers.asks)
    assert One._handlers.asks["store.drain"].completes
    assert set(One._handlers.notices) == {"notice.actor_gone"}


def test_two_handlers_for_one_message_are_refused() -> None:
    with pytest.raises(TypeError, match=r"store\.drain has two handlers, .*first.* and second"):

        class Twice(Actor):
            role = "store"

            @handles(Drain)
            async def first(self, ask: Drain, context: Context) -> Any: ...

            @handles(Drain)
            async def second(self, ask: Drain, context: Context) -> Any: ...


def test_override_takes_the_bases_place() -> None:
    class Base(Actor):
        role = "store"

        @handles(StoreStatus)
        async def status(self, ask: StoreStatus, context: Context) -> Any: ...

    class Override(Base):
        @handles(StoreStatus)
        async def status(self, ask: StoreStatus, context: Context) -> Any: ...

    assert Override._handlers.asks["store.status"].method == "status"


def test_message_without_a_reply_cannot_be_handled() -> None:
    with pytest.raises(TypeError, match="names no REPLY"):

        class Wrong(Actor):
            role = "store"

            @handles(SessionChanged)  # type: ignore[arg-type]
            async def changed(self, ask: Message, context: Context) -> Any: ...


def test_asks_go_down_only_so_nobody_can_wait_in_a_circle() -> None:
    order = list(graphlib.TopologicalSorter({role: set(below) for role, below in MAY_ASK.items()}).static_order())
    assert set(order) == set(MAY_ASK)


@pytest.mark.parametrize(
    ("sender", "to"),
    [
        ("gateway", "session:x"), ("session:x", "spawner:x"), ("session:x", "indexer"), ("session:x", "stuck_detector"), ("gateway", "supervisor"),
        ("ctl:1-2", "store"),
    ],
)  # fmt: skip
def test_allowed(sender: str, to: str) -> None:
    check_order(sender, to)


@pytest.mark.parametrize(
    ("sender", "to"),
    [
        ("store", "gateway"), ("session:x", "store"), ("session:x", "session:y"), ("spawner:x", "session:x"), ("indexer", "store"), ("gateway", "ctl:1-2"),
        ("x", "store"),
    ],
)  # fmt: skip
def test_refused(sender: str, to: str) -> None:
    with pytest.raises(AskOrderError, match=role_of(to)):
        check_order(sender, to)


def test_every_ask_of_the_protocol_has_an_answering_role() -> None:
    assert Flush.TYPE.partition(".")[0] in MAY_ASK
