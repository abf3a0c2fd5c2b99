"""Damaged memory under Rust's types: whatever lies there, an answer comes, soon and in bounds."""

from __future__ import annotations

import json
import random
import struct
import time
from dataclasses import dataclass

import pytest

from strobe.values.memory import Missing
from strobe.values.reader import Limits, Reader
from strobe.values.registry import Formatters
from tests.harness.live_values import LiveSymbols, Types, running, types_of
from tests.harness.targets import program

BASE, SIZE = 0x10_0000, 1 << 14
ANSWER_S = 5
ANSWER_BYTES = 4 << 20


@dataclass
class Arena:
    """Small numbers, pointers into itself, and noise."""

    data: bytes

    @classmethod
    def of(cls, seed: int) -> Arena:
        dice = random.Random(seed)
        words = []
        for _ in range(SIZE // 8):
            kind = dice.randrange(4)
            small = dice.choice((0, 1, 2, 3, 7, 11, 12, 63))
            words.append((small, BASE + dice.randrange(SIZE), dice.getrandbits(64), (1 << 64) - 1 - small)[kind])
        return cls(struct.pack(f"<{len(words)}Q", *words))

    def read(self, address: int, size: int) -> bytes | Missing:
        at = address - BASE
        if not 0 <= at < SIZE:
            return Missing("unreadable", address)
        return self.data[at : at + size] if at + size <= SIZE else Missing("cut", BASE + SIZE)


@pytest.fixture(scope="module")
def types() -> Types:
    with running(program("values/rust.rs")) as live:
        return types_of(live, names=False)


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 21))])
def test_every_type_of_a_program_over_noise(types: Types, seed: int) -> None:
    dice = random.Random(seed)
    arena = Arena.of(seed)
    concrete = {BASE + at: number for at, number in enumerate(sorted(types.symbols.types.values()))}
    reader = Reader(types.table, arena, Formatters.built_in(), Limits(depth=4), LiveSymbols({}, concrete))
    for number in range(len(types.table)):
        start = time.monotonic()
        answer = json.dumps(reader.at(number, BASE + dice.randrange(SIZE)))
        assert len(answer) < ANSWER_BYTES, types.table[number].name
        assert time.monotonic() - start < ANSWER_S, types.table[number].name
