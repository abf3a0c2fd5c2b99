"""The recorder's C code under AddressSanitizer and UndefinedBehaviorSanitizer, and the whole of it under valgrind.

Sanitizers see the C parts in an ordinary program (parts.c). Thunks, exit stub and hijacked returns are assembly and return to where no
compiler-made frame expects it, so those run under valgrind, which follows instructions; crash handlers and 10 kHz timers run under
neither: valgrind delivers signals at its own points, and a fault belongs to it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from strobe.lanes.generate import stale
from tests.harness.recorder import recorder_library, temporary_pool, with_recorder
from tests.harness.targets import TARGETS, program, require

SELFTEST = TARGETS / "native_selftest"

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """parts.c includes recorder_record.c, and stands in for what is assembly."""
    flags = [*SANITIZERS, "-Dmemcpy=recorder_memcpy", "-Dmemset=recorder_memset"]
    return with_recorder(SELFTEST / "parts.c", tmp_path_factory.mktemp("parts"), *flags, without=("recorder_record.c", "recorder_thunk.S", "recorder_remote.c"))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_parts_under_sanitizers(sanitized: Path, seed: int) -> None:
    with temporary_pool(16) as (path, _):
        run = subprocess.run([sanitized, path, str(seed)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""


USUAL = [("nesting", 30), ("strings", 1), ("coroutines", 10), ("forks", 2)]
MORE = [("tails", 5), ("doubles", 3), ("threads", 100), ("successors", 5), ("jumps", 20), ("output", 2), ("managed", 5)]


@pytest.mark.parametrize(("scenario", "argument"), [*USUAL, *(pytest.param(*case, marks=pytest.mark.full) for case in MORE)])
def test_scenarios_under_valgrind(scenario: str, argument: int) -> None:
    binary = program("native_selftest/calls.c", "-O2")
    command = [require("valgrind"), "-q", "--smc-check=all", "--error-exitcode=9", str(binary), str(recorder_library())]
    with temporary_pool(16) as (path, _):
        run = subprocess.run([*command, path, scenario, str(argument)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 0, run.stderr


def test_generated_layouts_are_current() -> None:
    assert stale() == []


def test_exit_stub_lies_where_its_unwind_rule_looks() -> None:
    """The rule finds its anchor from the pc: 64 bytes before the block of 64 that holds both the call and the exit stub (recorder_thunk.S)."""
    symbols = subprocess.run([require("nm"), recorder_library()], capture_output=True, text=True, check=True).stdout
    places = {name: int(value, 16) for value, _, name in (line.split() for line in symbols.splitlines())}
    assert places["strobe_enter_gpr"] % 64 == 0
    assert places["strobe_enter_gpr"] + 4 <= places["strobe_exit_stub"] < places["strobe_enter_gpr"] + 64


def test_library_has_no_writable_code() -> None:
    headers = subprocess.run([require("readelf"), "-lW", recorder_library()], capture_output=True, text=True, check=True).stdout
    assert "RWE" not in headers
    assert "GNU_RELRO" in headers
    assert os.access(recorder_library(), os.R_OK)
