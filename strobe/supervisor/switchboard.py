"""Routing: asks to the living, held for the starting, answered for the dead. Keeps which ask is in whose hands."""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from strobe.errors import Code, StrobeError
from strobe.runtime.envelope import Envelope, Header, Kind, monotonic_ms, pack
from strobe.runtime.greeting import Adopt
from strobe.runtime.log import Logger
from strobe.runtime.order import AskOrderError, check_order, role_of
from strobe.runtime.router import Router, Sent
from strobe.supervisor.process import Process, State
from strobe.supervisor.table import Table

HELD_MAX: Final = 256  # asks held per starting actor
IN_FLIGHT_MAX: Final = 16_384
QUARANTINE_DEATHS: Final = 2
LATE_MS: Final = 5_000  # after its deadline an ask in flight is forgotten

SELF: Final = ""  # identity of the supervisor's own asks


@dataclass(frozen=True, slots=True)
class InFlight:
    asker: str  # identity
    target: str  # identity
    ask: Envelope


class Switchboard:
    """`local` takes envelopes for the supervisor itself; `wake` starts an on-demand actor that is asked for."""

    def __init__(self, table: Table, router: Router, local: Callable[[Envelope], None], wake: Callable[[Process], None], log: Logger) -> None:
        self._table = table
        self._router = router
        self._local = local
        self._wake = wake
        self.log = log
        self.closed: str | None = None  # why no more asks are taken
        self._in_flight: dict[str, InFlight] = {}
        self._held: dict[str, deque[tuple[str, Envelope]]] = {}
        self._deadly: Counter[bytes] = Counter()

    async def route(self, identity: str, sender: str, envelope: Envelope) -> None:
        """An ask, reply, error from `sender`, or a notice to publish."""
        envelope = Envelope(envelope.to, sender, envelope.header, envelope.body)
        match envelope.header.kind:
            case Kind.ASK:
                await self._ask(identity, envelope)
            case Kind.REPLY | Kind.ERROR:
                await self._reply(identity, envelope)
            case Kind.NOTICE:
                self._local(envelope)
                await self.publish(envelope)
            case kind:
                self.log.warning("unexpected message dropped", kind=str(kind), sender=sender)

    async def publish(self, envelope: Envelope) -> None:
        for listener in self._table.listeners(envelope.header.type):
            if await self._router.send(listener, envelope) is Sent.GONE:
                self._table.clients.pop(listener, None)

    def has_held(self, process: Process) -> bool:
        return process.name in self._held

    async def ready(self, process: Process) -> None:
        """Delivers what was held for it."""
        for asker, envelope in self._held.pop(process.name, deque()):
            await self._deliver(asker, process, envelope)

    async def died(self, process: Process, how: str) -> None:
        """Answers every ask that was in the dead process's hands, and journals it."""
        mine = [entry for entry in self._in_flight.values() if entry.target == process.identity]
        for entry in mine:
            head = entry.ask.header
            self.log.warning("ask in hand at death", actor=process.name, type=head.type, id=head.id, cause=head.cause, sender=entry.ask.sender, how=how)
            del self._in_flight[head.id]
            text = f"{process.name} died while it worked on {head.type} ({how})."
            await self._fail(entry.asker, entry.ask, text, "Retry in a second: it is being restarted.")
        self._in_flight = {key: entry for key, entry in self._in_flight.items() if entry.asker != process.identity}

    def blame(self, process: Process) -> None:
        """The process crashed of itself: an ask that was in its hands twice at such an end is not given to it again."""
        for digest in {_digest(entry.ask) for entry in self._in_flight.values() if entry.target == process.identity}:  # several may ask the same: one death
            self._deadly[digest] += 1

    async def gave_up(self, process: Process) -> None:
        """No restart any more: answers what is held."""
        for asker, envelope in self._held.pop(process.name, deque()):
            await self._fail_state(asker, envelope, process)

    def expire(self) -> None:
        """Forgets asks whose deadline is past; their askers have told themselves."""
        now = monotonic_ms()
        self._in_flight = {key: entry for key, entry in self._in_flight.items() if not _late(entry.ask, now - LATE_MS)}
        for name, queue in list(self._held.items()):
            kept = deque(item for item in queue if not _late(item[1], now))
            if kept:
                self._held[name] = kept
            else:
                del self._held[name]

    async def _ask(self, asker: str, envelope: Envelope) -> None:
        try:
            check_order(envelope.sender, envelope.to)
        except AskOrderError as error:
            await self._error(asker, envelope, StrobeError(Code.VALIDATION_ERROR, f"{error}.", "Send a notice instead.", value=envelope.to))
            return
        if envelope.to == "supervisor":
            self._in_flight[envelope.header.id] = InFlight(asker, SELF, envelope)
            self._local(envelope)
            return
        if self.closed is not None and role_of(envelope.sender) == "ctl":
            await self._fail(asker, envelope, f"The node is ending ({self.closed}).", "Retry in a few seconds: the next call starts a new node.")
            return
        process = self._table.named(envelope.to)
        if process is None:
            await self._fail(asker, envelope, f"{envelope.to} does not run.", "See `strobe-ctl actors` for what does.")
        elif process.state in (State.READY, State.UNHEALTHY) or (asker == SELF and envelope.header.type == Adopt.TYPE):
            await self._deliver(asker, process, envelope)
        elif process.state is State.FAILED or (process.state is State.STOPPED and not _starts_when_asked(process)):
            await self._fail_state(asker, envelope, process)
        else:
            await self._hold(asker, process, envelope)

    async def _hold(self, asker: str, process: Process, envelope: Envelope) -> None:
        held = self._held.setdefault(process.name, deque())
        if len(held) >= HELD_MAX:
            await self._error(asker, envelope, _full(process.name, HELD_MAX))
            return
        held.append((asker, envelope))
        if process.state is State.STOPPED:
            self._wake(process)

    async def _deliver(self, asker: str, process: Process, envelope: Envelope) -> None:
        head = envelope.header
        if _late(envelope, monotonic_ms()):
            return  # its asker has given up by itself
        if self._deadly[_digest(envelope)] >= QUARANTINE_DEATHS:
            text = f"{process.name} died of this very {head.type} twice; it is not tried again."
            await self._fail(asker, envelope, text, f"The cause is in the log of {process.name}.")
            return
        if len(self._in_flight) >= IN_FLIGHT_MAX:
            await self._error(asker, envelope, _full("the supervisor", IN_FLIGHT_MAX))
            return
        sent = Sent.GONE if process.is_dead() else await self._router.send(process.identity, envelope)
        if sent is Sent.YES:
            self._in_flight[head.id] = InFlight(asker, process.identity, envelope)
        elif sent is Sent.FULL:
            await self._error(asker, envelope, _full(process.name, 1000))
        else:  # it has just died, and its watcher will say so in a moment
            await self._hold(asker, process, envelope)

    async def _reply(self, identity: str, envelope: Envelope) -> None:
        entry = self._in_flight.get(envelope.header.id)
        if entry is None or entry.target != identity:
            return  # too late, or from a former generation
        del self._in_flight[envelope.header.id]
        await self._to_asker(entry.asker, envelope)

    async def _to_asker(self, asker: str, envelope: Envelope) -> None:
        if asker == SELF:
            self._local(envelope)
            return
        if await self._router.send(asker, envelope) is not Sent.YES:
            self.log.info("answer not delivered", to=asker, type=envelope.header.type)

    async def _fail_state(self, asker: str, envelope: Envelope, process: Process) -> None:
        how = (process.last_error or "no error known").partition(" · ")[0]  # not the end of its stderr: that is for the log
        text = f"{process.name} is {process.state} after {process.restarts.total} deaths ({how})."
        rest_s = max(0.0, (process.rests_until or 0.0) - time.monotonic())
        again = f" It is tried again in {rest_s:.0f} s." if process.state is State.FAILED and rest_s else ""
        await self._fail(asker, envelope, text, f"See the log of {process.name}.{again} `strobe-ctl stop` and the next call start a new node.")

    async def _fail(self, asker: str, envelope: Envelope, what: str, next_step: str) -> None:
        await self._error(asker, envelope, StrobeError(Code.ACTOR_UNAVAILABLE, what, next_step, value=envelope.to))

    async def _error(self, asker: str, envelope: Envelope, error: StrobeError) -> None:
        self.log.info("ask refused", sender=envelope.sender, to=envelope.to, type=envelope.header.type, cause=envelope.header.cause, what=error.what)
        await self._to_asker(asker, envelope.answer(Kind.ERROR, pack(error.to_wire())))


def notice_envelope(notice_type: str, body: bytes, cause: str = "") -> Envelope:
    return Envelope("", "supervisor", Header("", Kind.NOTICE, notice_type, cause), body)


def _starts_when_asked(process: Process) -> bool:
    """Of one that is stopped: whether it is only not started yet, or started again by the next ask to it."""
    return process.role.on_demand or (process.role.late and not process.leaving)


def _late(envelope: Envelope, now_ms: int) -> bool:
    return bool(envelope.header.deadline_ms) and envelope.header.deadline_ms < now_ms


def _full(name: str, bound: int) -> StrobeError:
    return StrobeError(Code.LIMIT_EXCEEDED, f"{name} has {bound} asks waiting.", "Retry a little later.", value=name)


def _digest(envelope: Envelope) -> bytes:
    return hashlib.blake2b(f"{envelope.to}\0{envelope.header.type}\0".encode() + envelope.body, digest_size=16).digest()
