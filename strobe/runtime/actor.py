"""One process of Strobe: a name, handlers, a life from `starting` to `stopping`."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from strobe import __version__
from strobe.errors import Code, StrobeError
from strobe.protocol.base import Ask, Done, Message
from strobe.runtime.asks import Asks
from strobe.runtime.bus import Bus
from strobe.runtime.context import Context, current_cause
from strobe.runtime.dispatch import Dispatcher
from strobe.runtime.envelope import Envelope, Header, Kind, pack_model, unpack, unpack_model
from strobe.runtime.greeting import Adopt, Greeting, Hello
from strobe.runtime.handlers import Handlers, collect, handles
from strobe.runtime.log import Logger, RotatingFile, log_name

SUPERVISOR_DIED: Final = "The supervisor died."
# They wait for a successor: what must not be lost, what takes long to make anew, and the gateway, which starts one.
OUTLIVE_SUPERVISOR: Final = frozenset({"store", "session", "spawner", "indexer", "stuck_detector", "gateway"})
OUTLIVE_S: Final = 10.0
GREETING_S: Final = 10.0
STOPPING_S: Final = 20.0
EX_SOFTWARE: Final = 70


@dataclass(frozen=True, slots=True)
class Seat:
    """Who this process is, from its command line and environment."""

    name: str
    identity: str
    generation: int
    home: Path
    bus: str
    supervisor_pid: int
    fell: bool  # the process of this name before it died by itself


class Actor:
    """Base of every actor. See strobe/runtime/__init__.py for how one is written."""

    role: ClassVar[str]
    _handlers: ClassVar[Handlers]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._handlers = collect(cls)

    def __init__(self, seat: Seat, log: Logger, log_file: RotatingFile) -> None:
        self.seat = seat
        self.name = seat.name
        self.session_id: str | None = None
        self.log = log
        self.loop = asyncio.get_running_loop()
        self._log_file = log_file
        self._bus = Bus(seat.bus, seat.identity, self._receive, log)
        self._asks = Asks(self._bus.send, seat.identity)
        self._dispatcher = Dispatcher(self, self._handlers, self._bus.send, self.crash, log)
        self._orphan: asyncio.Task[None] | None = None
        self._ready = False
        self._greeted: asyncio.Future[Greeting] = self.loop.create_future()
        self._end: asyncio.Future[tuple[int, str]] = self.loop.create_future()

    # What an actor overrides

    async def starting(self) -> None:
        """Open files and sockets, import what is heavy. READY is sent when this returns."""

    async def adopted(self, session_id: str, recovering: bool) -> None:
        """This process belongs to `session_id` from now on. `recovering`: another process of that session died before."""

    def orphaned(self) -> None:
        """The supervisor died; `resumed` follows, or the end."""

    async def resumed(self) -> None:
        """A new supervisor took over; notices sent to the old one just before may be lost, so send again what still matters."""

    async def stopping(self, reason: str) -> None:
        """Put everything in order; the process ends when this returns, or after 20 s."""

    # What an actor uses

    async def ask(self, to: str, message: Ask, *, deadline_s: float = 5.0, cause: str | None = None) -> Any:
        """`message.REPLY`. Raises StrobeError (the other's, TIMEOUT, ACTOR_UNAVAILABLE). `cause` defaults to the one being handled."""
        if self._orphan is not None and not self._orphan.done():  # a successor knows us only once it has greeted us
            began = self.loop.time()
            await asyncio.wait([self._orphan], timeout=deadline_s)
            deadline_s -= self.loop.time() - began
        return await self._asks.ask(self.name, to, message, deadline_s, cause or current_cause.get())

    def ask_from_thread(self, to: str, message: Ask, *, deadline_s: float = 5.0, cause: str = "") -> Any:
        """The same, for a data thread; it blocks."""
        return asyncio.run_coroutine_threadsafe(self.ask(to, message, deadline_s=deadline_s, cause=cause), self.loop).result()

    def notice(self, message: Message, *, cause: str | None = None) -> None:
        """Tells the supervisor, who tells whoever listens. From any thread."""
        header = Header("", Kind.NOTICE, message.TYPE, cause or current_cause.get())
        envelope = Envelope("supervisor", self.name, header, pack_model(message))
        self.loop.call_soon_threadsafe(self._bus.send, envelope)

    def crash(self, error: BaseException) -> None:
        """Ends this process with exit status 70; the supervisor restarts it. From any thread: data threads call it with what killed them."""
        self.log.error("actor ends", error=repr(error), exc_info=error)
        if self._in_loop():
            self._give_up(repr(error))
        else:
            self.loop.call_soon_threadsafe(self._give_up, repr(error))

    def _in_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def _give_up(self, reason: str) -> None:
        """BYE goes before anything else: from here on the supervisor keeps asks for this actor's successor."""
        if not self._end.done():
            self._bus.send(Envelope("supervisor", self.name, Header("", Kind.BYE)))
        self._finish(EX_SOFTWARE, reason)

    # Life

    async def live(self) -> int:
        """From HELLO to exit status."""
        self.loop.add_signal_handler(signal.SIGTERM, self._finish, 0, "SIGTERM")
        self._bus.start()
        try:
            self._watch_supervisor(await self._greet(GREETING_S))
            await self._start()
            status, reason = await self._end
            await self._stop(status, reason)
        finally:
            await self._bus.close()
        return status

    async def _start(self) -> None:
        """READY when `starting()` has returned; a BYE before that cuts it short."""
        start = self.loop.create_task(self.starting())
        self._end.add_done_callback(lambda _: start.cancel())
        try:
            await start
        except asyncio.CancelledError:
            if not self._end.done():
                raise
            return
        gc.freeze()  # modules and models live as long as the process: looking through them again and again took 50 ms each time
        self._ready = True
        self._send_hello()
        self.log.info("ready", pid=os.getpid(), generation=self.seat.generation)

    async def _stop(self, status: int, reason: str) -> None:
        self.log.info("stopping", reason=reason, status=status)
        if status == 0 and self._ready:
            try:
                async with asyncio.timeout(STOPPING_S):
                    await self._dispatcher.drain(STOPPING_S / 2)
                    await self.stopping(reason)
            except TimeoutError:
                self.log.error("stopping() took longer than its bound", bound_s=STOPPING_S)

    def _finish(self, status: int, reason: str) -> None:
        if not self._end.done():
            self._end.set_result((status, reason))

    async def _greet(self, bound_s: float) -> Greeting:
        """Says HELLO until a supervisor answers. Raises TimeoutError."""
        async with asyncio.timeout(bound_s):
            while True:
                self._send_hello()
                done, _ = await asyncio.wait([self._greeted], timeout=0.25)
                if done:
                    break
        greeting = self._greeted.result()
        if not greeting.accepted:
            self.log.error("not accepted by the supervisor", reason=greeting.reason)
            self._finish(0, greeting.reason)
        return greeting

    def _send_hello(self) -> None:
        hello = Hello(
            name=self.name, role=self.role, pid=os.getpid(), generation=self.seat.generation, version=__version__, home=str(self.seat.home),
            ready=self._ready, notices=sorted(self._handlers.notices), session_id=self.session_id,
        )  # fmt: skip
        self._bus.send(Envelope("supervisor", self.name, Header("", Kind.HELLO), pack_model(hello)))

    def _receive(self, envelope: Envelope) -> None:
        match envelope.header.kind:
            case Kind.PING:
                self._bus.send(envelope.answer(Kind.PONG, b""))
            case Kind.REPLY | Kind.ERROR:
                self._asks.settle(envelope)
            case Kind.ASK | Kind.NOTICE:
                self._dispatcher.take(envelope)
            case Kind.BYE:
                self._finish(0, str(unpack(envelope.body)["reason"]))
            case Kind.HELLO if not self._greeted.done():
                self._greeted.set_result(unpack_model(Greeting, envelope.body))

    # The supervisor's death

    def _watch_supervisor(self, greeting: Greeting) -> None:
        try:
            self._supervisor_fd = os.pidfd_open(greeting.supervisor_pid)
        except ProcessLookupError:
            self._supervisor_gone()
            return
        self.loop.add_reader(self._supervisor_fd, self._supervisor_died)

    def _supervisor_died(self) -> None:
        self.loop.remove_reader(self._supervisor_fd)
        os.close(self._supervisor_fd)
        self._supervisor_gone()

    def _supervisor_gone(self) -> None:
        self._asks.fail_all(StrobeError(Code.ACTOR_UNAVAILABLE, SUPERVISOR_DIED, "Retry: the next call starts a new node."))
        if self.role in OUTLIVE_SUPERVISOR and self._ready and not self._end.done():
            self.orphaned()
            self._orphan = self.loop.create_task(self._await_successor())
        else:
            self._finish(0, "the supervisor died")

    async def _await_successor(self) -> None:
        self.log.warning("supervisor died; waiting for its successor", bound_s=OUTLIVE_S)
        self._greeted = self.loop.create_future()
        try:
            await self._bus.reconnect()
            greeting = await self._greet(OUTLIVE_S)
        except TimeoutError:
            self._finish(0, f"no supervisor for {OUTLIVE_S:g} s")
            return
        self._watch_supervisor(greeting)
        if greeting.accepted:
            self.log.info("greeted by a new supervisor", pid=greeting.supervisor_pid)
            await self.resumed()

    @handles(Adopt, completes=True)
    async def _adopt(self, ask: Adopt, _: Context) -> Done:
        self.name, self.session_id = ask.name, ask.session_id
        self._log_file.move_to(self._log_file.path.with_name(f"{log_name(ask.name)}.jsonl"))
        self.log.info("adopted", name=ask.name, recovering=ask.recovering)
        await self.adopted(ask.session_id, ask.recovering)
        return Done()
