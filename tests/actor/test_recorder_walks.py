"""Walk programs on real structures: C's, the containers of libstdc++ and of libc++, tables made by hand as Rust has them. Bad memory: test_recorder_faults."""

from __future__ import annotations

import math
import os
import struct
import subprocess
from pathlib import Path

import pytest

from strobe.lanes.layout import REGION_BYTES, EntryFlag, Kind, RegionState
from strobe.values.memory import Image
from tests.harness.recorder import Run, recorder_library, run_selftest, temporary_pool
from tests.harness.targets import program, require
from tests.harness.walk_images import Images, check

SCENARIOS = ["structs", "texts", "arrays", "strings", "parts", "lists", "trees", "deques", "tables", "b_trees", "addresses", "near"]
LIBRARIES = {"libstdc++": ("g++", ("-O2",)), "libc++": ("clang++", ("-O2", "-stdlib=libc++"))}


def walks(scenario: str, argument: int = 0, library: str = "libstdc++", **environment: str) -> Run:
    compiler, flags = LIBRARIES[library]
    return run_selftest("walks.cpp", scenario, argument, build=flags, compiler=compiler, environment=environment)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_copies_what_a_program_names(scenario: str, library: str) -> None:
    _, said = check(walks(scenario, library=library))
    assert said["expect"] > 1 or (scenario, library) == ("strings", "libc++")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_copies_the_same_by_system_calls(scenario: str) -> None:
    """Where the crash handlers are not armed no fault may be risked."""
    check(walks(scenario, SELFTEST_UNARMED="1"))


@pytest.mark.parametrize("budget", [0, 8, 24, 40, 41, 100, 1000, 3000, 4000, 8000])
def test_budgets(budget: int) -> None:
    """Regions and their heads stay within the budget; the last is cut, and the entry says so. What is near comes before what is far."""
    images, _ = check(walks("budgets", budget))
    regions = images.regions(0)
    used = sum(REGION_BYTES + (len(region.data) + 7) // 8 * 8 for region in regions)
    assert used <= budget
    assert used > budget - REGION_BYTES - 8 or len(regions) == 102
    if len(regions) < 102:
        assert images.flags[0] & EntryFlag.TRUNCATED
        assert all(region.state == RegionState.OK for region in regions[:-1])
        assert not regions or len(regions[0].data) == 24 or regions[0].state == RegionState.CUT


def test_images_are_left_out_before_calls_are() -> None:
    """A pool that could not hold all images holds all calls, the first ones with theirs; the others are counted."""
    run = run_selftest("walks.cpp", "many", 8000, chunks=8, compiler="g++")
    images = Images(run)
    assert run.recording.dropped_by_kind == [0] * 16
    assert sorted(images.payloads) == list(range(8000))
    with_image = [call for call in range(8000) if images.regions(call)]
    assert with_image == list(range(len(with_image)))
    assert 2000 < len(with_image) < 7000
    assert all(len(images.regions(call)[0].data) == 320 for call in with_image)
    assert int(run.pool.header["images_left_out"]) == 8000 - len(with_image)


def long_double(ten: bytes) -> float:
    """Of the 80 bits of the x87, as a double; sign, exponent and mantissa with its leading 1."""
    mantissa, top = struct.unpack("<QH", ten)
    return math.ldexp(mantissa, (top & 0x7FFF) - 16383 - 63) * (-1 if top >> 15 else 1)


def test_vector_and_x87_registers_and_what_is_passed_in_memory() -> None:
    run = walks("registers")
    assert run.code == 0, run.stderr
    lines = [line.split() for line in run.stdout.splitlines()]
    for entry, payload in run.recording.entries_with_payload():
        hook = int(entry["hook"])
        if entry["kind"] == Kind.ENTER:
            [call] = struct.unpack_from("<q", payload, 8)
            if hook < 4:
                assert struct.unpack_from("<4f", payload, 24) == (call, 2, 3, 4)
            if hook < 3:
                image = Image.of(payload, 16)
                value, big = struct.unpack_from("<QQ", payload, 40)
                copied, words = image.read(value, 10), image.read(big, 40)
                assert isinstance(copied, bytes)
                assert long_double(copied) == pytest.approx(1 / 3 if hook == 1 else 1 / 7)
                assert words == struct.pack("<5q", 1, 2, 3, 4, 5)
        else:
            first, second = payload[:10], payload[16:26]
            assert payload[10:16] == payload[26:32] == bytes(6)
            if hook == 1:
                assert long_double(first) == pytest.approx(2 / 3 + call)
            if hook == 2:
                assert (long_double(first), long_double(second)) == pytest.approx((1 / 7, 1.5 * call))
            if hook in (1, 3, 4):
                assert second == bytes(10), "an empty register"
            if hook == 3:
                assert struct.unpack_from("<4f", payload, 32) == (2 * call, 2 + call, 3 + call, 4 + call)
            if hook == 4:
                assert first == bytes(10)
    x87 = [float.fromhex(line[0]) for line in lines]
    assert x87 == pytest.approx([2 / 3 + call for call in range(20)])
    expected = [sum((2 / 3 + call + i) * (1 / 7 - i) / (1.5 * call + i) for i in range(1, 9)) for call in range(20)]
    assert [float.fromhex(line[5]) for line in lines] == pytest.approx(expected), "the program's x87 stack is as it was"


@pytest.mark.skipif(" avx " not in Path("/proc/cpuinfo").read_text(), reason="the processor has no AVX")
def test_whole_vector_registers_of_avx() -> None:
    run = walks("wide_registers")
    assert run.code == 0, run.stderr
    expected = [(2.0 * call + call, 4.0 + call, 6.0 + call, 8.0 + call) for call in range(20)]
    assert [tuple(map(float, line.split())) for line in run.stdout.splitlines()] == expected, "the program's registers are as they were"
    returned = []
    for entry, payload in run.recording.entries_with_payload():
        if entry["kind"] == Kind.ENTER:
            [call] = struct.unpack_from("<q", payload, 0)
            assert struct.unpack_from("<4d", payload, 8) == (call, 2, 3, 4)
        else:
            returned.append(struct.unpack_from("<4d", payload, 0))
    assert returned == expected


def test_under_valgrind() -> None:
    """Nothing is read that was never written, and nothing is written where it should not be."""
    binary = program("native_selftest/walks.cpp", "-O2")
    for scenario in ("trees", "deques", "parts"):
        with temporary_pool(16) as (path, _):
            command = [require("valgrind"), "-q", "--smc-check=all", "--error-exitcode=9", str(binary), str(recorder_library()), str(path), scenario, "0"]
            quiet = {**os.environ, "SELFTEST_QUIET": "1"}
            run = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False, env=quiet)
        assert run.returncode == 0, run.stderr
