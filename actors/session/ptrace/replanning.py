"""Other capture plans for hooks whose thunks are in place: no Frida, a stop of about a millisecond, and no call goes unrecorded.

A thunk pushes its hook's address from a word of its own (agent/native/recorder.h). The recorder registers the new hooks in a call on a held thread;
then one aligned word a thunk is written, while the target runs: each call uses the old plan or the new one, whole.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from actors.session.ptrace.attempts import until_done
from actors.session.ptrace.call import CallFailed, call
from actors.session.ptrace.memory import Memory
from actors.session.ptrace.world import StoppedWorld
from strobe.errors import Code, StrobeError

DESK: Final = 1  # recorder.h: STROBE_REMOTE_*
REPLAN: Final = 2
PER_STOP: Final = 256
_ITEM: Final = struct.Struct("<QIIQQQ")  # struct strobe_replan
_WORDS: Final = struct.Struct("<2si2si2si")  # push [rip+…]; push [rip+…]; jmp [rip+…]: the words are hook, body, entry
_PUSH: Final = b"\xff\x35"
_JUMP: Final = b"\xff\x25"


@dataclass(frozen=True, slots=True)
class NewPlan:
    """`ops` as Plan has them."""

    hook: int
    function: int
    thunk: int
    ops: bytes


def replan(pid: int, remote: int, plans: Sequence[NewPlan]) -> set[int]:
    """The ids of the hooks that are in use now; the recorder refused the others. Errors: TIMEOUT, PROCESS_EXITED, FRIDA_ATTACH_FAILED."""
    done: set[int] = set()
    with Memory(pid) as memory:
        for start in range(0, len(plans), PER_STOP):
            done |= _replan(pid, remote, plans[start : start + PER_STOP], memory)
    return done


def _replan(pid: int, remote: int, plans: Sequence[NewPlan], memory: Memory) -> set[int]:
    desk = _pack(plans)
    answer = bytearray()

    def attempt() -> bool:
        with StoppedWorld(pid) as world:
            address = call(world, memory, remote, DESK, len(desk))
            if not address:
                raise StrobeError(Code.LIMIT_EXCEEDED, f"Process {pid} has no memory for {len(desk):,} bytes of plans.", "Trace fewer functions.")
            memory.write(address, desk)
            call(world, memory, remote, REPLAN, address, len(plans))
            answer[:] = memory.read(address, _ITEM.size * len(plans))
        return True

    try:
        until_done(pid, attempt)
    except CallFailed as failure:
        raise StrobeError(Code.FRIDA_ATTACH_FAILED, f"The recorder in process {pid} did not answer: {failure}.", "Start the program anew.", value=pid) from None
    done = set()
    for plan, (_, _, _, _, hook, entry) in zip(plans, _ITEM.iter_unpack(answer), strict=True):
        if hook:
            _swap(memory, plan.thunk, hook, entry)
            done.add(plan.hook)
    return done


def _pack(plans: Sequence[NewPlan]) -> bytes:
    items, bodies, at = b"", b"", _ITEM.size * len(plans)
    for plan in plans:
        items += _ITEM.pack(plan.function, plan.hook, len(plan.ops), at + len(bodies), 0, 0)
        bodies += plan.ops + bytes(-len(plan.ops) % 8)
    return items + bodies


def _swap(memory: Memory, thunk: int, hook: int, entry: int) -> None:
    """The entry point first: the one that saves vector registers (`entry`; 0: not needed) serves every plan, and a plan that needs it must not be
    there without it. It is never taken back: a call may be on its way from the old hook to it."""
    first, to_hook, second, _, jump, to_entry = _WORDS.unpack(memory.read(thunk, _WORDS.size))
    if (first, second, jump) != (_PUSH, _PUSH, _JUMP):
        raise StrobeError(Code.FRIDA_ATTACH_FAILED, f"There is no thunk at {thunk:#x}.", "Start the program anew.", value=hex(thunk))
    if entry:
        memory.write(thunk + 18 + to_entry, entry.to_bytes(8, "little"))
    memory.write(thunk + 6 + to_hook, hook.to_bytes(8, "little"))
