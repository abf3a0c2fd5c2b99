"""Asks that were sent and wait for their answer."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Final

from strobe.errors import Code, StrobeError
from strobe.protocol.base import Ask, Reply
from strobe.runtime.envelope import Envelope, Header, Kind, monotonic_ms, pack_model, unpack, unpack_model
from strobe.runtime.order import check_order

PENDING_MAX: Final = 4096
DEADLINE_MAX_S: Final = 3600.0


class Asks:
    """One asker's open questions. `send` hands an envelope to the bus; `settle` takes what comes back."""

    def __init__(self, send: Callable[[Envelope], None], identity: str) -> None:
        self._send = send
        self._identity = identity
        self._ids = itertools.count(1)
        self._pending: dict[str, tuple[Ask, asyncio.Future[Any]]] = {}

    async def ask(self, sender: str, to: str, message: Ask, deadline_s: float, cause: str) -> Reply:
        """The reply. Raises StrobeError: what the other side answered, TIMEOUT, ACTOR_UNAVAILABLE; AskOrderError."""
        check_order(sender, to)
        if len(self._pending) >= PENDING_MAX:
            raise StrobeError(Code.LIMIT_EXCEEDED, f"{sender} already waits for {PENDING_MAX} answers.", "Retry when some have arrived.")
        deadline_s = min(deadline_s, DEADLINE_MAX_S)
        ask_id = f"{self._identity}.{next(self._ids)}"
        header = Header(ask_id, Kind.ASK, message.TYPE, cause or ask_id, monotonic_ms() + max(1, int(deadline_s * 1000)))
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[ask_id] = (message, future)
        try:
            self._send(Envelope(to, sender, header, pack_model(message)))
            async with asyncio.timeout(deadline_s):
                reply: Reply = await future
                return reply
        except TimeoutError:
            raise timeout_error(to, message.TYPE, deadline_s) from None
        finally:
            del self._pending[ask_id]

    def settle(self, envelope: Envelope) -> None:
        """A reply or error arrived. One that nobody waits for any more (its ask timed out) is dropped."""
        message, future = self._pending.get(envelope.header.id, (None, None))
        if message is None or future is None or future.done():
            return
        try:
            if envelope.header.kind is Kind.ERROR:
                future.set_exception(StrobeError.from_wire(unpack(envelope.body)))
            else:
                future.set_result(unpack_model(message.REPLY, envelope.body))
        except (StrobeError, KeyError, ValueError, TypeError) as error:
            future.set_exception(error)

    def fail_all(self, error: StrobeError) -> None:
        """The bus is gone: whoever waits is told now instead of at the deadline."""
        for _, future in self._pending.values():
            if not future.done():
                future.set_exception(error)


def timeout_error(to: str, message_type: str, deadline_s: float) -> StrobeError:
    text = f"{to} did not answer {message_type} within {deadline_s:g} s."
    return StrobeError(Code.TIMEOUT, text, f"Retry; if it stays so, see `strobe-ctl actors` and the log of {to}.", value=to)
