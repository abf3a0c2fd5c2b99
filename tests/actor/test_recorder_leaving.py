"""The native recorder where frames are left otherwise than by returning, or return elsewhere: longjmp, exceptions, panics, coroutines, fork."""

from __future__ import annotations

import re
import struct
import subprocess
from collections import Counter

import numpy as np
import pytest

from strobe.lanes.layout import Kind
from tests.harness.recorder import Run, recorder_library, run_preloaded, run_selftest, temporary_pool
from tests.harness.recording import Recording, check_calls
from tests.harness.targets import program, require

ENTER, EXIT, UNWIND = Kind.ENTER, Kind.EXIT, Kind.UNWIND


def counts(recording: Recording, *kinds: Kind) -> dict[int, tuple[int, ...]]:
    """hook → how many records of each of `kinds`."""
    entries = recording.all
    hooks = sorted(set(entries["hook"][entries["kind"] == ENTER].tolist()))
    return {hook: tuple(recording.count(kind, hook) for kind in kinds) for hook in hooks}


def ends_once(recording: Recording, still_open: int = 0) -> None:
    """Each span is entered once and ends at most once; `still_open` at most do not end."""
    entries = recording.all
    entered = entries["span"][entries["kind"] == ENTER]
    ended = entries["span"][(entries["kind"] == EXIT) | (entries["kind"] == UNWIND)]
    assert np.unique(entered).size == entered.size
    assert np.unique(ended).size == ended.size
    assert np.isin(ended, entered).all()
    assert entered.size - ended.size <= still_open


@pytest.mark.parametrize("internals", [True, False])
def test_longjmp(internals: bool) -> None:
    """With the recorder's hook on longjmp the frames end there; without it at the next call further out."""
    times = 700
    run = run_selftest("calls.c", "jumps", times, environment={"SELFTEST_INTERNALS": "1"} if internals else {})
    assert run.numbers() == {"sum": sum(i % 7 * 3 for i in range(times))}
    [entries] = run.recording.threads.values()
    check_calls(entries)
    jumped = sum(i % 7 + 1 for i in range(times))
    assert counts(run.recording, ENTER, EXIT, UNWIND) == {1: (times, times, 0), 2: (jumped, 0, jumped), 3: (times, times, 0)}


@pytest.mark.parametrize("scenario", ["handlers_that_leave", "handlers_that_leave_their_stack"])
def test_signal_handlers_that_leave_by_siglongjmp(scenario: str) -> None:
    """Every other handler never returns to what it interrupted, the recorder at any instruction included."""
    run = run_selftest("calls.c", scenario, 600, chunks=256, drained=True)
    assert run.code == 0, run.stderr
    words = run.stdout.split()
    numbers = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert numbers["wrong"] == 0
    assert numbers["last"] == 36
    lost = run.recording.dropped_by_kind[EXIT] + run.recording.dropped_by_kind[UNWIND]
    ends_once(run.recording, still_open=lost + numbers["handled"])
    assert run.recording.count(UNWIND) > 0 or run.recording.dropped_by_kind[ENTER] > 0


def test_exceptions_through_traced_frames() -> None:
    """Caught, rethrown, with destructors on the way; the catching call returns without another traced call."""
    times = 21
    run = run_selftest("exceptions.cpp", "throwing", times, build=("-O2", "-rdynamic"))
    odd = sum(k % 2 for i in range(times) for k in (i, i + 1))
    assert run.numbers() == {"sum": sum(-1 if k % 2 else k + 2 for i in range(times) for k in (i, i + 1))}
    calls = 2 * times
    assert counts(run.recording, ENTER, EXIT, UNWIND) == {
        1: (calls, calls, 0), 2: (calls, calls - odd, odd), 3: (calls, calls - odd, odd), 4: (calls, calls, 0), 5: (times, times, 0), 6: (calls, calls, 0)
    }  # fmt: skip
    [entries] = run.recording.threads.values()
    check_calls(entries)


@pytest.mark.parametrize(("scenario", "argument"), [("throwing", 20), ("from_the_deep", 300), ("cancelling", 1), ("in_a_coroutine", 20)])
def test_unwinders_that_are_not_patched(scenario: str, argument: int) -> None:
    """A library loaded later may bring its own unwinder: it passes the recorder's frames by their unwind table. Calls end all the same."""
    patched = run_selftest("exceptions.cpp", scenario, argument, build=("-O2", "-rdynamic"))
    run = run_selftest("exceptions.cpp", scenario, argument, build=("-O2", "-rdynamic"), environment={"SELFTEST_UNPATCHED": "1"})
    assert (run.code, run.stdout) == (patched.code, patched.stdout), run.stderr
    assert counts(run.recording, ENTER, EXIT) == counts(patched.recording, ENTER, EXIT)


def test_debuggers_see_through_the_recorder() -> None:
    """eu-stack and gdb on a thread that waits in a traced call of a traced call."""
    binary = program("native_selftest/calls.c", "-O2")
    tools = [[require("eu-stack"), "-p"], [require("gdb"), "-batch", "-nx", "-ex", "bt", "-p"]]
    with temporary_pool(8) as (path, _):
        process = subprocess.Popen([binary, recorder_library(), path, "park"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout
            assert process.stdout.readline() == "parked\n"
            commands = [[*tool, str(process.pid)] for tool in tools]
            shown = [subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False) for command in commands]
        finally:
            process.kill()
            process.communicate()
    for run in shown:
        frames = re.findall(r"^#\d+ .*?\b(parked|parks|main)\b", run.stdout, re.M)
        assert frames == ["parked", "parks", "main"], run.stdout + run.stderr


def test_exceptions_at_the_bottom_of_a_deep_stack() -> None:
    depth = 20_000
    run = run_selftest("exceptions.cpp", "from_the_deep", depth, build=("-O2", "-rdynamic"))
    assert run.numbers() == {"caught": 5}
    assert counts(run.recording, ENTER, EXIT, UNWIND) == {2: (1000, 0, 1000), 3: (1000, 0, 1000), 4: (1000, 1000, 0), 7: (depth + 1, 0, depth + 1)}
    [entries] = run.recording.threads.values()
    check_calls(entries)


def test_backtrace_is_that_of_an_untraced_run() -> None:
    traced, plain = (run_selftest("exceptions.cpp", "backtraces", argument, build=("-O2", "-rdynamic")) for argument in (1, 0))
    assert traced.stdout == plain.stdout
    assert "backtracer backtrace_through" in plain.stdout
    assert counts(traced.recording, ENTER, EXIT) == {1: (2, 2), 2: (2, 2)}


def test_thread_cancellation_and_exit() -> None:
    run = run_selftest("exceptions.cpp", "cancelling", build=("-O2", "-rdynamic"))
    assert (run.code, run.stdout) == (0, "done\n"), run.stderr
    assert counts(run.recording, ENTER, EXIT, UNWIND)[1] == (20, 0, 20)
    assert counts(run.recording, ENTER, EXIT, UNWIND)[6] == (40, 40, 0)


def test_uncaught_exception_ends_as_ever() -> None:
    run = run_selftest("exceptions.cpp", "uncaught", build=("-O2", "-rdynamic"))
    assert run.code == -6
    assert run.stderr == "terminate called after throwing an instance of 'std::runtime_error'\n  what():  odd 1\n"
    assert run.pool.crashes["signo"][0] == 6


@pytest.mark.parametrize("scenario", ["coroutines", "coroutines_in_frame"])
def test_coroutines(scenario: str) -> None:
    """Eight, resumed in turn, with calls open on each. On heap stacks every parent is exact; stacks within main's frame are learnt of."""
    times = 300
    run = run_selftest("calls.c", scenario, times)
    assert (run.code, run.stdout) == (0, "done\n"), run.stderr
    calls = 8 * times
    assert counts(run.recording, ENTER, EXIT) == {1: (calls, calls), 2: (calls, calls), 3: (calls, calls), 4: (calls + 8, calls + 8)}
    assert run.recording.count(UNWIND) <= (0 if scenario == "coroutines" else 1)
    who = {}
    for entry, payload in run.recording.entries_with_payload():
        if entry["kind"] == ENTER:
            who[int(entry["span"])] = (int(entry["hook"]), struct.unpack_from("<Q", payload)[0], int(entry["word"]))
    if scenario == "coroutines":
        for hook, number, parent in who.values():
            if hook in (1, 2):
                assert who[parent][:2] == (3, number), "the call is made by its own coroutine's"
            else:
                assert parent == 0


def test_coroutines_resumed_by_other_threads() -> None:
    times = 40
    run = run_selftest("calls.c", "coroutines_that_move", times)
    assert (run.code, run.stdout) == (0, "done\n"), run.stderr
    assert counts(run.recording, ENTER, EXIT, UNWIND) == {1: (8 * times, 8 * times, 0), 2: (8 * times, 8 * times, 0), 3: (8 * times, 8 * times, 0)}
    ends_once(run.recording)


@pytest.mark.parametrize("_turn", range(3))
def test_handlers_that_switch_stacks(_turn: int) -> None:
    """A 10 kHz timer whose handler goes on with another of four stacks: frames of the recorder itself end in any order, or never."""
    run = run_selftest("calls.c", "preemptive", 1_000, chunks=400, whole=False)
    assert run.code == 0, run.stderr
    assert run.numbers()["wrong"] == 0
    assert run.numbers()["switches"] >= 1_000
    ends_once(run.recording, still_open=12)
    assert run.recording.count(UNWIND) == 0


def test_exceptions_in_a_coroutine() -> None:
    run = run_selftest("exceptions.cpp", "in_a_coroutine", 40, build=("-O2", "-rdynamic"))
    assert (run.code, run.stdout) == (0, "done\n"), run.stderr
    assert counts(run.recording, ENTER, EXIT, UNWIND) == {1: (40, 40, 0), 2: (40, 20, 20), 3: (40, 20, 20), 4: (40, 40, 0)}
    [entries] = run.recording.threads.values()
    check_calls(entries)


@pytest.mark.parametrize("scenario", ["forks", "forks_in_thread"])
def test_forked_children_have_lanes_of_their_own(scenario: str) -> None:
    """The child returns from the call that forked it: that exit is the parent's record alone."""
    times = 25
    run = run_selftest("calls.c", scenario, times)
    assert (run.code, run.stdout) == (0, "done\n"), run.stderr
    recording = run.recording
    assert recording.count(ENTER, 3) == recording.count(EXIT, 3) == times
    owners = {chunk.thread: chunk.pid for chunk in recording.chunks}
    assert len(owners) == len(set(owners.values())) == times + 1
    sizes = Counter(entries.size for entries in recording.threads.values())
    assert sizes == {600: times, 8 * times: 1}
    for thread, entries in recording.threads.items():
        check_calls(entries)
        assert set((entries["span"] >> 40).tolist()) == {thread}


def test_vforked_children_share_their_parents_lane() -> None:
    run = run_selftest("calls.c", "vforks", 25)
    assert (run.code, run.stdout) == (0, "done\n"), run.stderr
    [entries] = run.recording.threads.values()
    check_calls(entries)
    assert entries.size == 25 * 12


def panicking(which: str, backtrace: str = "0") -> tuple[Run, Run]:
    """The Rust program traced and not."""
    binary = program("native_selftest/panics.rs", "-O")
    traced = run_preloaded(binary, [which], "selftest_*", environment={"RUST_BACKTRACE": backtrace})
    plain = run_preloaded(binary, [which], "", environment={"RUST_BACKTRACE": backtrace, "SELFTEST_PLAIN": "1"})
    return traced, plain


def without_ids(text: str) -> list[str]:
    """A panic message names the thread's id in brackets."""
    return [line.split(") panicked")[-1] if line.startswith("thread") else line for line in text.splitlines()]


@pytest.mark.parametrize(("which", "code"), [("caught", 0), ("thread", 0), ("uncaught", 101), ("abort", -6), ("overflow", -6)])
def test_rust_panics(which: str, code: int) -> None:
    traced, plain = panicking(which, "1")
    assert (traced.code, plain.code) == (code, code), traced.stderr
    assert traced.stdout == plain.stdout
    if which != "overflow":
        assert without_ids(traced.stderr) == without_ids(plain.stderr)
    if which == "caught":
        assert traced.recording.count(UNWIND) == 20
        [entries] = traced.recording.threads.values()
        check_calls(entries)
    if code == -6:
        assert traced.pool.crashes["signo"][0] == 6
