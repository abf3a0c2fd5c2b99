"""From samples to a verdict with names, places and stacks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from actors.stuck_detector.graph import is_untimed
from actors.stuck_detector.loops import Loops
from actors.stuck_detector.naming import name_of
from actors.stuck_detector.sample import Thread, Tree, take, tree
from actors.stuck_detector.stacks import Asker, Stacks
from actors.stuck_detector.verdict import BUSY_LEAST, Known, judge
from actors.stuck_detector.waits import with_waits
from strobe.errors import StrobeError
from strobe.model.stuck import ThreadStack, Verdict
from strobe.protocol.indexer import Demangle, NamesReply
from strobe.protocol.stuck_detector import DiagnoseReply

WINDOW_S: Final = 0.25
DEMANGLE_S: Final = 2.0
LOOP_LOOKS: Final = 5  # windows, while something computes


def sample(root: int) -> Tree:
    """Errors: PROCESS_EXITED."""
    return with_waits(take(tree(root)))


@dataclass
class Told:
    verdict: Verdict
    stacks: list[ThreadStack] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Diagnosis:
    def __init__(self, ask: Asker) -> None:
        self._ask = ask

    async def of(self, root: int, with_stacks: bool) -> DiagnoseReply:
        """At most about 2 s: two samples; more of a tree that computes."""
        loops = Loops()
        first = await asyncio.to_thread(sample, root)
        for _ in range(LOOP_LOOKS):
            await asyncio.sleep(WINDOW_S)
            second = await asyncio.to_thread(sample, root)
            share = _share(first, second)
            if share < BUSY_LEAST:
                break
            await asyncio.to_thread(loops.look, first, second)
            last, first = first, second
        else:
            first = last
        share = _share(first, second)
        told = await self.tell(first, second, loops, with_stacks)
        idle_ms = 0 if first.cpu != second.cpu else round((second.at - first.at) * 1000)
        return DiagnoseReply(
            threads=[thread.to_wire() for thread in second.threads], cpu_share=share, idle_ms=idle_ms, verdict=told.verdict, stacks=told.stacks,
            notes=told.notes,
        )  # fmt: skip

    async def tell(self, first: Tree, second: Tree, loops: Loops, with_stacks: bool = True) -> Told:
        verdict = judge(first, second, Known(loops=loops.found()))
        if not with_stacks or verdict.kind == "paused":  # one held by a tracer is that tracer's to look at
            return Told(verdict)
        order = {node.tid: number for number, node in enumerate(verdict.nodes)}
        threads = sorted((one for one in second.threads if one.state not in "ZXtT"), key=lambda one: (order.get(one.tid, len(order)), one.tid))
        stacks = Stacks(self._ask)
        await stacks.of(threads, {pid: process.runtime for pid, process in second.processes.items()})
        places = stacks.places()
        pids = {thread.tid: thread.pid for thread in second.threads}
        loop_places = places | await stacks.place_pcs(pids, loops.pcs())
        known = Known(
            loops=loops.found(loop_places), names=await self._readable(await asyncio.to_thread(_names, second, stacks)),
            places={tid: place for tid, (place, _) in places.items()},
            functions={tid: function for tid, (_, function) in loop_places.items()}, holders=_holders(second, stacks),
        )  # fmt: skip
        return Told(judge(first, second, known), stacks.stacks, stacks.notes)


    async def _readable(self, names: dict[tuple[int, int], str]) -> dict[tuple[int, int], str]:
        """Linkage names as they are written in the source."""
        parts = {key: name.partition("+") for key, name in names.items() if name.startswith(("_Z", "_R"))}
        if not parts:
            return names
        try:
            reply: NamesReply = await self._ask("indexer", Demangle(names=[name for name, _, _ in parts.values()]), deadline_s=DEMANGLE_S)
        except StrobeError:
            return names  # as the symbol table has them
        written = {key: f"{name}{plus}{offset}" for (key, (_, plus, offset)), name in zip(parts.items(), reply.names, strict=True)}
        return names | written


def _share(first: Tree, second: Tree) -> float:
    before = first.cpu
    used = sum(thread.cpu_ns - before.get(thread.tid, thread.cpu_ns) for thread in second.threads)
    return used / 1e9 / max(second.at - first.at, 1e-3)


def _names(second: Tree, stacks: Stacks) -> dict[tuple[int, int], str]:
    held = {tid: seen.stack for tid, seen in stacks.seen.items()}
    wanted = {(one.pid, one.wait.address) for one in second.threads if one.wait and one.syscall == 202 and one.wait.kind != "join"}
    threads: Mapping[int, list[Thread]] = {pid: [one for one in second.threads if one.pid == pid and one.sp] for pid, _ in wanted}
    return {(pid, address): name_of(address, stacks.modules.get(pid, []), threads[pid], held) for pid, address in wanted}


def _holders(second: Tree, stacks: Stacks) -> dict[int, frozenset[int]]:
    """Of locks that name no owner: the threads on whose stack the lock's address lies, other than those that wait for it."""
    found: dict[int, frozenset[int]] = {}
    for thread in second.threads:
        wait = thread.wait
        if wait is None or wait.owner or thread.syscall != 202 or not is_untimed(thread) or not wait.address:
            continue
        word = wait.address.to_bytes(8, "little")
        same = {one.tid for one in second.threads if one.wait and one.wait.address == wait.address}
        mates = [one.tid for one in second.threads if one.pid == thread.pid and one.tid not in same]
        found[thread.tid] = frozenset(tid for tid in mates if tid in stacks.seen and _aligned(stacks.seen[tid].stack, word))
    return found


def _aligned(stack: bytes, word: bytes) -> bool:
    """Stack pointers are multiples of 8 wherever a thread waits."""
    at = stack.find(word)
    while at >= 0 and at % 8:
        at = stack.find(word, at + 1)
    return at >= 0
