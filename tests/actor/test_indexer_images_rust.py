"""Trait objects and wide numbers of arguments and results: what plans copy, run by the walk model on the memory of a program that gdb stopped, shows them."""

from __future__ import annotations

import json
import math
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


def _circle(radius: float, label: str = "a circle with a long label") -> dict[str, Any]:
    return {"class": "handed::Circle", "radius": radius, "label": label}


_COUNTS: Final = {"@": "0x…", "@strong": 1, "@weak": 0}
CALLS: Final[dict[str, Any]] = {
    "case_reference": _circle(2.5),
    "case_exclusive": _circle(3.5),
    "case_boxed": _circle(4.5),
    "case_counted": {**_COUNTS, **_circle(5.5)},
    "case_aligned": {**_COUNTS, "class": "handed::Aligned", "side": 6.5, "names": ["one", "two"]},
    "case_wide": {"class": "handed::Wide", "first": 1, "filler": [*[7] * 100, "… 100 more"], "last": "at its end"},
    "case_number": {"class": "u32", "*": 12},
    "case_nested": {"class": "handed::Holder", "inner": _circle(7.5)},
    "case_list": [_circle(1.0), {"class": "u32", "*": 5}],
    "case_option": _circle(8.0),
    "case_closure": {"class": "handed::main::{closure_env#0}", "factor": 3.0, "text": "captured"},
    "case_error": {"class": "handed::Broken", "why": "a reason"},
    "case_wide_pair": ["1180591620717411303424", 2],
    "case_wide_turned": [7, -8],
    "case_wide_float": ["1208925819614629174706176", 2.5],
    "case_wide_two": ["-73786976294838206464", "170141183460469231731687303715884105728"],
    "case_wide_option": -3,
    "case_wide_none": None,
    "case_gone": "<unreadable 0x10>",
    "case_wrong": "<dyn handed::Shape at 0x…>",
}
RETURNS: Final[dict[str, Any]] = {
    "case_give_wide": "1237940039285380274899124227",
    "case_give_boxed": _circle(9.5, "a given circle"),
    "case_give_error": {"Err": {"class": "handed::Broken", "why": "number 3 is bad"}},
}


@pytest.fixture(autouse=True)
def _own_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(home))


@pytest.mark.parametrize("flags", [(), ("-O",), ("-Zdwarf-version=4",)], ids=["debug", "-O", "dwarf-4"])
def test_what_a_plan_copies_shows_all_of_it(flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "-Zdwarf-version=4" in flags:
        monkeypatch.setenv("RUSTC_BOOTSTRAP", "1")  # an option that only nightly compilers have otherwise
    path = program("indexer/handed.rs", *flags)
    functions = {name: address for name, address in entries(path).items() if name in CALLS or name in RETURNS}
    planned = Library().open(str(path)).plans.planned([(address, name) for name, address in functions.items()], math.inf, 3, project_formatters(None))
    (body,) = planned.types.values()
    bundle = Bundle.unpack(body)
    seen: set[str] = set()
    wrong: list[str] = []
    for call in recorded(path, functions, tmp_path):
        name = call["function"]
        expected = CALLS if call["at"] == "enter" else RETURNS
        if name not in expected:
            continue
        found = shown(planned.plans[functions[name]], bundle, call, Core(tmp_path / call["core"], path, call["bias"]))
        seen.add(name)
        if not found and "-O" in flags and name.startswith("case_wide_"):
            continue  # LLVM does not say of optimised code where all of these are: not captured
        if [without_addresses(one) for one in found.values()] != [expected[name]]:
            wrong.append(f"{name}:\n  ours {json.dumps(found)}\n  true {json.dumps(expected[name])}")
    assert not wrong, "\n".join(wrong)
    assert seen == {*CALLS, *RETURNS}
