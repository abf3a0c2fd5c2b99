"""Real programs built `-O2 -g`, 20 named functions traced under a load of their own: as many calls in the timeline as gdb's breakpoints count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.harness import gdb, real_programs
from tests.harness.mcp import strobe_mcp
from tests.harness.targets import TARGETS

SQL: Final = TARGETS / "sqlite_load.sql"
SQLITE_FUNCTIONS: Final = [
    "sqlite3_step",
    "sqlite3_finalize",
    "sqlite3Prepare",
    "sqlite3RunParser",
    "sqlite3GetToken",
    "sqlite3Select",
    "sqlite3Insert",
    "sqlite3CreateIndex",
    "sqlite3WhereBegin",
    "sqlite3WhereEnd",
    "sqlite3VdbeExec",
    "sqlite3VdbeHalt",
    "sqlite3BtreeInsert",
    "sqlite3BtreeDelete",
    "sqlite3BtreeCommit",
    "balance",
    "moveToChild",
    "resolveExprStep",
    "analyzeOneTable",
    "patternCompare",
]
# Mangled name → the name that Strobe's patterns and timeline use.
CPPCHECK_FUNCTIONS: Final = {
    "_ZN8CppCheck9reportErrERK12ErrorMessage": "CppCheck::reportErr",
    "_ZN9Tokenizer12createLinks2Ev": "Tokenizer::createLinks2",
    "_ZN9Tokenizer8setVarIdEv": "Tokenizer::setVarId",
    "_ZN9Tokenizer16combineOperatorsEv": "Tokenizer::combineOperators",
    "_ZN9Tokenizer15simplifyTypedefEv": "Tokenizer::simplifyTypedef",
    "_ZN9Tokenizer18simplifyTokenList1EPKc": "Tokenizer::simplifyTokenList1",
    "_ZN14SymbolDatabase33createSymbolDatabaseFindAllScopesEv": "SymbolDatabase::createSymbolDatabaseFindAllScopes",
    "_ZNK14SymbolDatabase10isFunctionEPK5TokenPK5ScopePS2_S6_S6_": "SymbolDatabase::isFunction",
    "_ZN10CheckOther17checkZeroDivisionEv": "CheckOther::checkZeroDivision",
    "_ZN14CheckUnusedVar26checkFunctionVariableUsageEv": "CheckUnusedVar::checkFunctionVariableUsage",
    "_ZN12Preprocessor14removeCommentsEv": "Preprocessor::removeComments",
    "_ZNK9TokenList9createAstEv": "TokenList::createAst",
    "_ZN9TokenList13determineCppCEv": "TokenList::determineCppC",
    "_ZN8Function12addArgumentsEPK14SymbolDatabasePK5Scope": "Function::addArguments",
    "_ZN16CheckLeakAutoVar10checkScopeEPK5TokenP7VarInfoSt3setIiSt4lessIiESaIiEEi": "CheckLeakAutoVar::checkScope",
    "_ZN8Variable8evaluateEPK8Settings": "Variable::evaluate",
    "_ZN12Suppressions12isSuppressedERKNS_12ErrorMessageE": "Suppressions::isSuppressed",
    "_ZN4Path12simplifyPathENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE": "Path::simplifyPath",
    "_ZN7MathLib5isIntERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE": "MathLib::isInt",
    "_ZN5Token20update_property_infoEv": "Token::update_property_info",
}


async def counted(home: Path, program: Path, arguments: Sequence[str], names: Sequence[str], *, root: Path, stdin: str | None = None) -> dict[str, int]:
    """Calls of each of `names` in the timeline after `program` ran to its end under Strobe; nothing may have been lost."""
    async with strobe_mcp(home) as strobe:
        more = {} if stdin is None else {"stdin": stdin}
        session_id = await strobe.launch(program, *arguments, root=root, trace=list(names), cwd=str(root), **more)
        status = await strobe.until_ended(session_id, within_s=120)
        assert status["status"] == "exited", status
        rows = await strobe.rows(session_id, "SELECT function, count(*) FROM events_v WHERE event_type = 'function_enter' GROUP BY function")
        reply = await strobe.call("debug_query", sessionId=session_id, limit=1)
        assert not any(reply.get("eventsDropped", {}).values()), reply["eventsDropped"]
        return {name: int(count) for name, count in rows}


def check(found: Mapping[str, int], expected: Mapping[str, int]) -> None:
    assert len(expected) == 20
    different = {name: (found.get(name, 0), count) for name, count in expected.items() if found.get(name, 0) != count}
    assert not different, f"(Strobe, gdb): {different}"
    assert set(found) <= set(expected), f"traced without being asked: {set(found) - set(expected)}"


async def test_sqlite3_call_counts_are_gdbs(home: Path) -> None:
    program = real_programs.sqlite3_shell()
    addresses = gdb.entries(program)
    expected = gdb.call_counts(program, [":memory:"], {name: addresses[name] for name in SQLITE_FUNCTIONS}, cwd=program.parent, stdin=SQL)
    assert all(expected.values()), f"the load does not reach each function: {expected}"
    found = await counted(home, program, [":memory:"], SQLITE_FUNCTIONS, root=program.parent, stdin=SQL.read_text())
    check(found, expected)


@pytest.mark.alone  # it is built from source first
@pytest.mark.full
async def test_cppcheck_call_counts_are_gdbs(home: Path) -> None:
    program = real_programs.cppcheck()
    folder = program.parent
    assert real_programs.source_lines("lib/*.cpp", "lib/*.h", "cli/*.cpp", "cli/*.h", "externals/**/*.cpp", "externals/**/*.h", under=folder) >= 100_000
    addresses = gdb.entries(program)
    load = ["--enable=all", "--quiet", "samples"]
    expected = gdb.call_counts(program, load, {name: addresses[mangled] for mangled, name in CPPCHECK_FUNCTIONS.items()}, cwd=folder)
    assert all(expected.values()), f"the load does not reach each function: {expected}"
    found = await counted(home, program, load, list(CPPCHECK_FUNCTIONS.values()), root=folder)
    check(found, expected)
