"""What the session has the recorder do in the target, by a call on a held thread (agent/native/recorder.h, strobe_remote)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from actors.session.ptrace.attempts import until_done
from actors.session.ptrace.call import CallFailed, call
from actors.session.ptrace.memory import Memory
from actors.session.ptrace.world import StoppedWorld
from strobe.errors import Code, StrobeError

_ITEM: Final = struct.Struct("<QIIQQQ")  # struct strobe_replan
T = TypeVar("T")


class Order(IntEnum):
    """STROBE_REMOTE_*."""

    DESK = 1
    REPLAN = 2
    SLAB = 3
    REGISTER = 4
    REBIND = 5
    ARM = 6


@dataclass(frozen=True, slots=True)
class NewPlan:
    """A hook to be: its id, the function's address, where its thunk is (0: it has none yet), and `ops` as Plan has them."""

    hook: int
    function: int
    thunk: int
    ops: bytes


@dataclass(frozen=True, slots=True)
class Remote:
    """The recorder in the held process `world`; `function` is the address of strobe_remote."""

    world: StoppedWorld
    memory: Memory
    function: int

    def ask(self, order: Order, first: int, second: int = 0) -> int:
        return call(self.world, self.memory, self.function, order, first, second)

    def hooks(self, order: Order, plans: Sequence[NewPlan]) -> list[tuple[int, int]]:
        """(hook, entry) of each: words for its thunk; hook 0: the recorder refused it. Errors: LIMIT_EXCEEDED."""
        desk = packed_plans(plans)
        address = self.ask(Order.DESK, len(desk))
        if not address:
            raise StrobeError(Code.LIMIT_EXCEEDED, f"Process {self.world.pid} has no memory for {len(desk):,} bytes of plans.", "Trace fewer functions.")
        self.memory.write(address, desk)
        self.ask(order, address, len(plans))
        return unpacked_plans(self.memory, address, len(plans))


def with_recorder(pid: int, memory: Memory, function: int, work: Callable[[Remote], T]) -> T:
    """`work` while the world stands still; again from the start where it could not be held. Errors: TIMEOUT, PROCESS_EXITED, FRIDA_ATTACH_FAILED."""
    results: list[T] = []

    def attempt() -> bool:
        with StoppedWorld(pid) as world:
            results.append(work(Remote(world, memory, function)))
        return True

    try:
        until_done(pid, attempt)
    except CallFailed as failure:
        raise StrobeError(Code.FRIDA_ATTACH_FAILED, f"The recorder in process {pid} did not answer: {failure}.", "Start the program anew.", value=pid) from None
    return results[-1]


def unpacked_plans(memory: Memory, address: int, count: int) -> list[tuple[int, int]]:
    """(hook, entry) of each, once the recorder has filled them in."""
    return [(hook, entry) for *_, hook, entry in _ITEM.iter_unpack(memory.read(address, _ITEM.size * count))]


def packed_plans(plans: Sequence[NewPlan]) -> bytes:
    """Of struct strobe_replan, then their plans."""
    items, bodies, at = bytearray(), bytearray(), _ITEM.size * len(plans)
    for plan in plans:
        items += _ITEM.pack(plan.function, plan.hook, len(plan.ops), at + len(bodies), 0, 0)
        bodies += plan.ops + bytes(-len(plan.ops) % 8)
    return bytes(items + bodies)
