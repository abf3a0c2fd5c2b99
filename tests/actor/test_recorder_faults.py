"""Captured pointers to memory that is not there: the target never faults, whatever its signals are set to, and goes on as it would without the recorder."""

from __future__ import annotations

import signal
import struct

import pytest

from strobe.lanes.layout import Kind, RegionState
from tests.harness.recorder import Run, run_selftest
from tests.harness.recording import check_calls
from tests.harness.walk_images import Images, check

SCENARIOS = [
    "pointers", "blocked", "blocked_thread", "own_handler", "ignored", "in_handlers", "suspended", "in_a_fault", "children", "small_stacks", "raw_handler",
    "plain_handler",
]  # fmt: skip
PAGE = 4096


def faults(scenario: str, argument: int = 0, **environment: str) -> Run:
    return run_selftest("faults.cpp", scenario, argument, chunks=256, environment=environment)


def results(run: Run) -> list[str]:
    return [line for line in run.stdout.splitlines() if line.startswith("result")]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_goes_on_as_without_the_recorder(scenario: str) -> None:
    run, plain = faults(scenario), faults(scenario, SELFTEST_PLAIN="1")
    assert (run.code, plain.code) == (0, 0), run.stdout + run.stderr
    assert results(run) == results(plain) != []
    _, said = check(run)
    assert said["state"] >= 4
    assert [page for page in run.pool.crashes if page["state"]] == [] or scenario == "children"


@pytest.mark.parametrize("scenario", ["pointers", "own_handler", "children"])
def test_the_same_before_the_handlers_are_armed(scenario: str) -> None:
    run = faults(scenario, SELFTEST_UNARMED="1")
    assert run.code == 0, run.stdout + run.stderr
    check(run)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_where_libc_could_not_be_patched(scenario: str) -> None:
    """A program linked statically: the kernel is asked at each event, and no load is risked once the program has a handler of its own."""
    run = faults(scenario, SELFTEST_UNHOOKED="1")
    assert run.code == 0, run.stdout + run.stderr
    check(run)


def test_dies_of_a_fault_of_its_own() -> None:
    run, plain = faults("dies"), faults("dies", SELFTEST_PLAIN="1")
    assert run.code == plain.code == -signal.SIGSEGV
    [page] = [page for page in run.pool.crashes if page["state"]]
    assert page["signo"] == signal.SIGSEGV
    assert page["code"] == 1


@pytest.mark.parametrize("turns", [3_000, pytest.param(10_000, marks=pytest.mark.full)])
def test_memory_that_comes_and_goes(turns: int) -> None:
    """Another thread maps, unmaps and protects a page while it is read: what is copied is a part of what was there, and the region says that it ends."""
    run = run_selftest("faults.cpp", "racing", turns, chunks=256, drained=True)
    assert run.code == 0, run.stdout + run.stderr
    images = Images(run)
    assert len(images.payloads) + run.recording.dropped_by_kind[Kind.ENTER] == run.numbers()["calls"]
    states = dict.fromkeys(RegionState, 0)
    for call, payload in images.payloads.items():
        [address] = struct.unpack_from("<Q", payload)
        for region in images.regions(call):
            own = PAGE - address % PAGE if address % PAGE > PAGE - 400 else 0
            assert region.address == address
            assert region.data[:own] == b"p" * len(region.data[:own])
            assert not region.data[own:].strip(b"g\0"), "the other page was filled, or new"
            assert len(region.data) >= own
            states[region.state] += 1
    assert states[RegionState.UNREADABLE] > 0
    assert states[RegionState.OK] > 0


def test_handlers_strike_in_the_copying() -> None:
    """At 10 kHz; what they capture lies behind what they interrupted, and both are whole."""
    run = run_selftest("faults.cpp", "alarms", 400, chunks=256, drained=True)
    assert run.code == 0, run.stderr
    numbers = run.numbers()
    images = Images(run)
    recording = run.recording
    dropped = recording.dropped_by_kind[Kind.ENTER]
    assert recording.count(Kind.ENTER) + dropped == numbers["calls"] + numbers["handled"]
    assert recording.count(Kind.ENTER) - recording.count(Kind.EXIT) == recording.dropped_by_kind[Kind.EXIT]
    for call in images.payloads:
        regions = images.regions(call)
        if call >= 0:
            assert [len(region.data) for region in regions] == [64] * 20
            assert [region.data[8:].split(b"\0")[0] for region in regions] == [b"node %d" % number for number in range(20)]
    if not dropped + recording.dropped_by_kind[Kind.EXIT]:
        [entries] = recording.threads.values()
        check_calls(entries, anywhere=1)
