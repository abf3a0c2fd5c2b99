"""Symbols that answer to a pattern: one per address, under the plainest of its names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from actors.indexer.binary import Binary
from actors.indexer.pattern import Pattern
from actors.indexer.source_name import SourceName, source_name
from actors.indexer.symbols import SymbolTable

_MORE: Final = ["frame_dummy", "__libc_csu_init", "__libc_csu_fini", "_dl_start", "_dl_start_user"]
# The C runtime's start-up code: wildcards pass it by, its exact name does not. `_start` has no caller to return to.
_START_FILES: Final = frozenset(
    ["_start", "_init", "_fini", "_dl_relocate_static_pie", "deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", *_MORE]
)
_PLAIN_C: Final = re.compile(r"[A-Za-z]\w*$")  # such a name is its own and only form
# What compilers make to run constructors of globals
_GENERATED: Final = re.compile(r"_GLOBAL__sub_[ID]_|_Z41__static_initialization_and_destruction_|__cxx_global_(?:var|array)_|__cxx_global_array_dtor")


@dataclass(slots=True)
class Match:
    """One address that answers to a pattern, with the best of its names."""

    table: SymbolTable
    row: int
    raw: str
    name: SourceName


@dataclass(slots=True)
class Skipped:
    """What answered to the pattern but is no place, by reason."""

    indirect: list[str] = field(default_factory=list)
    cold: int = 0
    thunks: int = 0
    start_files: int = 0

    def reasons(self) -> list[str]:
        found = []
        if self.indirect:
            names = ", ".join(f"`{name}`" for name in list(dict.fromkeys(self.indirect))[:3])
            found.append(f"{names}: indirect (IFUNC), the symbol is of the resolver that picks an implementation at start; trace the implementation.")
        if self.cold:
            found.append(f"{self.cold} split-off cold parts answer to it; they are jumped into, not called.")
        if self.thunks:
            found.append(f"{self.thunks} thunks answer to it; they only adjust `this` and jump to the function.")
        if self.start_files:
            found.append(f"{self.start_files} functions of the C runtime's start-up code answer to it; name one exactly to trace it.")
        return found


def match_names(binary: Binary, pattern: Pattern, skipped: Skipped, at_most: int) -> dict[int, Match]:
    """Address → match, for one file. Aliases of an address become one match, under the plainest name that answers. No more are looked for once there are
    `at_most`: a large program has 100,000 names, and each takes 30 µs."""
    found: dict[int, Match] = {}
    matches = pattern.regex.fullmatch
    for table, row, raw in binary.names(pattern.key):
        if _PLAIN_C.match(raw) and not matches(raw):
            continue
        _take(found, table, row, raw, pattern, skipped)
        if len(found) >= at_most:
            break
    return found


def match_addresses(binary: Binary, addresses: list[int], skipped: Skipped) -> dict[int, Match]:
    """Address → its plainest name."""
    found: dict[int, Match] = {}
    for table, row in binary.aliases(addresses):
        _take(found, table, row, table.name(row), None, skipped)
    return found


def _take(found: dict[int, Match], table: SymbolTable, row: int, raw: str, pattern: Pattern | None, skipped: Skipped) -> None:
    """Adds a symbol to `found`, unless it does not answer to the pattern, is no function of its own, or a plainer alias is there."""
    name = source_name(raw)
    if pattern is not None and not pattern.matches(name):
        return
    if _skip(table, row, raw, name, pattern is not None and pattern.literal, skipped):
        return
    address = int(table.values[row])
    known = found.get(address)
    if known is None or _rank(table, row, raw, name) < _rank(known.table, known.row, known.raw, known.name):
        found[address] = Match(table, row, raw, name)


def _skip(table: SymbolTable, row: int, raw: str, name: SourceName, literal: bool, skipped: Skipped) -> bool:
    if bool(table.indirect[row]):
        skipped.indirect.append(name.shown)
        return True
    if name.cold:
        skipped.cold += 1
        return True
    if name.thunk:
        skipped.thunks += 1
        return True
    if not literal and (raw in _START_FILES or _GENERATED.match(raw)):
        skipped.start_files += 1
        return True
    return False


def _rank(table: SymbolTable, row: int, raw: str, name: SourceName) -> tuple[bool, bool, bool, int, int, int, str]:
    """Lower is plainer: no clone suffix, no symbol version, no reserved underscores, global before weak before local, known size, short."""
    bind = {1: 0, 2: 1}.get(int(table.binds[row]), 2)
    return (bool(name.suffix), "@" in raw, raw.startswith("__"), bind, 0 if int(table.sizes[row]) else 1, len(raw), raw)
