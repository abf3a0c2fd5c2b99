"""Capture plans against gdb: the same arguments and results, for functions of real programs as they are called."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from actors.indexer.binary import Library
from actors.indexer.plan_book import PlanBook
from actors.indexer.project_formatters import project_formatters
from actors.indexer.source_name import source_name
from strobe.lanes.layout import PlanOp
from strobe.model.probe import Plan, Value
from strobe.model.types import TypeTable
from strobe.values.bundle import Bundle
from tests.harness import plan_wholes
from tests.harness.gdb import entries
from tests.harness.plan_values import captured, decode, exit_steps
from tests.harness.real_programs import sqlite3_shell
from tests.harness.targets import TARGETS, program, require

GDB_S = 300


@pytest.fixture(autouse=True)
def _own_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(home))


def _record(path: Path, functions: dict[str, int], arguments: str, tmp_path: Path, *, unoptimised: bool) -> list[dict[str, Any]]:
    asked, answered = tmp_path / "ask.json", tmp_path / "calls.json"
    pie = path.read_bytes()[16] == 3
    asked.write_text(json.dumps({"functions": functions, "hits": 3, "arguments": arguments, "pie": pie, "unoptimised": unoptimised}))
    environment = {**os.environ, "RECORD_IN": str(asked), "RECORD_OUT": str(answered)}
    script = TARGETS / "indexer" / "record_calls.py"
    command = [require("gdb"), "-nx", "-batch", "-iex", "set debuginfod enabled off", "-x", str(script), str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GDB_S, stdin=subprocess.DEVNULL, check=False, cwd=tmp_path)
    assert answered.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    calls: list[dict[str, Any]] = json.loads(answered.read_text())
    return calls


def _plans(path: Path, functions: dict[str, int]) -> dict[str, Plan]:
    binary = Library().open(str(path))
    book: PlanBook = binary.plans
    found, complete = book.get([(address, name) for name, address in functions.items()], math.inf)
    assert complete and not book.problems
    return {name: found[address] for name, address in functions.items()}


def _deep_plans(path: Path, functions: dict[str, int]) -> tuple[dict[str, Plan], dict[str, Bundle]]:
    """With types; bundles by key."""
    book: PlanBook = Library().open(str(path)).plans
    planned = book.planned([(address, name) for name, address in functions.items()], math.inf, 3, project_formatters(None))
    assert planned.complete and not book.problems
    return {name: planned.plans[address] for name, address in functions.items()}, {key: Bundle.unpack(body) for key, body in planned.types.items()}


def _check_wholes(path: Path, functions: dict[str, int], calls: Iterable[dict[str, Any]]) -> tuple[set[str], set[str]]:
    """Values that are no numbers have the bytes that gdb has for them. (functions whose arguments agreed, whose results did)."""
    plans, bundles = _deep_plans(path, functions)
    given, returned, wrong = set(), set(), []
    for call in calls:
        plan = plans[call["function"]]
        if plan.types is None:
            continue
        table = bundles[plan.types].table
        for name, ours, theirs in plan_wholes.arguments(plan, call, table):
            given.add(source_name(call["function"]).shown)
            if ours != theirs:
                wrong.append(f"{call['function']}({name}): ours {ours.hex()}, gdb {theirs.hex()}")
        if plan.result is None or plan.result.type is None or not _gdb_finds(table, plan.result):
            continue
        for offset, ours, theirs in plan_wholes.result(plan, call, table):
            returned.add(source_name(call["function"]).shown)
            if ours != theirs:
                wrong.append(f"{call['function']} -> +{offset}: ours {ours.hex()}, gdb {theirs.hex()}")
    assert not wrong
    return given, returned


def _gdb_finds(table: TypeTable, result: Value) -> bool:
    """gdb takes a Rust function's result from where C would return it, and that of a C++ class that is not trivial as if it were its address."""
    language = table[result.type or 0].language
    return language == "c" or (language == "c++" and result.home == "payload")


def _same(ours: int | float, theirs: int | float, size: int) -> bool:
    if isinstance(theirs, float) or isinstance(ours, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    mask = (1 << 8 * size) - 1
    return ours & mask == theirs & mask


def _compare(calls: Iterable[dict[str, Any]], plans: dict[str, Plan]) -> tuple[dict[str, int], list[str]]:
    """(function → values that agreed, disagreements in words)."""
    agreed: dict[str, int] = {}
    wrong: list[str] = []
    for call in calls:
        plan = plans[call["function"]]
        for name, ours, theirs, size in [*_arguments(plan, call), *_result(plan, call)]:
            if _same(ours, theirs, size):
                agreed[call["function"]] = agreed.get(call["function"], 0) + 1
            else:
                wrong.append(f"{call['function']}({name}): ours {ours}, gdb {theirs}")
    return agreed, wrong


def _arguments(plan: Plan, call: dict[str, Any]) -> list[tuple[str, int | float, int | float, int]]:
    """(name, our value, gdb's value, size) where both have one."""
    ours = captured(plan, plan_wholes.entered(call))
    sizes = {value.name: value.size for value in plan.arguments}
    known = call.get("after", call["arguments"])
    return [(name, ours[name], theirs, sizes[name]) for name, theirs in known.items() if theirs is not None and name in ours]


def _result(plan: Plan, call: dict[str, Any]) -> list[tuple[str, int | float, int | float, int]]:
    result = plan.result
    if call.get("result") is None or "rax" not in call or not plan.typed:
        return []
    assert result is not None, f"{call['function']} returns something"
    if result.scalar == "opaque" or (result.source == "payload" and result.scalar != "pointer"):
        return []
    in_xmm = any(step[0] == PlanOp.WORD_XMM for step in exit_steps(plan))
    raw = int(call["xmm0" if in_xmm else "rax"]).to_bytes(8, "little")
    return [("return", decode(result, raw[: result.size]), call["result"], result.size)]


def _cases(path: Path) -> dict[str, int]:
    return {name: address for name, address in entries(path).items() if "case_" in name and not name.endswith(".cold")}


def _check_unoptimised(path: Path, tmp_path: Path, wholes: tuple[int, int] = (6, 0)) -> list[dict[str, Any]]:
    """`wholes`: how many functions at least have arguments and results that are no numbers, and agree."""
    functions = _cases(path)
    calls = _record(path, functions, "", tmp_path, unoptimised=True)
    agreed, wrong = _compare(calls, _plans(path, functions))
    assert not wrong
    assert len(agreed) >= 20
    agreed, wrong = _compare(calls, _deep_plans(path, functions)[0])
    assert not wrong
    given, returned = _check_wholes(path, functions, calls)
    assert min(len(given) - wholes[0], len(returned) - wholes[1]) >= 0, (given, returned)
    return calls


def _check_optimised(path: Path, truth: list[dict[str, Any]], tmp_path: Path) -> None:
    """Against the values that the unoptimised build had in the same calls: what gdb says of optimised code at entry is not always so."""
    functions = _cases(path)
    plans = _plans(path, functions)
    known: dict[str, list[dict[str, Any]]] = {}
    for call in truth:
        known.setdefault(source_name(call["function"]).shown, []).append(call)
    compared: set[str] = set()
    wrong: list[str] = []
    for call in _record(path, functions, "", tmp_path, unoptimised=False):
        plan, shown = plans[call["function"]], source_name(call["function"]).shown
        if not known.get(shown):
            continue
        true = known[shown].pop(0)
        addresses = {value.name for value in [*plan.arguments, *([plan.result] if plan.result else [])] if value.scalar in ("pointer", "cstring")}
        call["arguments"] = {name: value for name, value in true.get("after", {}).items() if name not in addresses}
        call["result"] = None if "return" in addresses else true.get("result")
        for name, ours, theirs, size in [*_arguments(plan, call), *_result(plan, call)]:
            compared.add(shown)
            if not _same(ours, theirs, size):
                wrong.append(f"{shown}({name}): ours {ours}, true {theirs}")
    assert not wrong
    assert len(compared) >= 15


def _check_optimised_wholes(path: Path, truth: list[dict[str, Any]], tmp_path: Path) -> int:
    """The same for values that are no numbers, but for addresses in them. How many functions had some."""
    functions = _cases(path)
    plans, bundles = _deep_plans(path, functions)
    known: dict[str, list[dict[str, Any]]] = {}
    for call in truth:
        known.setdefault(call["function"], []).append(call)
    compared: set[str] = set()
    wrong: list[str] = []
    for call in _record(path, functions, "", tmp_path, unoptimised=False):
        plan, true = plans[call["function"]], known[call["function"]].pop(0)
        table = bundles[plan.types or ""].table
        call["bytes"], call["parts"] = true.get("bytes", {}), true.get("parts")
        for name, ours, theirs in plan_wholes.arguments(plan, call, table):
            compared.add(call["function"])
            if ours != theirs:
                wrong.append(f"{call['function']}({name}): ours {ours.hex()}, true {theirs.hex()}")
        for offset, ours, theirs in plan_wholes.result(plan, call, table):
            compared.add(call["function"])
            if ours != theirs:
                wrong.append(f"{call['function']} -> +{offset}: ours {ours.hex()}, true {theirs.hex()}")
    assert not wrong
    return len(compared)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_class_of_aggregates(compiler: str, tmp_path: Path) -> None:
    quiet = ("-Wno-psabi", "-Wno-unknown-attributes")
    truth = _check_unoptimised(program("indexer/aggregates.c", "-O0", *quiet, compiler=compiler), tmp_path, (26, 14))
    for flags in (("-O2",), ("-O1", "-gdwarf-4")):
        assert _check_optimised_wholes(program("indexer/aggregates.c", *flags, *quiet, compiler=compiler), truth, tmp_path) >= 30


USUAL: Final = (("-O2",),)
MORE: Final = (("-O1",), ("-O2", "-gdwarf-4"))
RUST_USUAL: Final = (("-O",),)
RUST_MORE: Final = (("-C", "opt-level=1"), ("-C", "opt-level=3", "-C", "lto=fat"))
LANGUAGES: Final = [("abi.c", "gcc"), ("abi.c", "clang"), ("abi.cpp", "g++"), ("abi.cpp", "clang++")]


def _check_argument_kinds(source: str, compiler: str, variants: Iterable[tuple[str, ...]], tmp_path: Path) -> None:
    truth = _check_unoptimised(program(f"indexer/{source}", *([] if compiler == "rustc" else ["-O0"]), compiler=compiler), tmp_path)
    for flags in variants:
        _check_optimised(program(f"indexer/{source}", *flags, compiler=compiler), truth, tmp_path)


@pytest.mark.parametrize(("source", "compiler"), LANGUAGES)
def test_every_kind_of_argument(source: str, compiler: str, tmp_path: Path) -> None:
    _check_argument_kinds(source, compiler, (*USUAL, *MORE) if compiler == "gcc" else USUAL, tmp_path)


def test_every_kind_of_rust_argument(tmp_path: Path) -> None:
    _check_argument_kinds("abi.rs", "rustc", RUST_USUAL, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(("source", "compiler"), [*LANGUAGES[1:], ("abi.rs", "rustc")])
def test_every_kind_of_argument_in_full(source: str, compiler: str, tmp_path: Path) -> None:
    _check_argument_kinds(source, compiler, RUST_MORE if compiler == "rustc" else MORE, tmp_path)


def test_sqlite(tmp_path: Path) -> None:
    path = sqlite3_shell()
    functions = dict(sorted(entries(path).items())[::6])
    plans = _plans(path, functions)
    typed = [name for name, plan in plans.items() if plan.typed]
    script = tmp_path / "in.sql"
    script.write_text(
        "create table t(a int, b text, c real); insert into t values(1,'x',2.5),(2,'y',3.5); create index i on t(b);\n"
        "select a, upper(b), round(c*1.5, 1), group_concat(b), total(c) from t where b like 'x%' group by a order by c;\n"
        "with recursive n(x) as (select 1 union all select x+1 from n where x<50) select sum(x*1.25), printf('%s %d %f', 'a', 2, 3.5) from n;\n"
        "update t set c = c + 1 where a = 2; delete from t where a = 1; select json_object('k', a) from t; explain query plan select * from t;\n"
    )
    agreed, wrong = _compare(_record(path, functions, f":memory: < {script}", tmp_path, unoptimised=False), plans)
    assert not wrong
    assert len(agreed) >= 50
    assert len(typed) > 0.9 * len(functions)
