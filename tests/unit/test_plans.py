"""Capture plans of real functions (what each value is and where it comes from), and our DWARF reader against pyelftools."""

from __future__ import annotations

import math
import shutil
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from elftools.elf.elffile import ELFFile

from actors.indexer.binary import Binary, Library
from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.functions import FunctionFinder, functions_of, linkage_name_of
from actors.indexer.elf import ElfFile
from actors.indexer.project_formatters import project_formatters
from strobe.lanes.layout import PlanOp
from strobe.model.probe import Plan
from strobe.values.bundle import Bundle
from tests.harness.gdb import entries
from tests.harness.plan_values import enter_steps, exit_steps
from tests.harness.targets import program, require


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path / "home"))


def _plan(path: Path, name: str, binary: Binary | None = None) -> Plan:
    raw = next(one for one in entries(path) if one == name or f"{len(name)}{name}" in one)
    found, _ = (binary or Library().open(str(path))).plans.get([(entries(path)[raw], raw)], math.inf)
    return found[entries(path)[raw]]


def _described(plan: Plan) -> list[str]:
    """`name: type = scalar from register`, in order; the result last."""
    names = ["rdi", "rsi", "rdx", "rcx", "r8", "r9", "rax"]
    sources = {}
    for op, arg, size, dst, imm in enter_steps(plan):
        on_stack = {PlanOp.STACK: f"stack+{imm}", PlanOp.STACK_CSTR: f"stack+{imm >> 12}"}
        register = f"xmm{arg}" if op == PlanOp.XMM else on_stack.get(op) or names[arg]
        sources[dst] = f"{register}:{size}"
    lines = []
    for value in plan.arguments:
        where = "" if value.source == "none" else f" {sources[value.offset]}"
        lines.append(f"{value.name}: {value.type_name} = {value.scalar}{where}")
    if plan.result is not None:
        xmm = any(step[0] == PlanOp.WORD_XMM for step in exit_steps(plan))
        where = "" if plan.result.source == "none" else " xmm0" if xmm else " rax"
        lines.append(f"-> {plan.result.type_name} = {plan.result.scalar}{where}")
    return lines


C = {
    "case_ints": [
        "a: char = char rdi:1", "b: signed char = int rsi:1", "c: unsigned char = uint rdx:1", "d: short int = int rcx:2",
        "e: short unsigned int = uint r8:2", "f: int = int r9:4", "-> int = int rax",
    ],
    "case_longs": [
        "a: long int = int rdi:8", "b: long unsigned int = uint rsi:8", "c: int64_t = int rdx:8", "d: uint64_t = uint rcx:8", "e: size_t = uint r8:8",
        "f: long long int = int r9:8", "g: long int = int stack+0:8", "h: int = int stack+8:4", "-> long int = int rax",
    ],
    "case_floats": ["a: float = float xmm0:4", "b: double = float xmm1:8", "c: float = float xmm2:4", "d: double = float xmm3:8", "-> double = float xmm0"],
    "case_bool": ["a: _Bool = bool rdi:1", "b: _Bool = bool rsi:1", "c: int = int rdx:4", "-> _Bool = bool rax"],
    "case_enum": ["a: enum color = enum rdi:4", "b: shade_t = enum rsi:4", "c: enum big = enum rdx:8", "-> enum color = enum rax"],
    "case_text": [
        "a: const char * = cstring rdi:8", "b: char * = cstring rsi:8", "c: const u8 * = pointer rdx:8", "d: void * = pointer rcx:8", "e: int * = pointer r8:8",
        "-> const char * = cstring rax",
    ],
    "case_callback": ["visit: visitor = pointer rdi:8", "other: int (*)() = pointer rsi:8", "depth: int = int rdx:4", "-> int = int rax"],
    "case_pair8": ["p: pair8 = opaque", "after: int = int rsi:4", "-> int = int rax"],
    "case_mixed16": ["before: int = int rdi:4", "m: mixed16 = opaque", "after: int = int rdx:4", "last: double = float xmm1:8", "-> double = float xmm0"],
    "case_big24": ["before: int = int rdi:4", "b: big24 = opaque", "after: int = int rsi:4", "-> long int = int rax"],
    "case_long_double": ["before: int = int rdi:4", "x: long double = opaque", "after: int = int rsi:4", "y: double = float xmm0:8", "-> int = int rax"],
    "case_int128": [
        "before: int = int rdi:4", "x: __int128 = opaque", "after: int = int rcx:4", "b: long int = int r8:8", "c: long int = int r9:8",
        "d: long int = int stack+0:8", "e: long int = int stack+8:8", "-> int = int rax",
    ],
    "case_hidden_result": ["a: int = int rsi:4", "b: long int = int rdx:8", "c: const char * = cstring rcx:8", "-> big24 = opaque"],
    "case_variadic": ["count: int = int rdi:4", "format: const char * = cstring rsi:8", "-> int = int rax"],
    "case_void": [],
    "case_const": [
        "a: int = int rdi:4", "b: volatile long int = int rsi:8", "c: const char * = cstring rdx:8", "d: char *restrict = cstring rcx:8", "-> int = int rax",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", C)
@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O2", "-gdwarf-4")])
def test_c(name: str, flags: tuple[str, ...]) -> None:
    assert _described(_plan(program("indexer/abi.c", *flags), name)) == C[name]


CPP = {
    "case_method": ["this: shop::Basket * = pointer rdi:8", "add: int = int rsi:4", "why: const char * = cstring rdx:8", "-> int = int rax"],
    "case_hidden_result_method": ["this: shop::Basket * = pointer rsi:8", "x: int = int rdx:4", "-> shop::Owner = opaque"],
    "case_static_method": ["x: double = float xmm0:8", "y: int = int rdi:4", "-> double = float xmm0"],
    "case_references": [
        "a: int & = pointer rdi:8", "b: const long int & = pointer rsi:8", "c: int && = pointer rdx:8", "d: const std::string & = pointer rcx:8",
        "-> int = int rax",
    ],
    "case_scoped_enum": ["a: shop::Size = enum rdi:1", "b: shop::Mood = enum rsi:8", "c: int = int rdx:4", "-> shop::Size = enum rax"],
    "case_owner": ["owner: shop::Owner = opaque", "after: int = int rsi:4", "text: const char * = cstring rdx:8", "-> int = int rax"],
    "case_string": ["text: std::string = opaque", "after: int = int rsi:4", "-> int = int rax"],
    "case_empty": ["nothing: shop::Empty = opaque", "after: int = int rdi:4", "again: shop::Empty = opaque", "last: double = float xmm0:8", "-> int = int rax"],
}  # fmt: skip


@pytest.mark.parametrize("name", CPP)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_cpp(name: str, compiler: str) -> None:
    found = _described(_plan(program("indexer/abi.cpp", "-O0", compiler=compiler), name))
    assert [line.replace("long int", "long") for line in found] == [line.replace("long int", "long") for line in CPP[name]]


def test_enumerators_have_the_values_of_their_type() -> None:
    plan = _plan(program("indexer/abi.c", "-O0"), "case_enum")
    assert plan.arguments[0].enumerators == {"RED": 1, "GREEN": 5, "BLUE": -3}
    assert plan.arguments[2].enumerators == {"HUGE_ONE": 0x123456789A}
    plan = _plan(program("indexer/abi.cpp", "-O0"), "case_scoped_enum")
    assert plan.arguments[0].enumerators == {"small": 1, "large": 200}


@pytest.mark.parametrize("source", ["indexer/abi.c", "indexer/abi.cpp", "indexer/abi.rs"])
def test_payloads_are_packed_and_aligned(source: str) -> None:
    path = program(source)
    binary = Library().open(str(path))
    wanted = [(address, name) for name, address in entries(path).items()]
    plans, _ = binary.plans.get(wanted, math.inf)
    assert sum(plan.typed for plan in plans.values()) > 30
    for plan in plans.values():
        taken = sorted((value.offset, value.size) for value in plan.arguments if value.source == "payload")
        assert all(offset % size == 0 for offset, size in taken)
        assert all(left[0] + left[1] <= right[0] for left, right in pairwise(taken))
        assert sorted((dst, size) for _, _, size, dst, _ in enter_steps(plan)) == taken
        assert all(offset + size <= 256 for offset, size in taken)


def test_a_clones_parameters_are_typed_only_as_far_as_locations_prove_them() -> None:
    path = program("indexer/symbols.c", "-O2", "-fno-inline")
    raw = next(name for name in entries(path) if name.startswith("cloned."))
    plan = Library().open(str(path)).plans.get([(entries(path)[raw], raw)], math.inf)[0][entries(path)[raw]]
    assert plan.typed
    assert {value.name: value.scalar for value in plan.arguments}["mode"] == "opaque", "its value is a constant of the clone"


def test_plans_are_kept_on_disk_and_rebuilt_when_damaged(tmp_path: Path) -> None:
    path = program("indexer/abi.c", "-O0")
    first = _plan(path, "case_ints")
    kept = next((tmp_path / "home" / "cache").glob("*/plans"))
    assert _plan(path, "case_ints") == first
    content = bytearray(kept.read_bytes())
    content[-5] ^= 0xFF
    kept.write_bytes(content)
    assert _plan(path, "case_ints") == first
    kept.write_bytes(b"")
    assert _plan(path, "case_ints") == first


def test_budget_leaves_the_rest_for_another_ask() -> None:
    path = program("indexer/abi.cpp", "-O2")
    wanted = [(address, name) for name, address in entries(path).items()]
    binary = Library().open(str(path))
    some, complete = binary.plans.get(wanted, time.monotonic() - 1)
    assert not complete and len(some) == 1
    everything, complete = binary.plans.get(wanted, math.inf)
    assert complete and len(everything) == len({address for address, _ in wanted})


def test_split_dwarf_is_told(tmp_path: Path) -> None:
    built = program("indexer/abi.c", "-O0", "-gsplit-dwarf")
    path = tmp_path / "abi"
    shutil.copy(built, path)
    binary = Library().open(str(path))
    assert not _plan(path, "case_ints", binary).typed
    assert "split DWARF" in next(iter(binary.plans.problems.values()))


def _deep(path: Path, *names: str, depth: int = 3) -> tuple[list[Plan], Bundle]:
    """Plans with types, of one table."""
    addresses = [entries(path)[next(one for one in entries(path) if one == name or f"{len(name)}{name}" in one)] for name in names]
    raw = {address: name for name, address in entries(path).items()}
    planned = Library().open(str(path)).plans.planned([(one, raw[one]) for one in addresses], math.inf, depth, project_formatters(None))
    (body,) = planned.types.values()
    assert planned.complete
    return [planned.plans[one] for one in addresses], Bundle.unpack(body)


def _whole(plan: Plan, bundle: Bundle) -> list[str]:
    """`name: type home at offset`, of the values that are more than numbers."""
    values = [*plan.arguments, *([plan.result] if plan.result else [])]
    kept = [value for value in values if value.scalar in ("opaque", "pointer")]
    return [f"{value.name}: {bundle.table[value.type].name} {value.home} {value.offset}" if value.type is not None else f"{value.name}: ?" for value in kept]


DEEP: Final = {
    "case_pair8": ["p: pair8 payload 0"],
    "case_mixed16": ["m: mixed16 payload 8"],
    "case_big24": ["b: big24 payload 8"],
    "case_long_double": ["x: long double payload 8"],
    "case_hidden_result": ["return: big24 pointed 0"],
    "case_sse16_result": ["return: sse16 payload 0"],
    "case_long_double_result": ["return: long double payload 0"],
    "case_text": ["c: const u8 * payload 16", "d: void * payload 24", "e: int * payload 32"],
    "case_vector": ["v: four_floats payload 8"],
}


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",)])
def test_values_that_are_no_numbers(flags: tuple[str, ...]) -> None:
    plans, bundle = _deep(program("indexer/abi.c", *flags), *DEEP)
    assert {name: _whole(plan, bundle) for name, plan in zip(DEEP, plans, strict=True)} == DEEP
    assert all(plan.typed and plan.depth == 3 for plan in plans)


def test_how_wholes_are_taken() -> None:
    names = ("case_mixed16", "case_big24", "case_hidden_result", "case_sse16_result", "case_complex_result", "case_long_double_result", "case_vector")
    plans, _ = _deep(program("indexer/abi.c", "-O0"), *names)
    steps = (enter_steps(plan) + exit_steps(plan) for plan in plans)
    found = {name: [(op.name, *rest) for op, *rest in one] for name, one in zip(names, steps, strict=True)}
    assert found["case_mixed16"][1:3] == [("GPR", 1, 8, 8, 0), ("XMM", 0, 8, 16, 0)]
    assert found["case_big24"][1:4] == [("STACK", 0, 8, 8, 0), ("STACK", 0, 8, 16, 8), ("STACK", 0, 8, 24, 16)]
    assert found["case_hidden_result"][3:5] == [("GPR", 6, 8, 0, 0), ("IMAGE", 0, 8, 8, 2048)], "it is where rax points: in the image"
    assert found["case_sse16_result"][2:] == [("XMM", 0, 8, 0, 0), ("XMM", 1, 8, 8, 0)]
    assert found["case_long_double_result"][2:] == [("X87", 0, 16, 0, 0)]
    assert found["case_vector"][1] == ("VECTOR", 0, 16, 8, 0)


@pytest.mark.parametrize(
    ("compiler", "flags", "captured"),
    [
        ("gcc", ("-O0", "-mavx"), True), ("gcc", ("-O2", "-mavx2"), True), ("gcc", ("-O0", "-march=x86-64-v3"), True), ("gcc", ("-O0",), False),
        ("gcc", ("-O0", "-mavx", "-mno-avx"), False), ("clang", ("-O0", "-mavx"), False), ("clang", ("-O2", "-mavx"), True), ("clang", ("-O2",), False),
    ],
)  # fmt: skip
def test_vectors_of_32_bytes_are_taken_where_they_are_known_to_be_in_registers(compiler: str, flags: tuple[str, ...], captured: bool) -> None:
    """By GCC's command line, or by what the location says; of Clang's the result is not known."""
    path = program("indexer/vectors.c", *flags, "-Wno-psabi", compiler=compiler)
    plans, _ = _deep(path, "case_wide", "case_give_wide", "case_widest")
    steps = [[step for step in (*enter_steps(plan), *exit_steps(plan)) if step[0] == PlanOp.VECTOR] for plan in plans]
    by_rules = captured and compiler == "gcc"
    assert [(op, arg, size) for op, arg, size, _, _ in steps[0]] == ([(PlanOp.VECTOR, 1, 32)] if captured else [])
    assert [(op, arg, size) for op, arg, size, _, _ in steps[1]] == [(PlanOp.VECTOR, 0, 32)] * (2 if by_rules else captured)
    assert steps[2] == []
    assert {one.name: one.source for one in plans[0].arguments}["vector"] == ("payload" if captured else "none")
    assert {one.name: one.source for one in plans[2].arguments}["vector"] == "none"


def test_what_needs_no_image_has_none() -> None:
    path = program("indexer/abi.c", "-O0")
    plans, _ = _deep(path, "case_ints", "case_mixed16", "case_text")
    assert plans[0].ops == _plan(path, "case_ints").ops and plans[0].image is None and plans[0].exit_image is None
    assert plans[1].image is None, "a struct without pointers"
    assert plans[2].image == 40 and plans[2].exit_image is None


def test_deep_plans_and_their_types_are_kept_on_disk(tmp_path: Path) -> None:
    path = program("indexer/abi.cpp", "-O0")
    first = _deep(path, "case_string", "case_vector_reference")
    kept = {file.name for file in (tmp_path / "home" / "cache").glob("*/plans*")}
    assert kept == {"plans-3"}
    assert _deep(path, "case_string", "case_vector_reference") == first
    assert _plan(path, "case_string").arguments[0].type is None
    assert _deep(path, "case_string", depth=1)[0][0].depth == 1
    assert {file.name for file in (tmp_path / "home" / "cache").glob("*/plans*")} == {"plans", "plans-1", "plans-3"}


def test_deep_plans_come_a_few_at_a_time() -> None:
    path = program("indexer/abi.cpp", "-O2")
    wanted = [(address, name) for name, address in entries(path).items() if "case_" in name]
    book = Library().open(str(path)).plans
    rounds = [book.planned(wanted, time.monotonic() - 1, 3, project_formatters(None)) for _ in range(40)]
    deep = [sum(plan.depth > 0 for plan in one.plans.values()) for one in rounds]
    assert deep == sorted(deep) and 4 <= deep[-1] < len(wanted) and 2 in deep and 3 in deep
    assert not any(one.complete for one in rounds)
    done = book.planned(wanted, math.inf, 3, project_formatters(None))
    assert done.complete and all(plan.depth == 3 for plan in done.plans.values() if plan.typed)
    assert {plan.types for plan in done.plans.values()} - {None} == set(done.types)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("flags", [("-O0",), ("-O0", "-no-pie")])
def test_codes_tell_the_classes_behind_a_class(compiler: str, flags: tuple[str, ...]) -> None:
    path = program("indexer/abi.cpp", *flags, compiler=compiler)
    bundle = _deep(path, "case_right")[1]
    listing = subprocess.run([require("nm"), "-C", str(path)], capture_output=True, text=True, check=True).stdout
    vtables = {line.split("vtable for ")[1]: int(line.split()[0], 16) for line in listing.splitlines() if " vtable for shop::" in line}
    found: dict[str, list[int]] = {}
    for code in bundle.codes:
        assert code.module == str(path)
        found.setdefault(bundle.table[code.type].name, []).append(code.address)
    both = vtables["shop::Both"]
    assert found["shop::Both"] == [both + 16, both + 56], "its own, and that of the base which is not at its start"
    assert found["shop::Left"] == [vtables["shop::Left"] + 16] and found["shop::Right"] == [vtables["shop::Right"] + 16]


def _functions_by_pyelftools(path: Path) -> dict[int, tuple[str, list[str]]]:
    """First address → (linkage name, own parameter names), the slow and complete way."""
    found: dict[int, tuple[str, list[str]]] = {}
    with path.open("rb") as file:
        info: Any = ELFFile(file).get_dwarf_info()
        for unit in info.iter_CUs():
            for entry in unit.iter_DIEs():
                if entry.tag != "DW_TAG_subprogram" or "DW_AT_low_pc" not in entry.attributes:
                    continue
                chain = [entry]
                while step := next((one for one in ("DW_AT_abstract_origin", "DW_AT_specification") if one in chain[-1].attributes), None):
                    chain.append(chain[-1].get_DIE_from_attribute(step))
                names = [one.attributes[key].value for key in ("DW_AT_linkage_name", "DW_AT_name") for one in chain if key in one.attributes]
                children = [child for child in entry.iter_children() if child.tag == "DW_TAG_formal_parameter"]
                own = [child.attributes["DW_AT_name"].value.decode() for child in children if "DW_AT_name" in child.attributes]
                found[entry.attributes["DW_AT_low_pc"].value] = (names[0].decode(), own)
    return found


@pytest.mark.parametrize(
    ("source", "flags", "compiler"),
    [
        ("indexer/names.cpp", ("-O0",), "g++"),
        ("indexer/names.cpp", ("-O2",), "g++"),
        ("indexer/abi.cpp", ("-O2", "-gdwarf-4", "-fdebug-types-section"), "g++"),
        ("indexer/abi.cpp", ("-O2", "-flto"), "g++"),
        ("indexer/abi.cpp", ("-O2",), "clang++"),
        ("indexer/abi.c", ("-O1", "-gdwarf-4"), "clang"),
        ("indexer/names.rs", (), "rustc"),
    ],
)
def test_the_reader_agrees_with_pyelftools(source: str, flags: tuple[str, ...], compiler: str) -> None:
    path = program(source, *flags, compiler=compiler)
    file = DwarfFile(ElfFile.open(str(path)))
    ours: dict[int, tuple[str | None, list[str]]] = {}
    for unit in file.units:
        for address, positions in functions_of(unit, complete=True).items():
            entry = unit.entry(positions[-1])
            assert entry is not None
            if entry.has(dw.LOW_PC):
                names = [child.text(dw.NAME) for child in entry.children() if child.tag == dw.FORMAL_PARAMETER]
                ours[address] = (linkage_name_of(entry), [name for name in names if name is not None])
    theirs = _functions_by_pyelftools(path)
    assert len(theirs) > 10
    assert ours == theirs
    finder = FunctionFinder(file)
    found = {address: finder.find(address, name) for address, (name, _) in theirs.items() if address}
    assert {address: linkage_name_of(entry) for address, entry in found.items() if entry} == {address: name for address, (name, _) in theirs.items() if address}
