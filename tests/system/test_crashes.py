"""Every way to die, of compiled programs, through `strobe mcp`: told rightly, with stack, arguments and locals, and the exit status of a run without."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.targets import TARGETS, program, without_inherited_signals

pytestmark = pytest.mark.anyio
ENDS_S: Final = 60.0
PLAIN_S: Final = 30.0
C: Final = ("deaths.c", "-O0")
CPP: Final = ("deaths.cpp", "-O0")
RUST: Final = ("deaths.rs",)
ASAN: Final = ("sanitized.c", "-fsanitize=address", "-O0")

# program, its argument, what the crash says: signal, code, function, and a part of its text
DEATHS: Final[list[tuple[tuple[str, ...], str, str | None, str | None, str | None, str]]] = [
    (C, "segv", "SIGSEGV", "SEGV_MAPERR", "die", "(address not mapped) at 0x0 in die"),
    (C, "denied", "SIGSEGV", "SEGV_ACCERR", "die", "access not permitted"),
    (C, "wild", "SIGSEGV", "SI_KERNEL", "die", "(non-canonical address) in die"),
    (C, "call", "SIGSEGV", "SEGV_MAPERR", "die", "at 0x0 in die"),
    (C, "bus", "SIGBUS", "BUS_ADRERR", "past_the_file", "mapped file too short"),
    (C, "fpe", "SIGFPE", "FPE_INTDIV", "die", "integer divide by zero"),
    (C, "ill", "SIGILL", "ILL_ILLOPN", "die", "illegal operand"),
    (C, "trap", "SIGTRAP", "SI_KERNEL", "die", "int3"),
    (C, "abort", "SIGABRT", "SI_TKILL", "die", "raised by the program itself"),
    (C, "sys", "SIGSYS", "SI_TKILL", "die", "raised by the program itself"),
    (C, "assert", "SIGABRT", "SI_TKILL", "die", "assertion failed: left == 1 in die"),
    (C, "overflow", "SIGSEGV", "SEGV_MAPERR", "overflow", "stack overflow"),
    (C, "corrupt", "SIGABRT", "SI_TKILL", "corrupt", "glibc: munmap_chunk(): invalid pointer"),
    (C, "twice", "SIGABRT", "SI_TKILL", "twice", "glibc: double free or corruption"),
    ((*C, "-fstack-protector-all"), "smash", "SIGABRT", "SI_TKILL", "smash", "glibc: stack smashing detected"),
    (C, "thread:segv", "SIGSEGV", "SEGV_MAPERR", "die", "at 0x0 in die"),
    (C, "child:segv", "SIGSEGV", "SEGV_MAPERR", "die", "at 0x0 in die"),
    (C, "handler:segv", "SIGSEGV", "SEGV_MAPERR", "die", "at 0x0 in die"),
    (C, "double:x", "SIGFPE", "FPE_INTDIV", "die", "integer divide by zero"),
    (C, "same:x", "SIGSEGV", None, None, "SIGSEGV"),  # the kernel kills at once: no handler runs
    (C, "kill", "SIGKILL", None, None, "SIGKILL, sender unknown"),
    (CPP, "class", "SIGABRT", "SI_TKILL", "settle", "uncaught OrderError: order 7 is 6 short in settle"),
    (CPP, "standard", "SIGABRT", "SI_TKILL", "settle", "uncaught std::out_of_range: vector::_M_range_check"),
    (CPP, "plain", "SIGABRT", "SI_TKILL", "settle", "uncaught Code in settle"),
    (CPP, "text", "SIGABRT", "SI_TKILL", "settle", "uncaught char const*: a text in settle"),
    (CPP, "terminate", "SIGABRT", "SI_TKILL", "settle", "without an active exception"),
    (CPP, "noexcept:class", "SIGABRT", "SI_TKILL", "settle", "uncaught OrderError"),
    (CPP, "again:class", "SIGABRT", "SI_TKILL", "again", "uncaught OrderError: order 7 is 6 short in again"),
    (CPP, "thread:class", "SIGABRT", "SI_TKILL", "settle", "uncaught OrderError"),
    (CPP, "silent:class", "SIGILL", "ILL_ILLOPN", "settle", "uncaught OrderError: order 7 is 6 short in settle"),  # known to the recorder alone
    (RUST, "panic", None, None, "deaths::settle", "panic: order 7 is 6 short\nby two lines"),
    (RUST, "index", None, None, "deaths::settle", "panic: index out of bounds: the len is 3 but the index is 12"),
    (RUST, "overflow", "SIGABRT", "SI_TKILL", "deaths::deeper", "stack overflow"),
    ((*RUST, "-Cpanic=abort"), "panic", "SIGABRT", "SI_TKILL", "deaths::settle", "panic: order 7 is 6 short"),
    (ASAN, "heap", None, None, "sum", "AddressSanitizer: heap-buffer-overflow"),
    (ASAN, "freed", None, None, "sum", "AddressSanitizer: heap-use-after-free"),
    (ASAN, "stack", None, None, "use", "AddressSanitizer: stack-buffer-overflow"),
    (ASAN, "null", None, None, "sum", "AddressSanitizer: SEGV"),
    (ASAN, "leak", None, None, "use", "LeakSanitizer: detected memory leaks"),
    (("sanitized.c", "-fsanitize=undefined", "-fno-sanitize-recover=all"), "undefined", None, None, None, "signed integer overflow"),
]


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """The home of one node for all tests of this file; at the end it is stopped, and must leave nothing."""
    found = tmp_path_factory.mktemp("crashes") / "home"
    async with strobe_mcp(found):
        yield found


@pytest.fixture
async def strobe(home: Path) -> AsyncIterator[Strobe]:
    async with strobe_mcp(home, keep_node=True) as connected:
        yield connected
        for item in (await connected.call("debug_session", action="list"))["sessions"]:
            await connected.call("debug_session", action="stop", sessionId=item["sessionId"], kill=True)


def plain_run(path: Path, way: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([path, way], capture_output=True, check=False, timeout=PLAIN_S, stdin=subprocess.DEVNULL, preexec_fn=without_inherited_signals)


def exit_of(status: dict[str, Any]) -> int:
    return int(status["exitCode"]) if status.get("signal") is None else -int(status["signal"])


async def crash_event(strobe: Strobe, session: str, status: dict[str, Any]) -> dict[str, Any]:
    [event] = (await strobe.call("debug_query", sessionId=session, eventId=status["crash"]["id"], maxTokens=50_000))["events"]
    data: dict[str, Any] = event["data"]
    return data


@pytest.mark.parametrize(("built", "way", "signal", "code", "function", "text"), DEATHS, ids=lambda value: value[0] if isinstance(value, tuple) else None)
async def test_a_death_is_told_as_it_was(
    strobe: Strobe, built: tuple[str, ...], way: str, signal: str | None, code: str | None, function: str | None, text: str
) -> None:
    path = program(*built)
    plain = plain_run(path, way)
    session = await strobe.launch(path, way, root=TARGETS)
    status = await strobe.until_ended(session, within_s=ENDS_S)
    assert exit_of(status) == plain.returncode
    assert (await strobe.output(session))[0] == plain.stdout
    crash = status["crash"]
    assert text in crash["text"]
    assert (crash.get("signal"), crash.get("code")) == (signal, code)
    if function is not None:
        assert crash["function"] == function or (signal is None and crash["line"]), crash
        assert crash["sourceFile"].endswith(built[0])
    rows = await strobe.rows(session, "SELECT text FROM crashes_v")
    assert len(rows) == 1, rows
    data = await crash_event(strobe, session, status)
    if code is not None:
        names = [frame.get("function") for frame in data["frames"]]
        assert function in names
        assert "rip" in data["registers"]
        assert data["stack"]["words"]
        assert any("main" in str(name) for name in names) or "overflow" in way or way.startswith("thread:") or way == "smash"


async def test_locals_and_arguments_are_those_of_the_source(strobe: Strobe) -> None:
    session = await strobe.launch(program(*C), "segv", root=TARGETS)
    status = await strobe.until_ended(session, within_s=ENDS_S)
    assert status["crash"]["locals"] == {"left": 39, "signo": 0, "share": 40.25 / 42, "digits": [1, 2, 3, 39]}
    assert status["crash"]["frames"][0].startswith('#0 die(how="segv", order={id: 1, customer: "ann", total: 40.25, next: {id: 2, customer: "bob"')
    assert status["crash"]["frames"][1] == '#1 work(how="segv", amount=42) deaths.c:' + status["crash"]["frames"][1].rpartition(":")[2]
    data = await crash_event(strobe, session, status)
    die, work = data["frames"][:2]
    assert [one["name"] for one in die["arguments"]] == ["how", "order", "amount"]
    assert die["arguments"][1]["value"]["next"]["next"] is None
    assert [(one["name"], one["type"], one["value"]) for one in work["arguments"]] == [("how", "const char *", "segv"), ("amount", "int", 42)]
    assert "locals" not in work


async def test_optimised_code_says_what_it_does_not_have(strobe: Strobe) -> None:
    session = await strobe.launch(program("deaths.c", "-O2"), "fpe", root=TARGETS)
    status = await strobe.until_ended(session, within_s=ENDS_S)
    data = await crash_event(strobe, session, status)
    frame = next(frame for frame in data["frames"] if frame.get("function") == "die")
    values = {one["name"]: one["value"] for one in [*frame["arguments"], *frame["locals"]]}
    assert values["how"] in ("fpe", "<not captured>", "<optimised out>")
    assert values["amount"] in (42, "<not captured>", "<optimised out>")
    assert any(value in (39, 42, "fpe") for value in values.values())


async def test_a_crash_in_a_traced_call_and_the_events_before_it(strobe: Strobe) -> None:
    session = await strobe.launch(program(*C), "thread:overflow", root=TARGETS, trace=["work", "die", "overflow"])
    status = await strobe.until_ended(session, within_s=ENDS_S)
    assert exit_of(status) == plain_run(program(*C), "thread:overflow").returncode == -11
    assert status["crash"]["function"] == "overflow"
    assert status["crash"]["threadName"] == "worker"
    assert "stack overflow" in status["crash"]["text"]
    whole, before = status["nextSteps"]
    assert status["crash"]["id"] in whole
    sql = before[before.index("SELECT") : before.rindex('"')]
    rows = (await strobe.call("debug_query", sessionId=session, sql=sql, maxTokens=10_000))["rows"]
    assert len(rows) == 50
    assert sum(row[2] == "function_enter" and row[3] == "overflow" for row in rows) >= 48


async def test_undefined_behaviour_that_does_not_end_the_program_is_told(strobe: Strobe) -> None:
    session = await strobe.launch(program("sanitized.c", "-fsanitize=undefined"), "undefined", root=TARGETS)
    status = await strobe.until_ended(session, within_s=ENDS_S)
    assert (status["status"], status["exitCode"]) == ("exited", 0)
    assert "crash" not in status
    [event] = await strobe.events(session, eventType="exception")
    assert "signed integer overflow" in event["text"]
    assert event["sourceFile"].endswith("sanitized.c")


async def test_a_panic_of_a_thread_that_is_survived_is_told(strobe: Strobe) -> None:
    session = await strobe.launch(program(*RUST), "thread:panic", root=TARGETS)
    status = await strobe.until_ended(session, within_s=ENDS_S)
    assert (status["status"], status["exitCode"]) == ("exited", 0)
    [event] = await strobe.events(session, eventType="exception", verbose=True)
    assert event["data"]["report"]["thread"] == "worker"
    assert "order 7 is 6 short" in event["text"]


async def test_our_own_kill_is_no_crash(strobe: Strobe) -> None:
    session = await strobe.launch(Path("/bin/sleep"), "100", root=TARGETS)
    stopped = await strobe.call("debug_session", action="stop", sessionId=session, kill=True, retain=True)
    assert stopped.get("signal") == 9, stopped
    assert await strobe.rows(session, "SELECT text FROM crashes_v") == []
