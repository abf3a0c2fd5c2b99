"""Damaged debug info: the module's own error or a table, in bounded time, whatever byte is wrong."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.functions import FunctionFinder
from actors.indexer.dwarf.type_graph import TypeGraph
from actors.indexer.dwarf.type_index import TypeIndex
from actors.indexer.dwarf.type_numbering import Limits
from actors.indexer.elf import ElfFile
from strobe.errors import StrobeError
from strobe.model.types import TypeTable
from tests.harness.gdb import entries
from tests.harness.targets import TARGETS, program

ROUNDS: Final = 200
ROUND_S: Final = 10.0  # far more than any round takes: a bound, not a measurement
NODES: Final = 500
NAMES: Final = ("struct scalars", "struct bits", "struct arrays", "struct anonymous", "struct mixed", "list_node")


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.full)])
def test_flipped_bytes(compiler: str, version: str, seed: int, tmp_path: Path) -> None:
    path = program("types/layout.c", "-O2", version, str(TARGETS / "types" / "hidden.c"), compiler=compiler)
    take = entries(path)["take"]
    whole = path.read_bytes()
    elf = ElfFile.open(str(path))
    sections = [section for name in (".debug_info", ".debug_abbrev") if (section := elf.section(name)) is not None]
    chance = random.Random(f"{seed} {version} {compiler}")
    damaged = tmp_path / "damaged"
    tables = errors = 0
    for _ in range(ROUNDS // 4):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 3, 10, 40))):
            section = chance.choices(sections, weights=(5, 1))[0]
            data[section.offset + chance.randrange(section.size)] ^= 1 << chance.randrange(8)
        damaged.write_bytes(data)
        started = time.monotonic()
        for outcome in _asked(damaged, take):
            tables += isinstance(outcome, TypeTable)
            errors += not isinstance(outcome, TypeTable)
        assert time.monotonic() - started < ROUND_S
    assert tables > ROUNDS // 4 and errors > 0


def _asked(path: Path, take: int) -> Iterator[TypeTable | Exception]:
    """What each question gives: a table or one of the errors that are allowed."""
    file = DwarfFile(ElfFile.open(str(path)))
    for number in range(len(NAMES) + 2):
        graph = TypeGraph(TypeIndex(file), Limits(nodes=NODES, end=time.monotonic() + ROUND_S / 4))
        try:
            if number < len(NAMES):
                graph.named(NAMES[number])
            elif number == len(NAMES):
                graph.variables("global_scalars")
            else:
                function = FunctionFinder(file).find(take, "take")
                if function is not None:
                    graph.function(function)
            table = graph.table()
            assert len(table) <= NODES and TypeTable.from_wire(table.to_wire()) == table
            for kind in range(len(table)):
                table.size(kind)
                assert sum(1 for _ in table.members(kind)) < 100_000
            yield table
        except (DwarfError, StrobeError) as error:
            yield error
