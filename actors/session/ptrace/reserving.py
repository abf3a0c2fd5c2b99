"""What thunks need of the target before they can be worked out apart from it: memory near the functions, and hooks that are registered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from actors.session.ptrace.memory import Memory
from actors.session.ptrace.remote import NewPlan, Order, Remote, with_recorder
from strobe.protocol.spawner import GROUP_SPAN, OWN_BYTES, THUNK_BYTES_MAX, Slab

PER_STOP: Final = 2048


def reserve(pid: int, remote: int, plans: Sequence[NewPlan], others: Sequence[int] = ()) -> tuple[list[Slab], list[tuple[int, int]]]:
    """Slabs for the thunks of `plans`, and of the recorder's own hooks near those and near `others`; the words of each thunk (0: the recorder refused
    that hook). A slab of 0 bytes: there is no free memory within reach. Errors: TIMEOUT, PROCESS_EXITED, FRIDA_ATTACH_FAILED, LIMIT_EXCEEDED."""
    asked = groups([plan.function for plan in plans], others)
    words: list[tuple[int, int]] = []
    slabs: list[Slab] = []

    def first(recorder: Remote) -> list[Slab]:
        given = [(recorder.ask(Order.SLAB, near, size), size) for near, size in asked]
        return [Slab(address=address, bytes=size if address else 0) for address, size in given]

    with Memory(pid) as memory:
        slabs = with_recorder(pid, memory, remote, first)
        for start in range(0, len(plans), PER_STOP):
            some = plans[start : start + PER_STOP]
            words += with_recorder(pid, memory, remote, partial(Remote.hooks, order=Order.REGISTER, plans=some))
    return slabs, words


def groups(functions: Sequence[int], others: Sequence[int]) -> list[tuple[int, int]]:
    """(address in the middle, bytes) of the slabs to ask for."""
    counted = sorted([(address, THUNK_BYTES_MAX) for address in functions] + [(address, 0) for address in others])
    found: list[tuple[int, int]] = []
    first = 0
    for at in range(1, len(counted) + 1):
        if at == len(counted) or counted[at][0] - counted[first][0] >= GROUP_SPAN:
            middle = (counted[first][0] + counted[at - 1][0]) // 2
            found.append((middle, sum(size for _, size in counted[first:at]) + OWN_BYTES))
            first = at
    return found
