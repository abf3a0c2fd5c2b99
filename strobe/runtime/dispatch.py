"""Runs handlers: one task per message, bounded, under the asker's deadline; turns what they raise into error replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import structlog

from strobe.errors import Code, StrobeError
from strobe.protocol.base import Ask, Reply
from strobe.runtime.asks import timeout_error
from strobe.runtime.context import Context, current_cause
from strobe.runtime.envelope import Envelope, Kind, pack, pack_model, unpack_model
from strobe.runtime.handlers import Handler, Handlers
from strobe.runtime.log import Logger

RUNNING_MAX: Final = 64
WAITING_MAX: Final = 1024


class Dispatcher:
    """`owner`'s handlers. `send` takes replies; `crash` is told of an exception no handler should have let out."""

    def __init__(self, owner: object, handlers: Handlers, send: Callable[[Envelope], None], crash: Callable[[BaseException], None], log: Logger) -> None:
        self._owner = owner
        self._handlers = handlers
        self._send = send
        self._crash = crash
        self.log = log
        self._slots = asyncio.Semaphore(RUNNING_MAX)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> int:
        return len(self._tasks)

    def take(self, envelope: Envelope) -> None:
        """Starts the handler of an ask or a notice."""
        if len(self._tasks) >= RUNNING_MAX + WAITING_MAX:
            text = f"{envelope.to} has {WAITING_MAX} asks waiting."
            self._refuse(envelope, StrobeError(Code.LIMIT_EXCEEDED, text, "Retry a little later.", value=envelope.to))
            return
        work = self._answer(envelope) if envelope.header.kind is Kind.ASK else self._hear(envelope)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, bound_s: float) -> None:
        """Waits for handlers in hand, then cancels the rest."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=bound_s)
            for task in late:
                task.cancel()

    async def _answer(self, envelope: Envelope) -> None:
        context = Context.of(envelope)
        current_cause.set(context.cause)
        with structlog.contextvars.bound_contextvars(cause=context.cause):
            try:
                reply = await self._run(envelope, context)
                self._send(envelope.answer(Kind.REPLY, pack_model(reply)))
            except StrobeError as error:
                self._refuse(envelope, error)
            except Exception as error:
                self.log.exception("handler failed", type=envelope.header.type, sender=envelope.sender)
                self._crash(error)
                self._refuse(envelope, _died(envelope, error))

    async def _run(self, envelope: Envelope, context: Context) -> Reply:
        handler = self._handlers.asks.get(envelope.header.type)
        if handler is None:
            asked = envelope.header.type
            raise StrobeError(Code.VALIDATION_ERROR, f"{envelope.to} does not answer {asked!r}.", "Are both sides of one version?", value=asked)
        ask = unpack_model(handler.message, envelope.body)
        async with self._slots:
            if context.deadline_s <= 0:
                raise timeout_error(envelope.to, envelope.header.type, 0)
            return await self._under_deadline(handler, ask, context, envelope)

    async def _under_deadline(self, handler: Handler, ask: Ask, context: Context, envelope: Envelope) -> Reply:
        method: Callable[[Ask, Context], Any] = getattr(self._owner, handler.method)
        left_s = None if handler.completes or not context.deadline_ms else context.deadline_s
        limit = asyncio.timeout(left_s)
        try:
            async with limit:
                reply = await method(ask, context)
        except TimeoutError:
            if not limit.expired():
                raise
            raise timeout_error(envelope.to, envelope.header.type, left_s or 0) from None
        if not isinstance(reply, handler.message.REPLY):
            raise TypeError(f"{handler.method} returned {type(reply).__name__}, not {handler.message.REPLY.__name__}")
        return reply

    async def _hear(self, envelope: Envelope) -> None:
        found = self._handlers.notices.get(envelope.header.type)
        if found is None:
            return
        current_cause.set(envelope.header.cause)
        with structlog.contextvars.bound_contextvars(cause=envelope.header.cause):
            try:
                notice = unpack_model(found[1], envelope.body)
            except StrobeError as error:
                self.log.error("unreadable notice", type=envelope.header.type, sender=envelope.sender, error=str(error))
                return
            try:
                async with self._slots:
                    await getattr(self._owner, found[0])(notice)
            except Exception as error:
                self.log.exception("notice handler failed", type=envelope.header.type)
                self._crash(error)

    def _refuse(self, envelope: Envelope, error: StrobeError) -> None:
        self.log.info("error reply", type=envelope.header.type, code=str(error.code), what=error.what)
        if envelope.header.kind is Kind.ASK:
            self._send(envelope.answer(Kind.ERROR, pack(error.to_wire())))


def _died(envelope: Envelope, error: Exception) -> StrobeError:
    text = f"{envelope.to} failed on {envelope.header.type} ({type(error).__name__}) and is being restarted."
    return StrobeError(Code.ACTOR_UNAVAILABLE, text, "Retry in a second; the cause is in its log.", value=envelope.to)
