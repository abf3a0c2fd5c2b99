"""Random capture plans on random memory against the recorder's copier: nothing faults, hangs or is written past the payload, and what is copied is what
a model of the layout's words says (tests/harness/walk_model.py)."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from strobe.lanes.layout import EntryFlag
from tests.harness.recorder import temporary_pool, with_recorder
from tests.harness.targets import TARGETS, require
from tests.harness.walk_model import captured
from tests.harness.walk_model_walk import PAGE, Memory

ARENA, PAGES = 0x2000_0000_0000, 8
SOURCE = TARGETS / "native_selftest" / "walks_fuzz.c"
DEADLINE_S = 300


@dataclass(frozen=True)
class Case:
    number: int
    plan: bytes
    room: int
    registers: list[int]
    payload: bytes
    cut: bool
    memory: Memory


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_recorder(SOURCE, tmp_path_factory.mktemp("fuzz"))


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_recorder(SOURCE, tmp_path_factory.mktemp("fuzz"), "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


def run(program: Path, pool: Path, *arguments: object, under: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = [*under, str(program), str(pool), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def read_cases(path: Path) -> Iterator[Case]:
    content = memoryview(path.read_bytes())
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        at += size
        return bytes(content[at - size : at])

    while at < len(content):
        number, plan, room, used, flags = struct.unpack("<5I", take(20))
        head, registers, payload, readable = take(plan), struct.unpack("<9Q", take(72)), take(used), take(PAGES)
        yield Case(number, head, room, list(registers), payload, bool(flags & EntryFlag.TRUNCATED), Memory(ARENA, take(PAGES * PAGE), readable))


@pytest.mark.parametrize(("seed", "cases"), [(1, 10_000), pytest.param(2, 100_000, marks=pytest.mark.full)])
def test_copies_what_the_layout_says(fuzzer: Path, tmp_path: Path, seed: int, cases: int) -> None:
    """By loads and by system calls alike: the program compares the two in every case."""
    with temporary_pool(16) as (pool, _):
        run(fuzzer, pool, seed, cases, tmp_path / "cases", 20)
    checked = large = 0
    for case in read_cases(tmp_path / "cases"):
        expected = captured(case.plan, case.registers, case.room, case.memory)
        if expected is not None:
            assert expected == (case.payload, case.cut), f"case {case.number} of seed {seed}"
            checked += 1
            large += len(case.payload) > 400
    assert checked > cases // 70
    assert large > cases // 2000, "most cases would say little"


@pytest.mark.parametrize(("seed", "cases"), [(3, 10_000), pytest.param(4, 100_000, marks=pytest.mark.full)])
def test_under_sanitizers(sanitized: Path, seed: int, cases: int) -> None:
    with temporary_pool(16) as (pool, _):
        done = run(sanitized, pool, seed, cases)
    assert done.stderr == ""
    words = done.stdout.split()
    numbers = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert cases // 5 < numbers["accepted"] < cases * 4 // 5, "valid and invalid plans"


def test_under_valgrind(fuzzer: Path, tmp_path: Path) -> None:
    """For what is read without being written. That the copying itself reads what is not there is no error."""
    kinds = [(function, size) for function in ("strobe_copy", "strobe_copy_text") for size in (1, 8)]
    (tmp_path / "expected").write_text("".join(f"{{\n{function}{size}\nMemcheck:Addr{size}\nfun:{function}\n}}\n" for function, size in kinds))
    with temporary_pool(16) as (pool, _):
        run(fuzzer, pool, 5, 1000, under=[require("valgrind"), "-q", "--error-exitcode=9", f"--suppressions={tmp_path / 'expected'}"])
