"""A target must not notice Strobe: the same bytes on each stream and the same end as when it runs alone, with a hook on every function it has (`**`).

Each case runs twice: by itself, and through `strobe mcp` with `**` waiting for its launch. The Strobe run must really have traced it: a case names a function
and the least number of calls of it that the timeline must hold, so that a target that was quietly left alone fails.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.targets import TARGETS, program, without_inherited_signals

ALONE_S: Final = 60
ENDS_S: Final = 60.0
O0: Final = ("-O0",)
O2: Final = ("-O2", "-fipa-ra", "-fno-omit-frame-pointer")
O2_BARE: Final = ("-O2", "-fipa-ra", "-fomit-frame-pointer")
RUST_DEBUG: Final = ("-Copt-level=0",)
RUST_FAST: Final = ("-Copt-level=2",)
ENV: Final = {"RUST_BACKTRACE": "1"}  # a panic's backtrace must name the same frames


@dataclass(frozen=True)
class Case:
    """A target and how to run it. `called`: (function, at least so many calls) that the timeline must show. `same` hides what differs from run to run."""

    source: str
    flags: tuple[str, ...]
    args: tuple[str, ...] = ()
    called: tuple[str, int] | None = None
    stdin: str | None = None
    compiler: str | None = None
    same: Callable[[bytes], bytes] = bytes

    @property
    def id(self) -> str:
        shown = [flag for flag in self.flags if flag.startswith(("-O", "-Cop", "-Cpanic", "-fomit"))]
        return "-".join([Path(self.source).stem, *self.args, *(flag.strip("-") for flag in shown), *([self.compiler] if self.compiler else [])])


def without_thread_ids(text: bytes) -> bytes:
    """Rust's panic message names the thread's id: "thread 'main' (1234) panicked"."""
    return re.sub(rb"(thread '[^']*') \(\d+\)", rb"\1 (TID)", text)


def _each(source: str, *variants: tuple[str, ...], **more: Any) -> list[Case]:
    return [Case(source, flags, **more) for flags in variants]


SIGNALS: Final = (1, 9, 11, 15)
CASES: Final = [
    *_each("exceptions.cpp", O0, O2_BARE, called=("thrower", 9000)),
    Case("exceptions.cpp", ("-O2",), called=("thrower", 9000), compiler="clang++"),
    Case("uncaught.cpp", O2, called=("deep", 6)),
    Case("uncaught.cpp", O2, ("noexcept",), called=("promised", 1)),
    Case("uncaught.cpp", O2, ("handler",), called=("deep", 6)),
    *_each("shapes.cpp", O0, O2_BARE, called=("geo::Square::area", 25)),
    *_each("panics.rs", RUST_DEBUG, RUST_FAST, called=("panics::descend", 400), same=without_thread_ids),
    Case("panics.rs", RUST_FAST, ("uncaught",), called=("panics::descend", 5), same=without_thread_ids),
    Case("panics.rs", (*RUST_FAST, "-Cpanic=abort"), ("uncaught",), called=("panics::descend", 5), same=without_thread_ids),
    Case("longjmp.c", O2, called=("leaf", 2000)),
    *_each("coroutine.c", O0, O2_BARE, called=("walk", 5000)),
    *_each("coswitch.c", O0, O2_BARE, called=("work", 3000)),
    *_each("signals.c", O0, O2, called=("touch", 400)),
    *_each("threads.c", O0, O2, called=("step", 32000)),
    Case("recursion.c", O2_BARE, ("20000",), called=("down", 20001)),
    Case("recursion.c", O0, ("overflow",), called=("endless", 1000)),
    *_each("abi.c", O0, O2_BARE, called=("compare", 3000)),
    Case("abi.c", ("-O2",), called=("compare", 3000), compiler="clang"),
    Case("backtrace.c", (*O2, "-rdynamic"), called=("level_a", 15)),
    Case("forks.c", O2, called=("fork_nested", 30)),
    Case("echo.c", O2, called=("echo_line", 4), stdin="one\ntwo\nthree, the last line has no end"),
    Case("output.c", O2, ("2000000",), called=("line", 40000)),
    *[Case("exits.c", O0, ("code", str(code)), called=("end_with_exit", 1)) for code in (0, 255)],
    *[Case("exits.c", O2, (how, "6"), called=("end", 1)) for how in ("_exit", "quick", "thread", "return")],
    *[Case("exits.c", O0, ("signal", str(number)), called=("end_by_signal", 1)) for number in SIGNALS],
    Case("exits.c", O0, ("abort",), called=("end_by_abort", 1)),
]
FULL: Final = [
    Case("exceptions.cpp", O2, called=("thrower", 9000)),
    Case("uncaught.cpp", O0, called=("deep", 6)),
    Case("longjmp.c", O0, called=("leaf", 2000)),
    Case("recursion.c", O0, ("20000",), called=("down", 20001)),
    Case("abi.c", O2, called=("compare", 3000)),
    Case("forks.c", O0, called=("fork_nested", 30)),
    Case("output.c", O2, ("50000000",), called=("line", 1000000)),
    *[Case("exits.c", O2, ("code", str(code)), called=("end_with_exit", 1)) for code in range(1, 255, 11)],
    *[Case("exits.c", O0, ("signal", str(number)), called=("end_by_signal", 1)) for number in sorted({*range(1, 17), *range(24, 32)} - {28, *SIGNALS})],
    *_each("exceptions.cpp", ("-O1",), ("-O3", "-march=native"), called=("thrower", 3000)),
]


@dataclass(frozen=True)
class Outcome:
    """stdout, stderr and the end: an exit status, or minus the signal's number."""

    stdout: bytes
    stderr: bytes
    end: int

    def comparable(self, case: Case) -> tuple[bytes, bytes, int]:
        return case.same(self.stdout), case.same(self.stderr), self.end


def alone(case: Case, path: Path) -> Outcome:
    with tempfile.TemporaryFile() as stdin:
        stdin.write((case.stdin or "").encode())
        stdin.seek(0)
        done = subprocess.run(
            [path, *case.args],
            stdin=stdin,
            capture_output=True,
            timeout=ALONE_S,
            cwd=path.parent,
            env={**os.environ, **ENV},
            check=False,
            start_new_session=True,
            preexec_fn=without_inherited_signals,
        )
    return Outcome(done.stdout, done.stderr, done.returncode)


async def under_strobe(case: Case, path: Path, expected: Outcome, strobe: Strobe) -> tuple[Outcome, str]:
    more = {} if case.stdin is None else {"stdin": case.stdin}
    session_id = await strobe.launch(path, *case.args, root=TARGETS, trace=["**"], env=ENV, **more)
    status = await strobe.until_ended(session_id, within_s=ENDS_S)
    end = -status["signal"] if status.get("signal") else status["exitCode"]
    # By their digests where those are the expected ones: some targets write too much to fetch.
    digests = tuple(hashlib.md5(stream).hexdigest() for stream in (expected.stdout, expected.stderr))
    if await strobe.output_digests(session_id) == digests:
        return Outcome(expected.stdout, expected.stderr, end), session_id
    return Outcome(*await strobe.output(session_id), end), session_id


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("transparency") / "home"


@pytest.fixture(scope="module")
async def strobe(module_home: Path) -> Any:
    """One client for all cases: each gets a session of its own. The environment is the one that the runs alone see."""
    async with strobe_mcp(module_home) as connected:
        yield connected


def shown(outcome: Outcome) -> str:
    return f"end {outcome.end}\nstdout {outcome.stdout[-600:]!r}\nstderr {outcome.stderr[-600:]!r}"


async def check(case: Case, strobe: Strobe) -> None:
    path = program(case.source, *case.flags, compiler=case.compiler)
    expected = alone(case, path)
    seen, session_id = await under_strobe(case, path, expected, strobe)
    assert seen.comparable(case) == expected.comparable(case), f"alone: {shown(expected)}\nunder Strobe: {shown(seen)}"
    if case.called:
        name, least = case.called
        reply = await strobe.call("debug_query", sessionId=session_id, eventType="function_enter", function={"equals": name}, limit=1)
        status = await strobe.call("debug_session", action="status", sessionId=session_id)
        dropped = sum(reply.get("eventsDropped", {}).values()) + sum(one["notRecorded"] for one in status.get("sampling") or [] if one["function"] == name)
        found = reply["totalCount"]
        assert found + dropped >= least, f"{name}: {found} calls in the timeline and {dropped} events dropped, at least {least} expected"
    await strobe.call("debug_session", action="stop", sessionId=session_id)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_same_bytes_and_same_end(case: Case, strobe: Strobe) -> None:
    await check(case, strobe)


@pytest.mark.full
@pytest.mark.parametrize("case", FULL, ids=lambda case: case.id)
async def test_same_bytes_and_same_end_in_full(case: Case, strobe: Strobe) -> None:
    await check(case, strobe)


@pytest.mark.parametrize("case", [case for case in CASES if case.source != "exits.c"], ids=lambda case: case.id)
def test_alone_the_targets_repeat_themselves(case: Case) -> None:
    """What the comparison rests on: a target run alone twice gives the same."""
    path = program(case.source, *case.flags, compiler=case.compiler)
    assert alone(case, path).comparable(case) == alone(case, path).comparable(case)


def test_alone_a_target_inherits_no_signals_of_the_test_run() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        for number in (signal.SIGHUP, signal.SIGTERM):
            case = Case("exits.c", O0, ("signal", str(int(number))))
            assert alone(case, program(case.source, *case.flags)).end == -number
    finally:
        signal.signal(signal.SIGHUP, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
