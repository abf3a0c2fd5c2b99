"""Patterns → places. Stage 1 only: names and symbols; `@usercode` and `@file:` are answered from stage 2's sources."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from actors.indexer.binary import Binary
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.functions import declared_at
from actors.indexer.explain import Explainer
from actors.indexer.matching import Match, Skipped, match_addresses, match_names
from actors.indexer.pattern import Pattern, parse
from actors.indexer.project import ProjectRoot
from strobe.errors import StrobeError
from strobe.model.probe import Place
from strobe.protocol.indexer import ResolveReply, Warnings

DECLARED_MAX: Final = 64  # functions whose own entries are read for file and line
DECLARED_S: Final = 0.1


class Sources:
    """Where functions are defined: from the line index; while there is none, from the functions' own entries, a few of them."""

    def __init__(self) -> None:
        self._end = time.monotonic() + DECLARED_S
        self._left = DECLARED_MAX

    def of(self, binary: Binary, match: Match) -> tuple[str, int | None] | None:
        address = int(match.table.values[match.row])
        if binary.lines is not None:
            found = binary.lines.sources.of(address)
            return None if found is None else (found[0], found[1] or None)
        if binary.finder is None or self._left <= 0 or time.monotonic() > self._end:
            return None
        self._left -= 1
        try:
            function = binary.finder.find(address, match.raw.partition("@")[0])
            return None if function is None else declared_at(function)
        except DwarfError:  # shown without its file
            return None


def place(binary: Binary, pattern: Pattern, match: Match, source: tuple[str, int | None] | None) -> Place:
    return Place(
        pattern=pattern.text,
        function=match.name.shown,
        function_raw=match.raw,
        full_name=match.name.full,
        module=binary.path,
        offset=int(match.table.values[match.row]),
        size=int(match.table.sizes[match.row]),
        file=source[0] if source else None,
        line=source[1] if source else None,
    )


class Resolver:
    """Resolves one ask. `open_binary` gives the file of a module path."""

    def __init__(
        self, open_binary: Callable[[str], Binary], modules: list[str], main_modules: list[str], project_root: str, limit: int, *, explain: bool = True
    ) -> None:
        self._open = open_binary
        self._explains = explain
        self._project_root = project_root
        self._project = ProjectRoot(project_root)
        self.wanting: list[str] = []
        self._main = [module for module in modules if module in set(main_modules)] or list(main_modules)
        self._others = [module for module in modules if module not in set(self._main)]
        self._limit = limit
        self.problems: dict[str, StrobeError] = {}

    def resolve(self, texts: Iterable[str]) -> ResolveReply:
        """Errors: INVALID_PATTERN, before anything is looked up."""
        patterns = [parse(text) for text in dict.fromkeys(texts)]
        self._index_small()
        sources = Sources()
        places: list[Place] = []
        warnings: list[Warnings] = []
        taken: set[tuple[str, int]] = set()
        matched_beyond = 0
        for pattern in patterns:
            skipped = Skipped()
            matches = self._match(pattern, skipped)
            explanation = None if matches or not self._explains else self._explain(pattern, skipped)
            warnings.append(Warnings(pattern=pattern.text, matched=len(matches), explanation=explanation))
            for binary, address, match in matches:
                if (binary.path, address) in taken:
                    continue
                if len(places) >= self._limit:
                    matched_beyond += 1
                    continue
                taken.add((binary.path, address))
                places.append(place(binary, pattern, match, sources.of(binary, match)))
        return ResolveReply(places=places, patterns=warnings, truncated=matched_beyond > 0)

    def _index_small(self) -> None:
        """So that the first trace of a new small program already names files and lines."""
        for path in self._main:
            binary = self._binary(path)
            if binary is not None and binary.quickly_indexed:
                binary.build_lines()

    def _explain(self, pattern: Pattern, skipped: Skipped) -> str:
        main = [binary for path in self._main if (binary := self._binary(path)) is not None]
        others = [binary for path in self._others if (binary := self._binary(path)) is not None]
        unreadable = [error.what for path, error in self.problems.items() if path in self._main]
        return Explainer(main, others, unreadable, self._project_root).explain(pattern, skipped)

    def _match(self, pattern: Pattern, skipped: Skipped) -> list[tuple[Binary, int, Match]]:
        if pattern.kind != "name":
            return self._match_sources([*self._main, *self._others], pattern, skipped)
        found = self._match_in(self._main, pattern, skipped)
        if not found and (pattern.literal or (pattern.key is not None and len(pattern.key.text) >= 3)):
            found = self._match_in(self._others, pattern, skipped)
        return found

    def _match_in(self, modules: list[str], pattern: Pattern, skipped: Skipped) -> list[tuple[Binary, int, Match]]:
        found: list[tuple[Binary, int, Match]] = []
        for module in modules:
            binary = self._binary(module)
            if binary is not None and len(found) <= self._limit:
                found += [(binary, address, match) for address, match in sorted(match_names(binary, pattern, skipped, self._limit + 1 - len(found)).items())]
        return found

    def _match_sources(self, modules: list[str], pattern: Pattern, skipped: Skipped) -> list[tuple[Binary, int, Match]]:
        """Functions by the file they are defined in. Files without debug info have none; those not indexed yet are noted in `wanting`."""
        belongs = self._project.holds if pattern.kind == "usercode" else pattern.matches_file
        found: list[tuple[Binary, int, Match]] = []
        for module in modules:
            binary = self._binary(module)
            if binary is None or binary.dwarf_file is None or (pattern.kind == "usercode" and binary.from_system and module not in self._main):
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
