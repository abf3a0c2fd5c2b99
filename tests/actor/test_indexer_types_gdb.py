"""Type tables against gdb's `ptype /o`: offset, bit offset and size of every field of a sample of records."""

from __future__ import annotations

import re
import subprocess
from typing import Final

import pytest

from strobe.model import type_nodes as nodes
from strobe.model.type_nodes import TypeId
from strobe.model.types import TypeTable
from tests.harness.targets import TARGETS, program, require
from tests.harness.type_facts import Typed

GDB_S: Final = 60
# `/*    0      |     8 */    struct tree *left;`, `/*      0: 3   |       4 */    int b : 5;`, in unions only the size
_FIELD: Final = re.compile(r"^/\*\s+(?:(\d+)(?::\s*(\d+))?\s+\|\s+)?(\d+)\s+\*/\s+(.*);$")
_NAME: Final = re.compile(r"(\w+)(?:\[[^;]*\])*(?:\)\(.*\)|\)\[.*\])?(?: : (\d+))?$")
_SIZELESS: Final = ("nothing",)  # of type nullptr_t, to which gdb gives no size
C_TYPES: Final = ("struct scalars", "struct bits", "struct packed_bits", "struct arrays", "struct tree", "list_node", "struct hidden", "struct mixed")
CPP_TYPES: Final = ("shop::Money", "shop::Order", "shop::Ring<shop::Money, 3>", "shop::Both", "shop::Derived", "shop::Library")

Field = tuple[str, int, int, int, int | None]  # name, offset, bit offset, size, bit size


def _gdb(typed: Typed, name: str) -> list[Field]:
    """The record's own fields, not those of records inside it."""
    command = [require("gdb"), "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "set width 0", "-ex", f"ptype /omt {name}", str(typed.path)]
    listing = subprocess.run(command, capture_output=True, text=True, timeout=GDB_S, stdin=subprocess.DEVNULL, check=True).stdout
    found: list[Field] = []
    depth = 0
    for line in listing.splitlines():
        match = _FIELD.match(line.rstrip()) if depth == 1 else None
        if match and (named := _NAME.search(match[4])) and not match[4].startswith("static "):
            bits = int(named[2]) if named[2] else None
            found.append((named[1], int(match[1] or 0), int(match[2] or 0), int(match[3]), bits))
        depth += line.count("{") - line.count("}")
    return found


def _ours(table: TypeTable, number: TypeId) -> list[Field]:
    record = table.stripped(number)
    assert isinstance(record, nodes.Record)
    own = [member for member in record.members if member.name and not member.artificial]
    return [(member.name, member.offset, member.bit_offset, table.size(member.type) or 0, member.bit_size) for member in own]


def _compare(typed: Typed, names: tuple[str, ...]) -> int:
    agreed = 0
    for name in names:
        table, number = typed.type(name)
        ours = {field[0]: field for field in _ours(table, number)}
        for field in _gdb(typed, name):
            if field[0] in ours and field[0] not in _SIZELESS:
                assert ours[field[0]][1:] == field[1:], f"{name}::{field[0]}: ours {ours[field[0]]}, gdb {field}"
                agreed += 1
    return agreed


@pytest.mark.parametrize("version", ["-gdwarf-5", pytest.param("-gdwarf-4", marks=pytest.mark.full)])
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.full)])
def test_c_records(compiler: str, version: str) -> None:
    typed = Typed.open(program("types/layout.c", "-O0", version, str(TARGETS / "types" / "hidden.c"), compiler=compiler))
    assert _compare(typed, C_TYPES) > 55


@pytest.mark.parametrize("version", [pytest.param("-gdwarf-5", marks=pytest.mark.full), "-gdwarf-4"])
@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=pytest.mark.full)])
def test_classes(compiler: str, version: str) -> None:
    typed = Typed.open(program("types/classes.cpp", "-O2", version, *(["-fstandalone-debug"] if compiler == "clang++" else []), compiler=compiler))
    assert _compare(typed, CPP_TYPES) > 20
