"""The recorder's C code under AddressSanitizer and UndefinedBehaviorSanitizer, and the whole of it under valgrind.

Sanitizers see the C parts in an ordinary program (parts.c). Thunks, exit stub and hijacked returns are assembly and return to where no
compiler-made frame expects it, so those run under valgrind, which follows instructions; crash handlers and 10 kHz timers run under
neither: valgrind delivers signals at its own points, and a fault belongs to it.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from strobe.lanes.generate import stale
from tests.harness.recorder import NATIVE, recorder_library, temporary_pool
from tests.harness.targets import program, require

C_PARTS = (
    "pool.c", "maps.c", "thread.c", "lane.c", "hook.c", "plan.c", "capture.c", "walk.c", "walk_containers.c", "walk_compile.c", "faults.c", "copy.S",
    "managed.c", "shadow.c", "reap.c", "unwind.c", "marks.c", "crash.c", "signals.c",
)  # fmt: skip


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """parts.c with all of the recorder's C. The recorder's own memcpy and memset are renamed: the sanitizer has its own."""
    folder = tmp_path_factory.mktemp("parts")
    flags = ["-g", "-O1", "-std=gnu11", "-Wall", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-pthread"]
    renamed = ["-Dmemcpy=recorder_memcpy", "-Dmemset=recorder_memset"]
    source = Path(__file__).resolve().parents[1] / "targets" / "native_selftest" / "parts.c"
    sources = [source, *(NATIVE / f"recorder_{part}" for part in C_PARTS)]

    def compiled(path: Path) -> Path:
        made = folder / f"{path.stem}.o"
        subprocess.run([require("gcc"), *flags, *renamed, "-c", "-o", made, path], check=True, stdin=subprocess.DEVNULL, timeout=180)
        return made

    with ThreadPoolExecutor(os.cpu_count()) as compilers:
        objects = list(compilers.map(compiled, sources))
    subprocess.run([require("gcc"), *flags, "-o", folder / "parts", *objects], check=True, stdin=subprocess.DEVNULL, timeout=180)
    return folder / "parts"


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
