"""How Rust values travel, as the planner has it and as the compiler's own intermediate code says."""

from __future__ import annotations

import re
from typing import Final

from actors.indexer.abi import Passing
from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.functions import FunctionFinder, origins
from actors.indexer.dwarf.parameters import parameter_entries
from actors.indexer.elf import ElfFile
from actors.indexer.passing import passing, returning
from tests.harness.gdb import entries
from tests.harness.targets import program

FLAGS: Final = ("--crate-type=cdylib", "-C", "opt-level=3", "-C", "no-prepopulate-passes", "--emit=link,llvm-ir")
KNOWN: Final = 56
_DEFINED: Final = re.compile(r"define .*?(void|i\d+|ptr|float|double|\{[^}]*\}) @([ar]_\w+)\((.*)\) ")
_KIND: Final = re.compile(r"\s*(ptr|i\d+|float|double)\b(.*)")


def test_what_is_known_is_what_the_compiler_does() -> None:
    path = program("indexer/passing.rs", *FLAGS, name="libpassing.so")
    finder, symbols = FunctionFinder(DwarfFile(ElfFile.open(str(path)))), entries(path)
    known, wrong = 0, []
    for result, name, arguments in _DEFINED.findall(path.with_suffix(".ll").read_text()):
        ours = _ours(finder, symbols[name], name)
        theirs = _taken(arguments) if name.startswith("a_") else _returned(result, arguments)
        if ours.kind == "unknown":
            continue
        known += 1
        if not _agree(ours, theirs):
            wrong.append(f"{name}: compiler {theirs}, planner {ours}")
    assert not wrong, "\n".join(wrong)
    assert known >= KNOWN


def _ours(finder: FunctionFinder, address: int, name: str) -> Passing:
    entry = finder.find(address, name)
    assert entry is not None
    is_taken = name.startswith("a_")
    chain = parameter_entries(origins(entry))[0] if is_taken else origins(entry)
    return (passing if is_taken else returning)(next((one.reference(dw.TYPE) for one in chain if one.has(dw.TYPE)), None), "rust")


def _kinds(arguments: str) -> list[tuple[str, str]]:
    """(type, attributes) of each."""
    while (plain := re.sub(r"\([^()]*\)", "", arguments)) != arguments:
        arguments = plain
    return [(match[1], match[2]) for part in arguments.split(",") if (match := _KIND.match(part))]


def _taken(arguments: str) -> list[str]:
    return [kind for kind, _ in _kinds(arguments)[:-1]]  # the last one is the marker


def _returned(result: str, arguments: str) -> list[str]:
    if any("sret" in attributes for _, attributes in _kinds(arguments)):
        return ["hidden"]
    return [] if result == "void" else [part.strip() for part in result.strip("{}").split(",")]


def _agree(ours: Passing, theirs: list[str]) -> bool:
    """A register may be read wider than what is in it counts."""
    if ours.kind == "reference":
        return theirs in (["ptr"], ["hidden"])
    words = [word for kind in theirs for word in _words(kind)]
    pieces = [("sse" if piece.kind == "sse" else "integer", piece.size) for piece in ours.pieces]
    kinds = [kind for kind, _ in words] == [kind for kind, _ in pieces]
    return kinds and all(size <= wide for (_, size), (_, wide) in zip(words, pieces, strict=True))


def _words(kind: str) -> list[tuple[str, int]]:
    if kind in ("float", "double"):
        return [("sse", 4 if kind == "float" else 8)]
    size = 8 if kind == "ptr" else (int(kind.removeprefix("i")) + 7) // 8 if kind != "hidden" else 0
    return [("integer", 8), ("integer", 8)] if size == 16 else [("integer", size)]
