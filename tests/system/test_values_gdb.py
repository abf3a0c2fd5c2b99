"""Arguments and results of real programs' calls as debug_query shows them, against what gdb says of the same calls: none may be different."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.harness import node, real_programs
from tests.harness.gdb_values import RESULT, Load, by_gdb, by_strobe, compared, linkage_names, prepare_plans
from tests.harness.mcp import strobe_mcp
from tests.harness.targets import TARGETS
from tests.harness.value_differences import Tally

SQL: Final = TARGETS / "sqlite_load.sql"
CALLS: Final = (1, 2, 3, 5, 8)
SQLITE: Final = [
    "do_meta_command",
    "moveToChild",
    "patternCompare",
    "resolveExprStep",
    "sqlite3AddColumn",
    "sqlite3AtoF",
    "sqlite3BtreeCursor",
    "sqlite3BtreeInsert",
    "sqlite3BtreeOpen",
    "sqlite3CodeRowTrigger",
    "sqlite3CreateIndex",
    "sqlite3EndTable",
    "sqlite3ExprFunction",
    "sqlite3ExprCodeTarget",
    "sqlite3ExprListAppend",
    "sqlite3FindFunction",
    "sqlite3FindTable",
    "sqlite3Insert",
    "sqlite3LocateTable",
    "sqlite3PExpr",
    "sqlite3Prepare",
    "sqlite3ResolveExprNames",
    "sqlite3RunParser",
    "sqlite3Select",
    "sqlite3SelectNew",
    "sqlite3SrcListAppend",
    "sqlite3ValueText",
    "sqlite3VdbeAddOp3",
    "sqlite3VdbeExec",
    "sqlite3VdbeHalt",
    "sqlite3VdbeMemGrow",
    "sqlite3VdbeMemSetStr",
    "sqlite3VdbeMemStringify",
    "sqlite3VdbeRecordUnpack",
    "sqlite3WhereBegin",
    "sqlite3_column_text",
    "sqlite3_step",
    "sqlite3_str_append",
    "sqlite3_str_vappendf",
    "sqlite3_value_text",
    "upperFunc",
    "whereLoopAddBtree",
]
SIMPLECPP: Final = [
    "escapeString",
    "evaluate",
    "getFileName",
    "getIncludePathFileName",
    "getRelativeFileName",
    "isAlternativeUnaryOp",
    "openHeaderIncludePath",
    "preprocessToken",
    "simplecpp::Location::adjust",
    "simplecpp::Macro::appendTokens",
    "simplecpp::Macro::expandToken",
    "simplecpp::Macro::getMacroParameters",
    "simplecpp::Macro::newMacroToken",
    "simplecpp::Macro::recursiveExpandToken",
    "simplecpp::Token::flags",
    "simplecpp::Token::isOneOf",
    "simplecpp::Token::startsWithOneOf",
    "simplecpp::TokenList::clear",
    "simplecpp::TokenList::combineOperators",
    "simplecpp::TokenList::constFold",
    "simplecpp::TokenList::constFoldAddSub",
    "simplecpp::TokenList::constFoldBitwise",
    "simplecpp::TokenList::constFoldComparison",
    "simplecpp::TokenList::constFoldLogicalOp",
    "simplecpp::TokenList::constFoldMulDivRem",
    "simplecpp::TokenList::constFoldQuestionOp",
    "simplecpp::TokenList::constFoldShift",
    "simplecpp::TokenList::constFoldUnaryNotPosNeg",
    "simplecpp::TokenList::fileIndex",
    "simplecpp::TokenList::lineDirective",
    "simplecpp::TokenList::push_back",
    "simplecpp::TokenList::readUntil",
    "simplecpp::TokenList::readfile",
    "simplecpp::TokenList::removeComments",
    "simplecpp::TokenList::takeTokens",
    "simplecpp::characterLiteralToLL",
    "simplecpp::cleanup",
    "simplecpp::load",
    "simplecpp::preprocess",
    "simplecpp::simplifyPath",
    "simplifyHasInclude",
    "simplifySizeof",
    "stringToLL",
]
CPPCHECK: Final = [
    "CheckOther::checkZeroDivision",
    "CheckLeakAutoVar::checkScope",
    "CheckUnusedVar::checkFunctionVariableUsage",
    "CppCheck::reportErr",
    "Function::addArguments",
    "MathLib::isInt",
    "Path::simplifyPath",
    "Preprocessor::removeComments",
    "Suppressions::isSuppressed",
    "SymbolDatabase::createSymbolDatabaseFindAllScopes",
    "SymbolDatabase::isFunction",
    "Token::update_property_info",
    "TokenList::createAst",
    "TokenList::determineCppC",
    "Tokenizer::combineOperators",
    "Tokenizer::createLinks2",
    "Tokenizer::setVarId",
    "Tokenizer::simplifyTokenList1",
    "Tokenizer::simplifyTypedef",
    "Variable::evaluate",
]
EXPLAINED: Final = {
    r"(\.pVdbe|^p)\.pParse$": "sqlite3 leaves Vdbe.pParse pointing to where a Parse was on the stack; now other functions' frames are there",
    r"^pWalker\.u\.p\w+$": "Walker.u is a union of pointers: at most one of them points to what its type says, the others into it or past its end",
    r"\.aMem\.u\.r$": "sqlite3 allocates registers without clearing their values: bytes that others left there, as a double",
}
SMALL: Final = 60  # values of a call for which there is always room
INPUT: Final = {
    "part.h": """#ifndef PART_H
#define PART_H
#define SQUARE(x) ((x) * (x))
#define JOIN(a, b) a ## b
#define TEXT(x) #x
#define CALL(f, ...) f(__VA_ARGS__)
struct part { int JOIN(na, me); char text[SQUARE(4)]; };
#endif
""",
    "main.c": r"""#include "part.h"
#include "missing.h"
#define LIMIT 0x10
#define WRAPPED(x) TEXT(x) "and" TEXT(LIMIT)
#if LIMIT > 3 && defined(DEBUG) && __has_include("part.h")
#define LEVEL (LIMIT << 2)
#elif SQUARE(2) == 4
#define LEVEL 'a'
#else
#error no level
#endif
/* a comment */ int main(void) { // another
    int JOIN(a, 1) = SQUARE(LIMIT + 1), b = LEVEL;
    CALL(printf, "%d %s\n", a1 ? 3 : 4, WRAPPED(b));
    return __LINE__ + SQUARE(SQUARE(2)) - sizeof(struct part) % 7;
}
#line 100 "other.c"
#undef LIMIT
#define LIMIT(x, y) x y
const char *file = __FILE__, *s = LIMIT("a", "b");
#if 1 ? (2 * 3 + 4) / 5 - 'b' : ~0 && (1 << 4) >= (7 & 3 | 8) || sizeof(int) == 4
int last = JOIN(1, JOIN(2, 3));
#endif
""",
}


async def checked(load: Load, names: Sequence[str], values: int, home: Path, work: Path, noise: int = 20) -> Tally:
    """`values`: how many of an argument gdb shows; `noise` as in by_gdb."""
    home.mkdir()
    (home / "settings.json").write_text('{"redaction.enabled": false}')
    functions = linkage_names(load.program, names)
    first, second = by_gdb(load, functions, CALLS, values, work, noise)
    with node.environment(home, None, {}):
        prepare_plans(load, functions)
    async with strobe_mcp(home) as strobe:
        ours = await by_strobe(strobe, load, functions, first, [call for call, values in first.items() if RESULT in values])
    tally = compared(ours, first, second, EXPLAINED)
    assert not tally.differences, tally.summary()
    assert not tally.cut_although_small(SMALL)
    return tally


def sql(folder: Path) -> Path:
    """With fewer rows: with so few calls there is room for the values of all."""
    (folder / "load.sql").write_text(SQL.read_text().replace("i < 2000)", "i < 250)"))
    return folder / "load.sql"


async def test_sqlite3_values_are_gdbs(home: Path, tmp_path: Path) -> None:
    program = real_programs.sqlite3_shell()
    tally = await checked(Load(program, (":memory:",), program.parent, sql(tmp_path)), SQLITE, 200, home, tmp_path)
    assert len(tally.counts) >= 150
    assert len(tally.rich) >= 100


async def test_simplecpp_values_are_gdbs(home: Path, tmp_path: Path) -> None:
    for name, text in INPUT.items():
        (tmp_path / name).write_text(text)
    load = Load(real_programs.simplecpp(), ("-DDEBUG=1", "-DNAME=value", "-UWIN32", "-I.", "-Iinclude", "main.c"), tmp_path)
    tally = await checked(load, SIMPLECPP, 300, home, tmp_path)
    assert len(tally.counts) >= 100
    assert len(tally.rich) >= 80


@pytest.mark.full
async def test_more_sqlite3_values_are_gdbs(home: Path, tmp_path: Path) -> None:
    program = real_programs.sqlite3_shell()
    tally = await checked(Load(program, (":memory:",), program.parent, sql(tmp_path)), SQLITE, 3000, home, tmp_path, noise=200)
    assert len(tally.counts) >= 150


@pytest.mark.alone  # it is built from source first
@pytest.mark.full
async def test_cppcheck_values_are_gdbs(home: Path, tmp_path: Path) -> None:
    program = real_programs.cppcheck()
    load = Load(program, ("--enable=all", "--quiet", "samples"), program.parent)
    tally = await checked(load, CPPCHECK, 1000, home, tmp_path, noise=50)
    assert len(tally.counts) >= 80
    assert len(tally.rich) >= 60
