"""From debug info to what an event shows, without the recorder: plans run by the walk model on the memory of a program that gdb stopped."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, Final

import pytest

from actors.indexer.binary import Library
from actors.indexer.project_formatters import project_formatters
from strobe.values.bundle import Bundle
from tests.harness.gdb import entries
from tests.harness.plan_cores import Core, shown
from tests.harness.recorded_cores import recorded, without_addresses
from tests.harness.targets import program

_NAME: Final = re.compile(r"(case_[a-z_]+?)(?:\[|B|[A-Z]|$)")
LAST: Final = {"id": 2, "items": [], "next": None, "note": "last", "total": 0.5}
FIRST: Final = {
    "id": 1, "items": [{"name": "a book with a long title", "price": 10}, {"name": "pen", "price": 2}], "next": {"@": "0x…", **LAST}, "note": "first",
    "total": 12.25,
}  # fmt: skip
CIRCLE: Final = {"class": "shop::Circle", "id": 1, "radius": 2.5, "label": "a circle with a long label"}
NUMBERS: Final = [1, 2, *[0] * 98]
CRATE: Final = {"class": "shop::Crate", "id": 1, "numbers": [*NUMBERS, "… 20 more"], "last": "after many numbers"}
STORE: Final = {"class": "shop::Store", "id": 1, "first": "before very much", "numbers": [*NUMBERS, "… 900 more"], "…": "<not captured>"}
CRATED: Final = {"class": "shop::Crated", "title": "a front", **{key: CRATE[key] for key in ("id", "numbers", "last")}, "mark": "a mark on a crate"}
ROOT: Final = {"root": "a root that is virtual"}
TREE: Final = {
    "class": "shop::Tree", "left": "left of it", "right": "right of it, somewhat longer", "tree": "the tree with both of them", **ROOT,
}  # fmt: skip
CALLS: Final[dict[str, dict[str, Any]]] = {
    "case_pointer": {"order": {"@": "0x…", **FIRST}},
    "case_reference": {"order": FIRST, "after": 3},
    "case_by_value": {"order": FIRST, "after": 4},
    "case_string": {"text": "not so short a text"},
    "case_point": {"at": {"x": 3, "y": 4}, "mood": "wild"},
    "case_span": {"span": {"text": "span", "length": 4}, "after": 5},
    "case_map": {"map": {"one": 1, "two": 2}},
    "case_shape": {"shape": {"@": "0x…", **CIRCLE}},
    "case_second_base": {"named": {"@": "0x…", "class": "shop::Both", "id": 1, "name": "named", "more": 7}},
    "case_large": {"shape": {"@": "0x…", **CRATE}},
    "case_huge": {"shape": STORE},
    "case_far_base": {"shape": {"@": "0x…", **CRATED}},
    "case_near_base": {"front": {"@": "0x…", **CRATED}},
    "case_virtual_own": {"left": {"@": "0x…", "class": "shop::Left", "left": "left of it", **ROOT}},
    "case_virtual_whole": {"right": TREE},
    "case_virtual_base": {"root": {"@": "0x…", **TREE}},
    "case_no_vtable": {"shape": {"@": "0x…", "id": 9}},
    "case_owner": {"owner": {"@": "0x…", **CIRCLE}},
    "case_any": {"any": {"shop::Point": {"x": 7, "y": 8}}},
    "case_any_text": {"any": {"std::string": "a text in an any"}},
    "case_any_large": {"any": {"shop::Large": {"numbers": [1, 2, *[0] * 88], "last": "after many numbers"}}},
    "case_any_pointer": {"any": {"@": "0x…", "*": {"shop::Order *": {"@": "0x…", **LAST}}}},
    "case_any_nothing": {"any": None, "after": 6},
    "case_choice": {"choice": {"std::string": "chosen, and long enough"}, "maybe": {"x": 9, "y": 10}},
    "case_complex": {"number": "1.5-2.5i", "wide": 3.25},
    "case_null": {"order": None, "text": None},
    "case_bad": {"order": "<unreadable 0x10>"},
}
RETURNS: Final[dict[str, Any]] = {
    "case_give_order": {"id": 4, "items": [{"name": "pen", "price": 3}], "next": None, "note": "given", "total": 1.5},
    "case_give_point": {"x": 5, "y": -5},
    "case_give_string": "x" * 40 + "!",
    "case_give_vector": ["one", "two"],
    "case_give_pointer": {"@": "0x…", "name": "a book with a long title", "price": 10},
    "case_give_owner": {"@": "0x…", **CIRCLE},
    "case_give_wide": 6.5,
}


@pytest.fixture(autouse=True)
def _own_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(home))


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        ("g++", ("-O0",)), ("g++", ("-O2",)), pytest.param("clang++", ("-O0", "-fstandalone-debug"), id="clang"), ("g++", ("-O1", "-gdwarf-4", "-no-pie")),
        pytest.param("clang++", ("-O0", "-gdwarf-4", "-stdlib=libc++"), id="libc++"),
    ],
)
def test_what_a_plan_copies_shows_all_of_it(compiler: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    path = program("indexer/handed.cpp", *flags, compiler=compiler)
    functions = {raw: address for raw, address in entries(path).items() if raw.startswith("_ZN4shop") and "case_" in raw and "." not in raw}
    planned = Library().open(str(path)).plans.planned([(address, raw) for raw, address in functions.items()], math.inf, 3, project_formatters(None))
    (body,) = planned.types.values()
    bundle = Bundle.unpack(body)
    seen: set[str] = set()
    wrong: list[str] = []
    for call in recorded(path, functions, tmp_path):
        name = _NAME.search(call["function"])
        assert name is not None
        plan = planned.plans[functions[call["function"]]]
        found = shown(plan, bundle, call, Core(tmp_path / call["core"], path, call["bias"]))
        expected = CALLS.get(name[1], {}) if call["at"] == "enter" else {"return": RETURNS[name[1]]} if name[1] in RETURNS else {}
        for value, said in expected.items():
            seen.add(f"{name[1]}.{value}")
            if value in found and (ours := without_addresses(found[value])) != said:
                wrong.append(f"{name[1]}.{value}:\n  ours {json.dumps(ours)}\n  true {json.dumps(said)}")
            elif value not in found:
                wrong.append(f"{name[1]}.{value}: not captured")
    assert not wrong, "\n".join(wrong)
    assert len(seen) == sum(map(len, CALLS.values())) + len(RETURNS)
