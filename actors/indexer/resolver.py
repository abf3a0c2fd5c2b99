"""Patterns → places. Stage 1 only: names and symbols; `@usercode` and `@file:` are answered from stage 2's sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from actors.indexer.binary import Binary
from actors.indexer.pattern import Pattern, parse
from actors.indexer.project import ProjectRoot
from actors.indexer.source_name import SourceName, source_name
from actors.indexer.symbols import SymbolTable
from strobe.errors import StrobeError
from strobe.model.probe import Place
from strobe.protocol.indexer import ResolveReply, Warnings

_MORE: Final = ["frame_dummy", "__libc_csu_init", "__libc_csu_fini", "_dl_start", "_dl_start_user"]
# The C runtime's start-up code: wildcards pass it by, its exact name does not. `_start` has no caller to return to.
_START_FILES: Final = frozenset(
    ["_start", "_init", "_fini", "_dl_relocate_static_pie", "deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", *_MORE]
)
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


def match_names(binary: Binary, pattern: Pattern, skipped: Skipped) -> dict[int, Match]:
    """Address → match, for one file. Aliases of an address become one match, under the plainest name that answers."""
    found: dict[int, Match] = {}
    for table, row, raw in binary.names(pattern.key):
        _take(found, table, row, raw, pattern, skipped)
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


def place(binary: Binary, pattern: Pattern, match: Match) -> Place:
    source = binary.lines.sources.of(int(match.table.values[match.row])) if binary.lines is not None else None
    return Place(
        pattern=pattern.text,
        function=match.name.shown,
        function_raw=match.raw,
        full_name=match.name.full,
        module=binary.path,
        offset=int(match.table.values[match.row]),
        size=int(match.table.sizes[match.row]),
        file=source[0] if source else None,
        line=(source[1] or None) if source else None,
    )


class Resolver:
    """Resolves one ask. `open_binary` gives the file of a module path."""

    def __init__(self, open_binary: Callable[[str], Binary], modules: list[str], main_modules: list[str], project_root: str, limit: int) -> None:
        self._open = open_binary
        self._project = ProjectRoot(project_root)
        self.wanting: list[str] = []
        self._main = [module for module in modules if module in set(main_modules)] or list(main_modules)
        self._others = [module for module in modules if module not in set(self._main)]
        self._limit = limit
        self.problems: dict[str, StrobeError] = {}

    def resolve(self, texts: Iterable[str]) -> ResolveReply:
        """Errors: INVALID_PATTERN, before anything is looked up."""
        patterns = [parse(text) for text in dict.fromkeys(texts)]
        places: list[Place] = []
        warnings: list[Warnings] = []
        taken: set[tuple[str, int]] = set()
        matched_beyond = 0
        for pattern in patterns:
            matches = self._match(pattern)
            warnings.append(Warnings(pattern=pattern.text, matched=len(matches)))
            for binary, address, match in matches:
                if (binary.path, address) in taken:
                    continue
                if len(places) >= self._limit:
                    matched_beyond += 1
                    continue
                taken.add((binary.path, address))
                places.append(place(binary, pattern, match))
        return ResolveReply(places=places, patterns=warnings, truncated=matched_beyond > 0)

    def _match(self, pattern: Pattern) -> list[tuple[Binary, int, Match]]:
        skipped = Skipped()
        if pattern.kind != "name":
            return self._match_sources([*self._main, *self._others], pattern, skipped)
        found = self._match_in(self._main, pattern, skipped)
        if not found and (pattern.literal or (pattern.key is not None and len(pattern.key) >= 3)):
            found = self._match_in(self._others, pattern, skipped)
        return found

    def _match_in(self, modules: list[str], pattern: Pattern, skipped: Skipped) -> list[tuple[Binary, int, Match]]:
        found: list[tuple[Binary, int, Match]] = []
        for module in modules:
            binary = self._binary(module)
            if binary is not None:
                found += [(binary, address, match) for address, match in sorted(match_names(binary, pattern, skipped).items())]
        return found

    def _match_sources(self, modules: list[str], pattern: Pattern, skipped: Skipped) -> list[tuple[Binary, int, Match]]:
        """Functions by the file they are defined in. Files without debug info have none; those not indexed yet are noted in `wanting`."""
        belongs = self._project.holds if pattern.kind == "usercode" else pattern.matches_file
        found: list[tuple[Binary, int, Match]] = []
        for module in modules:
            binary = self._binary(module)
            if binary is None or binary.dwarf_file is None:
                continue
            if binary.lines is None:
                self.wanting.append(module)
                continue
            addresses = binary.lines.sources.defined_in(belongs)
            found += [(binary, address, match) for address, match in sorted(match_addresses(binary, addresses, skipped).items())]
        return found

    def _binary(self, path: str) -> Binary | None:
        if path in self.problems:
            return None
        try:
            return self._open(path)
        except StrobeError as error:
            self.problems[path] = error
            return None
