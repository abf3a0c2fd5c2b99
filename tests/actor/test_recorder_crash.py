"""Crash pages: what is saved when a program dies of a signal, and that it dies as it would have without the recorder."""

from __future__ import annotations

import signal
import struct

import pytest

from strobe.lanes.layout import CRASH_MAPS_OFFSET, CRASH_STACK_OFFSET
from tests.harness.recorder import Run, run_selftest

RSP, RIP = 15, 16  # in gregset_t

# scenario → the signal's number on the page, None when there must be none
PAGES: dict[str, int | None] = {
    "segv": signal.SIGSEGV, "noncanonical": signal.SIGSEGV, "null_call": signal.SIGSEGV, "bus": signal.SIGBUS, "fpe": signal.SIGFPE,
    "ill": signal.SIGILL,
    "trap": signal.SIGTRAP, "abort": signal.SIGABRT, "raise_segv": signal.SIGSEGV, "raise_trap": signal.SIGTRAP, "kill_fpe": signal.SIGFPE,
    "sys": signal.SIGSYS,
    "term": None, "stack_overflow": signal.SIGSEGV, "thread_segv": signal.SIGSEGV, "thread_overflow": signal.SIGSEGV, "child_segv": signal.SIGSEGV,
    "own_handler": None, "handler_gives_up": signal.SIGSEGV, "ignored": None, "queries": signal.SIGSEGV, "posix_exec": None,
}  # fmt: skip


def crash(scenario: str, armed: int = 1) -> Run:
    return run_selftest("crashes.c", scenario, armed, chunks=8)


@pytest.mark.parametrize("scenario", PAGES)
def test_dies_as_without_the_recorder(scenario: str) -> None:
    plain, run = crash(scenario, 0), crash(scenario)
    assert run.code == plain.code
    assert (run.stdout, run.stderr) == (plain.stdout, plain.stderr)
    pages = [page for page in run.pool.crashes if page["state"]]
    assert all(page["state"] == 2 for page in pages)
    expected = PAGES[scenario]
    if expected is None:
        assert pages == []
    else:
        assert pages[0]["signo"] == expected
        assert pages[0]["comm"].tobytes().startswith(b"crashes")
        assert run.code in (-expected, 0)


def test_page_of_a_fault_in_a_traced_call() -> None:
    run = crash("segv")
    page = run.pool.crashes[0]
    assert (page["address"], page["code"]) == (0, 1)
    [enter] = run.recording.all
    assert page["span"] == enter["span"]
    assert page["ts"] > enter["ts"]
    base, size = int(page["stack_base"]), int(page["stack_bytes"])
    rsp, rip = int(page["regs"][RSP]), int(page["regs"][RIP])
    assert base == rsp - 256
    assert size > 256
    stack = run.pool.crash_bytes[0][CRASH_STACK_OFFSET : CRASH_STACK_OFFSET + size].tobytes()
    maps = run.pool.crash_bytes[0][CRASH_MAPS_OFFSET : CRASH_MAPS_OFFSET + int(page["maps_bytes"])].tobytes().decode()
    executable = [line.split()[0] for line in maps.splitlines() if line.endswith("/crashes") and "x" in line.split()[1]]
    low, high = (int(part, 16) for part in executable[0].split("-"))
    assert low <= rip < high
    [returns_to] = struct.unpack_from("<Q", stack, rsp - base)
    assert low <= returns_to < high, "the saved stack holds the real return address, not the recorder's"


def test_page_of_a_sent_signal_names_the_sender() -> None:
    page = crash("kill_fpe").pool.crashes[0]
    assert page["code"] == 0
    assert page["sender_pid"] == page["pid"]


def test_stack_overflow_saves_the_innermost_frames() -> None:
    for scenario in ("stack_overflow", "thread_overflow"):
        run = crash(scenario)
        page = run.pool.crashes[0]
        assert page["stack_bytes"] == 61440
        assert page["span"] == run.recording.all["span"].max()
        assert int(page["stack_base"]) >= int(page["regs"][RSP]) - 256


def test_children_have_pages_of_their_own() -> None:
    pages = [page for page in crash("child_segv").pool.crashes if page["state"]]
    assert len(pages) == 2
    assert pages[0]["pid"] != pages[1]["pid"]
