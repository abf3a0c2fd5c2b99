"""The gates at which processes of the target wait for the session (agent/native/recorder_gates.c), as the session sees them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from actors.session.ptrace.remote import Order
from strobe import futex
from strobe.errors import Code, StrobeError
from strobe.lanes.layout import GATE_BYTES, GATES_OFFSET, GateReason, GateState
from strobe.lanes.machine import Machine
from strobe.lanes.pool import Pool

ORDER_S: Final = 2.0
THERE_S: Final = 1.0  # of a thread that is on its way to its wait, on a busy machine
THERE_PAUSE_S: Final = 0.0005
PAGE: Final = 4096
LOOK_S: Final = 0.020


class Left(StrobeError):
    """Who waited has gone on, or is gone."""

    def __init__(self, pid: int) -> None:
        super().__init__(Code.TIMEOUT, f"Process {pid} did not wait any longer.", "It runs on without hooks.", value=pid)


@dataclass(frozen=True, slots=True)
class Gate:
    """One wait of one thread. What it asks stands here as it was when it began."""

    pool: Pool
    machine: Machine
    index: int
    ticket: int
    pid: int
    tid: int
    reason: GateReason
    path: int
    folder: int
    remote: int

    @classmethod
    def look(cls, pool: Pool, machine: Machine, index: int) -> Gate | None:
        """None: nobody asks there."""
        row = pool.gates[index]
        if int(row["state"]) != GateState.ASKS:
            return None
        ticket, pid, tid = int(row["ticket"]), int(row["pid"]), int(row["tid"])
        return cls(pool, machine, index, ticket, pid, tid, GateReason(int(row["reason"])), int(row["path"]), int(row["folder"]), int(row["first"]))

    @property
    def state(self) -> GateState | None:
        """None: it is another's."""
        row = self.pool.gates[self.index]
        return GateState(int(row["state"])) if int(row["ticket"]) == self.ticket else None

    def is_there(self) -> bool:
        """Whether the thread of that number waits for just this gate: numbers are others in other pid namespaces (pid_namespaces(7))."""
        expected = (GATES_OFFSET + self.index * GATE_BYTES) % PAGE
        deadline = time.monotonic() + THERE_S
        while self.state is GateState.ASKS and time.monotonic() < deadline:
            try:
                words = Path(f"/proc/{self.pid}/task/{self.tid}/syscall").read_text().split()
            except OSError:
                return False
            if words[0] == str(futex.SYS_FUTEX) and int(words[1], 16) % PAGE == expected:
                return True
            time.sleep(THERE_PAUSE_S)
        return False

    def change(self, expected: GateState, wanted: GateState) -> bool:
        if self.state != expected:
            return False
        word = self.pool.gate_word(self.index, "state")
        if self.machine.swap(word, expected, wanted) != expected:
            return False
        futex.wake(word)
        return True

    def let_go(self) -> bool:
        """False: it had gone on already."""
        return any(self.change(state, GateState.GO) for state in (GateState.ASKS, GateState.HELD, GateState.DONE))

    def hold(self) -> None:
        """It stays where it is while its code is changed. Errors: Left."""
        if not any(self.change(state, GateState.HELD) for state in (GateState.ASKS, GateState.DONE)):
            raise Left(self.pid)

    def order(self, order: Order, first: int = 0, second: int = 0) -> int:
        """What strobe_remote answers there. Blocks. Errors: Left."""
        row = self.pool.gates[self.index]
        before = self.state
        if before not in (GateState.ASKS, GateState.DONE, GateState.HELD):
            raise Left(self.pid)
        row["order"], row["first"], row["second"] = int(order), first, second
        if not self.change(before, GateState.ORDER):
            raise Left(self.pid)
        deadline = time.monotonic() + ORDER_S
        while (state := self.state) is GateState.ORDER and time.monotonic() < deadline:
            futex.wait(self.pool.gate_word(self.index, "state"), GateState.ORDER, LOOK_S)
        if state is not GateState.DONE:
            raise Left(self.pid)
        return int(row["answer"])
