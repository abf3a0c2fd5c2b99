"""Other capture plans for hooks whose thunks are in place: no Frida, a stop of about a millisecond, and no call goes unrecorded.

A thunk pushes its hook's address from a word of its own (agent/native/recorder.h). The recorder registers the new hooks in a call on a held thread;
then one aligned word a thunk is written, while the target runs: each call uses the old plan or the new one, whole.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import Final

from actors.session.ptrace.memory import Memory
from actors.session.ptrace.remote import NewPlan, Order, Remote, with_recorder
from strobe.errors import Code, StrobeError

PER_STOP: Final = 256
_WORDS: Final = struct.Struct("<2si2si2si")  # push [rip+…]; push [rip+…]; jmp [rip+…]: the words are hook, body, entry
_PUSH: Final = b"\xff\x35"
_JUMP: Final = b"\xff\x25"


def replan(pid: int, remote: int, plans: Sequence[NewPlan]) -> set[int]:
    """The ids of the hooks that are in use now; the recorder refused the others. Errors: TIMEOUT, PROCESS_EXITED, FRIDA_ATTACH_FAILED."""
    done: set[int] = set()
    with Memory(pid) as memory:
        for start in range(0, len(plans), PER_STOP):
            some = plans[start : start + PER_STOP]
            words = with_recorder(pid, memory, remote, partial(Remote.hooks, order=Order.REPLAN, plans=some))
            for plan, (hook, entry) in zip(some, words, strict=True):
                if hook:
                    _swap(memory, plan.thunk, hook, entry)
                    done.add(plan.hook)
    return done


def _swap(memory: Memory, thunk: int, hook: int, entry: int) -> None:
    """The entry point first: the one that saves vector registers (`entry`; 0: not needed) serves every plan, and a plan that needs it must not be
    there without it. It is never taken back: a call may be on its way from the old hook to it."""
    first, to_hook, second, _, jump, to_entry = _WORDS.unpack(memory.read(thunk, _WORDS.size))
    if (first, second, jump) != (_PUSH, _PUSH, _JUMP):
        raise StrobeError(Code.FRIDA_ATTACH_FAILED, f"There is no thunk at {thunk:#x}.", "Start the program anew.", value=hex(thunk))
    if entry:
        memory.write(thunk + 18 + to_entry, entry.to_bytes(8, "little"))
    memory.write(thunk + 6 + to_hook, hook.to_bytes(8, "little"))
