"""Definitions are found where they are likely first, and everywhere else after that; quick ways of reading say what slow ones do."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from actors.indexer.dwarf import abbreviations
from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import read_table
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.functions import FunctionFinder
from actors.indexer.dwarf.homes import Homes
from actors.indexer.dwarf.quick_find import find, find_each
from actors.indexer.dwarf.type_index import TypeIndex
from actors.indexer.elf import ElfFile
from actors.indexer.leb import encoded
from tests.harness.gdb import entries
from tests.harness.targets import TARGETS, program


def _two_units(compiler: str, version: str) -> DwarfFile:
    flags = ("-O1", f"-gdwarf-{version}", str(TARGETS / "types" / "homes_defined.cpp"))
    return DwarfFile(ElfFile.open(str(program("types/homes.cpp", *flags, compiler=compiler))))


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("version", ["4", "5"])
def test_a_class_is_at_home_in_the_unit_of_its_functions(compiler: str, version: str) -> None:
    file = _two_units(compiler, version)
    homes = Homes(file)
    for scopes, own in (("shop::", "Order"), ("shop::", "Box<int>"), ("(anonymous namespace)::", "Hidden")):
        assert [unit.root.text(dw.NAME) for unit in homes.of(scopes, own)] == [str(TARGETS / "types" / "homes_defined.cpp")], own
    assert not homes.of("", "Plain")
    assert not homes.of("shop::", "Orde")
    assert not homes.of("", "operator<")


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("version", ["4", "5"])
def test_definitions_in_other_units_are_found_with_and_without_a_home(compiler: str, version: str) -> None:
    file = _two_units(compiler, version)
    index = TypeIndex(file)
    for name in ("shop::Order", "shop::Box<int>", "Plain"):
        found = next(index.types(name, math.inf))
        assert not found.has(dw.DECLARATION) and found.number(dw.BYTE_SIZE), name
    declared = [entry for name in ("shop::Order", "Plain") for entry in index.types(name, math.inf) if entry.has(dw.DECLARATION)]
    assert len(declared) == 2
    for entry in declared:
        definition = index.definition_of(entry, math.inf)
        assert definition is not None and definition.unit is not entry.unit and definition.number(dw.BYTE_SIZE)


@given(some.integers(0, 1 << 32), some.integers(0, 5900), some.integers(0, 12), some.integers(0, 8), some.sampled_from([1, 2, 3, 255]))
@example(0, 4000, 8, 0, 0)
def test_a_quick_search_finds_what_a_plain_one_does(seed: int, at: int, length: int, zeros: int, mask: int) -> None:
    data = bytes(byte & mask for byte in Random(seed).randbytes(6000))
    needle = data[at : at + length] + bytes(zeros)
    for begin, end in ((0, len(data)), (7, len(data) - 5), (at, len(data)), (len(data) - 3, len(data))):
        assert find(data, needle, begin, end) == data.find(needle, begin, end)


_NUMBER = some.one_of(some.integers(1, 0x7F), some.integers(0x80, 0x3FFF))
_ATTRIBUTE = some.tuples(_NUMBER, some.sampled_from([0x01, 0x08, 0x0B, 0x0E, 0x13, 0x18, 0x19, 0x1F, 0x21, 0x1F21]), some.integers(-(1 << 30), 1 << 30))
_SHAPE = some.tuples(_NUMBER, some.booleans(), some.lists(_ATTRIBUTE, max_size=6))


def _signed(number: int) -> bytes:
    found = bytearray()
    while not -64 <= number < 64:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number & 0x7F)
    return bytes(found)


def _written(code: int, tag: int, children: bool, attributes: list[tuple[int, int, int]]) -> bytes:
    parts = [encoded(code), encoded(tag), bytes([children])]
    parts += [encoded(name) + encoded(form) + (_signed(value) if form == dw.F_IMPLICIT_CONST else b"") for name, form, value in attributes]
    return b"".join(parts) + b"\0\0"


@given(some.lists(_SHAPE, max_size=200), some.sampled_from([4, 8]))
def test_abbreviations_known_from_other_tables_are_read_the_same(shapes: list[tuple[int, bool, list[tuple[int, int, int]]]], offset_bytes: int) -> None:
    data = b"".join(_written(code, *shape) for code, shape in enumerate(shapes, 1)) + b"\0"
    abbreviations._shapes[offset_bytes].clear()
    first = read_table(data, 0, offset_bytes)
    again = read_table(data, 0, offset_bytes)
    assert first == again
    expected = [(tag, children, [(name, form, value if form == dw.F_IMPLICIT_CONST else 0) for name, form, value in rows]) for tag, children, rows in shapes]
    assert [(one.tag, one.children, [*one.attributes]) for one in first.values()] == expected
    assert list(first) == list(range(1, len(shapes) + 1))


@given(some.integers(0, 1 << 32), some.lists(some.tuples(some.integers(0, 5900), some.sampled_from([4, 8])), max_size=20), some.sampled_from([1, 3, 255]))
def test_a_search_for_many_finds_what_searches_for_each_do(seed: int, wanted: list[tuple[int, int]], mask: int) -> None:
    data = bytes(byte & mask for byte in Random(seed).randbytes(6000))
    needles = {data[at : at + length] for at, length in wanted} | {b"none", bytes(8)}
    for begin, end in ((0, len(data)), (7, len(data) - 5), (len(data) - 3, len(data))):
        found = find_each(data, needles, begin, end)
        assert found == {needle: [at for at in range(begin, end) if data.startswith(needle, at) and at + len(needle) <= end] for needle in needles}
    assert find_each(data, [], 0, len(data)) == {}


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("version", ["4", "5"])
def test_functions_that_were_expected_are_the_same(compiler: str, version: str) -> None:
    path = program("indexer/abi.cpp", "-O2", f"-gdwarf-{version}", compiler=compiler)
    file = DwarfFile(ElfFile.open(str(path)))
    alone, together = FunctionFinder(file), FunctionFinder(file)
    functions = {address: name for name, address in entries(path).items() if address}
    together.expect([*functions, 0, 1 << 63])
    found = {address: together.find(address, name) for address, name in functions.items()}
    assert sum(entry is not None for entry in found.values()) > 40
    for address, name in functions.items():
        entry, same = alone.find(address, name), found[address]
        assert (entry and entry.offset) == (same and same.offset), name
