"""The stuck corpus: programs that are stuck in every way we know, and ones that only look so. Each is watched by a real detector with a real indexer:
the right verdict in time, who waits for whom by name, and no false alarm."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from strobe.client import Client
from strobe.protocol.stuck_detector import Diagnose, DiagnoseReply, Suspicion, Suspicions, SuspicionsReply, Unwatch, Watch
from tests.harness.node import node, run
from tests.harness.targets import TARGETS, program, require

pytestmark = [pytest.mark.full, pytest.mark.alone]  # it times verdicts: beside other tests on two cores they come too late
UP_S: Final = 20.0
NAMES_S: Final = 15.0  # after the verdict: the indexer meets these libraries for the first time
QUIET_S: Final = 5.0  # so long a legitimate program raises no alarm
TIMES: Final = bool(os.environ.get("STROBE_TIMES"))


@dataclass(frozen=True)
class Case:
    source: str
    wanted: str
    kind: str
    cause: str | None = None
    certainty: str | None = None
    says: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.source}:{self.wanted}"

    @property
    def limit_s(self) -> float:
        """From when it is up, on a machine that others use too; the promise is 1 s and 6 s on an idle one."""
        return 4.0 if self.certainty == "proven" else 12.0


STUCK: Final = [
    Case("locks.c", "two", "deadlock", "mutex_cycle", "proven", ("transfer-ab", "transfer-ba", "lock_a", "lock_b")),
    Case("busy.c", "flag", "infinite_loop", "loop", None, ("spin_on_flag",)),
    Case("outside.c", "pipes", "deadlock", "process_cycle", "probable", ("a pipe",)),
    Case("locks.rs", "mutex", "deadlock", None, "probable", ("pay", "refund")),
    Case("locks.py", "locks", "deadlock", "no_waker", "probable"),
    Case("locks.cpp", "mutex", "deadlock", "mutex_cycle", "proven", ("withdraw", "report", "accounts", "audit")),
    Case("locks.c", "three", "deadlock", "mutex_cycle", "proven", ("lock_a", "lock_b", "lock_c")),
    Case("locks.c", "rwlock", "deadlock", "mutex_cycle", "proven", ("writer", "reader", "table")),
    Case("locks.c", "self", "deadlock", "self_lock", "proven", ("lock_a",)),
    Case("locks.c", "join", "deadlock", "mutex_cycle", "proven", ("joiner", "pthread_join")),
    Case("locks.c", "semaphore", "deadlock", "no_waker", "probable", ("slots",)),
    Case("locks.c", "condition", "deadlock", "no_waker", "probable", ("condition variable", "changed")),
    Case("locks.c", "abandoned", "deadlock", "abandoned_lock", "probable", ("lock_a", "has ended")),
    Case("busy.c", "count", "infinite_loop", "loop", None, ("count_forever",)),
    Case("busy.c", "list", "infinite_loop", "loop", None, ("walk",)),
    Case("busy.c", "spinners", "infinite_loop", "loop", None, ("spinner",)),
    Case("busy.c", "livelock", "infinite_loop", "livelock", "suspected", ("polite-left", "polite-right")),
    Case("busy.c", "recursion", "infinite_loop", "recursion", "suspected", ("recurse",)),
    Case("outside.c", "full", "deadlock", "process_cycle", "probable", ("room in a pipe",)),
    Case("outside.c", "unix", "deadlock", "process_cycle", "probable", ("unix socket",)),
    Case("outside.c", "tcp", "deadlock", "process_cycle", "probable", ("loopback",)),
    Case("locks.cpp", "shared", "deadlock", "mutex_cycle", "proven", ("catalog", "audit")),
    Case("locks.cpp", "future", "deadlock", "no_waker", "probable"),
    Case("locks.cpp", "wakeup", "deadlock", "no_waker", "probable", ("changed",)),
    Case("locks.rs", "condvar", "deadlock", "no_waker", "probable"),
    Case("locks.rs", "channel", "deadlock", "no_waker", "probable"),
    Case("locks.rs", "loop", "infinite_loop", "loop"),
    Case("locks.py", "queue", "deadlock", "no_waker", "probable"),
    Case("locks.py", "event", "deadlock", "no_waker", "probable"),
    Case("idle.mjs", "atomics", "deadlock", "no_waker", "probable"),
    Case("idle.mjs", "loop", "infinite_loop", "loop"),
]
FINE: Final = [
    Case("locks.c", "timed", "waiting_outside", "timer"),
    Case("busy.c", "primes", "busy_moving", "cpu"),
    Case("outside.c", "stdin", "waiting_outside", "stdin"),
    Case("outside.c", "child", "waiting_outside", "timer"),
    Case("locks.py", "poll", "", None),
    Case("idle.mjs", "server", "waiting_outside", "network"),
    Case("locks.c", "sleeper", "waiting_outside", "timer"),
    Case("locks.c", "producer", "busy_moving", "cpu"),
    Case("locks.c", "signal", "waiting_outside", "signal"),
    Case("busy.c", "compute", "busy_moving", "cpu"),
    Case("busy.c", "matrix", "busy_moving", "cpu"),
    Case("busy.c", "copy", "", None),
    Case("busy.c", "poll", "", None),
    Case("outside.c", "sleep", "waiting_outside", "timer"),
    Case("outside.c", "accept", "waiting_outside", "network"),
    Case("outside.c", "epoll", "waiting_outside", "network"),
    Case("outside.c", "poll", "waiting_outside", "stdin"),
    Case("outside.c", "pause", "waiting_outside", "signal"),
    Case("locks.cpp", "timer", "waiting_outside", "timer"),
    Case("locks.rs", "sleep", "waiting_outside", "timer"),
    Case("locks.py", "sleep", "waiting_outside", "timer"),
    Case("locks.py", "stdin", "waiting_outside", "stdin"),
    Case("locks.py", "child", "waiting_outside", "timer"),
    Case("locks.py", "compute", "busy_moving", "cpu"),
    Case("idle.mjs", "interval", "waiting_outside", "timer"),
    Case("idle.mjs", "stdin", "waiting_outside", "stdin"),
]
GROUP: Final = 4


def command(case: Case) -> list[str]:
    source = TARGETS / "stuck" / case.source
    if source.suffix == ".py":
        return [sys.executable, str(source), case.wanted]
    if source.suffix == ".mjs":
        return [require("node"), str(source), case.wanted]
    return [str(program(f"stuck/{case.source}", "-O0" if source.suffix != ".rs" else "-Copt-level=0")), case.wanted]


@contextmanager
def running(case: Case) -> Iterator[int]:
    """Pid of the program, once it has said that it is up. Its stdin is a pipe that stays open."""
    process = subprocess.Popen(command(case), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n", case.name
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


async def verdict_of(client: Client, case: Case, pid: int) -> Suspicion:
    """The verdict once it is of the kind expected; the last one after the time that it may take."""
    began, deadline, named = time.monotonic(), time.monotonic() + case.limit_s, False
    await client.ask("stuck_detector", Watch(key=case.name, pid=pid))
    found = None
    while time.monotonic() < deadline:
        reply: SuspicionsReply = await client.ask("stuck_detector", Suspicions(key=case.name))
        found = reply.current or found
        if found and found.verdict.kind == case.kind:
            if TIMES and not named:
                print(f"{case.name}: {time.monotonic() - began:.2f} s  {found.verdict.kind}/{found.verdict.cause}/{found.verdict.certainty}")  # noqa: T201
            if not named:
                named, deadline = True, time.monotonic() + NAMES_S
            if all(word in told(found) for word in case.says):
                break
        await asyncio.sleep(0.05)
    await client.ask("stuck_detector", Unwatch(key=case.name))
    assert found is not None, f"{case.name}: no verdict in {case.limit_s} s"
    return found


def told(found: Suspicion) -> str:
    return found.verdict.model_dump_json()


def check(case: Case, found: Suspicion) -> None:
    verdict = found.verdict
    text = f"{case.name}: {verdict.kind}/{verdict.cause}/{verdict.certainty}: {verdict.summary}"
    assert verdict.kind == case.kind, text
    assert case.cause in (None, verdict.cause), text
    assert case.certainty in (None, verdict.certainty), text
    assert (verdict.certainty == "proven") == (case.certainty == "proven"), text
    for word in case.says:
        assert word in told(found), (word, told(found))


def stuck_together(home: Path, cases: Sequence[Case]) -> None:
    async def work() -> None:
        async with node(home, roles=("stuck_detector", "indexer")) as client:
            for case in cases:
                with running(case) as pid:
                    check(case, await verdict_of(client, case, pid))

    run(work())


def fine_together(home: Path, cases: Sequence[Case]) -> None:
    """Side by side, for a while: none of them is ever suspected, and each is told for what it is."""

    async def alarms(client: Client, case: Case) -> None:
        end = time.monotonic() + QUIET_S
        while time.monotonic() < end:
            reply: SuspicionsReply = await client.ask("stuck_detector", Suspicions(key=case.name))
            assert reply.watched, case.name
            for one in [*reply.history, *([reply.current] if reply.current else [])]:
                assert one.verdict.kind not in ("deadlock", "infinite_loop"), f"{case.name}: {one.verdict.summary}"
            await asyncio.sleep(0.1)
        reply = await client.ask("stuck_detector", Suspicions(key=case.name))
        assert reply.current is not None, case.name
        if case.kind:
            assert (reply.current.verdict.kind, reply.current.verdict.cause) == (case.kind, case.cause), f"{case.name}: {reply.current.verdict.summary}"

    async def work(pids: list[int]) -> None:
        async with node(home, roles=("stuck_detector", "indexer")) as client:
            for case, pid in zip(cases, pids, strict=True):
                await client.ask("stuck_detector", Watch(key=case.name, pid=pid))
            await asyncio.gather(*(alarms(client, case) for case in cases))

    with several(cases) as pids:
        run(work(pids))


@contextmanager
def several(cases: Sequence[Case]) -> Iterator[list[int]]:
    if not cases:
        yield []
        return
    with running(cases[0]) as pid, several(cases[1:]) as pids:
        yield [pid, *pids]


def groups(cases: Sequence[Case]) -> list[object]:
    """The first six in the default run, the rest in groups, marked full."""
    rest = [cases[at : at + GROUP] for at in range(6, len(cases), GROUP)]
    return [pytest.param(cases[:6], id="sample"), *(pytest.param(group, id=group[0].name) for group in rest)]


@pytest.mark.parametrize("cases", groups(STUCK))
def test_stuck_programs_are_told(tmp_path: Path, cases: Sequence[Case]) -> None:
    stuck_together(tmp_path, cases)


@pytest.mark.parametrize("cases", groups(FINE))
def test_no_false_alarm(tmp_path: Path, cases: Sequence[Case]) -> None:
    fine_together(tmp_path, cases)


def test_a_stopped_program_is_paused_not_stuck(tmp_path: Path) -> None:
    async def work(pid: int) -> DiagnoseReply:
        async with node(tmp_path, roles=("stuck_detector", "indexer")) as client:
            reply: DiagnoseReply = await client.ask("stuck_detector", Diagnose(pid=pid))
            return reply

    with running(STUCK[0]) as pid:
        os.kill(pid, signal.SIGSTOP)
        reply = run(work(pid))
    assert reply.verdict is not None and (reply.verdict.kind, reply.verdict.cause) == ("paused", "stopped")


def test_a_diagnosis_has_names_places_and_stacks(tmp_path: Path) -> None:
    async def work(pid: int) -> DiagnoseReply:
        async with node(tmp_path, roles=("stuck_detector", "indexer")) as client:
            began = time.monotonic()
            reply: DiagnoseReply = await client.ask("stuck_detector", Diagnose(pid=pid), deadline_s=10)
            assert time.monotonic() - began < 5
            return reply

    with running(STUCK[0]) as pid:
        reply = run(work(pid))
    assert reply.verdict is not None and reply.verdict.certainty == "proven"
    assert {edge.name for edge in reply.verdict.edges if edge.kind == "mutex"} == {"lock_a", "lock_b"}
    stacks = {stack.name: [frame.function for frame in stack.frames] for stack in reply.stacks}
    assert "transfer" in stacks["transfer-ab"] and "transfer_ba" in stacks["transfer-ba"]
    lines = [frame.line for stack in reply.stacks for frame in stack.frames if frame.function == "transfer"]
    assert lines and all(lines)
    assert "transfer" in reply.verdict.suggested_traces
