"""Why a pattern matched nothing, with proof: what was looked at, what is there instead, and what to write."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from actors.indexer.binary import Binary
from actors.indexer.demangle import itanium
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.inlining import Fate, fate_of
from actors.indexer.matching import Skipped
from actors.indexer.nearest import nearest_names
from actors.indexer.on_disk import mention_of, words_about
from actors.indexer.pattern import Pattern
from actors.indexer.source_name import source_name

INLINING_S: Final = 0.5
_SHOWN: Final = 5
_ABSENT: Final = "No function of the loaded modules has such a name; the pattern stays, and takes effect when a library that has one is loaded."


class Explainer:
    """For one ask. `main` are the modules that were looked in first, `unreadable` says why others could not be."""

    def __init__(self, main: Sequence[Binary], others: Sequence[Binary], unreadable: Sequence[str], project_root: str) -> None:
        self._main = main
        self._others = others
        self._unreadable = unreadable
        self._project_root = project_root
        self._end = time.monotonic() + INLINING_S

    def explain(self, pattern: Pattern, skipped: Skipped) -> str:
        if pattern.kind != "name":
            return " ".join([*self._sources(pattern), *self._unreadable])
        parts = [*skipped.reasons(), *self._stripped(), *self._imported(pattern)]
        near = nearest_names(self._main, pattern.text)
        last = pattern.text.rsplit("::", 1)[-1]
        there = [name for name in near if name.rsplit("::", 1)[-1] == last]
        if there and pattern.literal and "::" not in pattern.text:
            parts.append(f"It is only there inside scopes: {_listed(there)}. Write `**::{last}`, or the whole name.")
        else:
            fate = [] if there else self._fate(last)
            parts += fate or self._undebugged()
            parts += [] if fate or there else self._on_disk(last)
            parts += _spelling(pattern, near)
        parts += self._unreadable
        return " ".join(parts) or _ABSENT

    def _stripped(self) -> list[str]:
        found = []
        for binary in self._main:
            name = Path(binary.path).name
            if not binary.has_symbols:
                exported = f"only its {len(binary.starts)} exported functions have names"
                found.append(f"{name} is stripped (no .symtab): {exported}. Use an unstripped build, or give symbolsPath.")
            elif any(table.mangled for table in binary.tables) and not itanium.available():
                found.append(f"C++ names of {name} cannot be demangled: neither libstdc++.so.6 nor libc++abi.so.1 can be loaded.")
        return found

    def _fate(self, last: str) -> list[str]:
        """Inlined, declared only, eliminated: from debug info."""
        if "*" in last or not last.isidentifier():
            return []
        for binary in self._main:
            if binary.dwarf is None:
                continue
            try:
                fate = fate_of(binary.dwarf, last, self._end)
            except DwarfError:  # damaged debug info proves nothing
                continue
            if fate is not None:
                return [_told(last, fate, Path(binary.path).name)]
        return []

    def _undebugged(self) -> list[str]:
        """Without debug info nobody can tell what became of a function: where it was looked for, and how to get it."""
        lacking = [binary for binary in self._main if binary.dwarf_file is None]
        if not lacking:
            return []
        binary = lacking[0]
        name = Path(binary.path).name
        build_id = binary.elf.build_id
        places = f" nor under /usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug" if build_id else " nor, without a build-id, beside it"
        what = f"{name} has no debug info in itself{places}, so whether the function was inlined or left out can't be told."
        return [f"{what} Compile with -g, or give symbolsPath (its debug file, or a folder of them)."]

    def _on_disk(self, last: str) -> list[str]:
        mention = mention_of(last, self._project_root, self._end)
        program = Path(self._main[0].path) if self._main else None
        return [] if mention is None or program is None else [words_about(last, mention, self._project_root, program)]

    def _imported(self, pattern: Pattern) -> list[str]:
        if not pattern.literal:
            return []
        importers = [Path(binary.path).name for binary in [*self._main, *self._others] if pattern.text in binary.imports]
        if not importers:
            return []
        return [f"{importers[0]} imports `{pattern.text}`, but no loaded module defines it yet; the pattern stays and takes effect when its library is loaded."]

    def _sources(self, pattern: Pattern) -> list[str]:
        wanted = [*self._main, *(binary for binary in self._others if not binary.from_system)]
        with_debug_info = [binary for binary in wanted if binary.dwarf_file is not None]
        if not with_debug_info:
            names = ", ".join(Path(binary.path).name for binary in self._main)
            return [f"{names} has no debug info, which `{pattern.text.partition(':')[0]}` needs: compile with -g, or give symbolsPath."]
        unready = [Path(binary.path).name for binary in with_debug_info if binary.lines is None]
        if unready:
            return [f"The line index of {', '.join(unready)} is not ready, or its debug info cannot be read; ask again."]
        files = Counter(file for binary in with_debug_info if binary.lines is not None for file in binary.lines.sources.files)
        if pattern.kind == "file":
            near = nearest_paths(list(files), pattern.text[6:])
            return [f"No function is defined in a source file like that.{f' Files there are: {_listed(near)}.' if near else ''}"]
        folders = Counter(str(Path(file).parent) for file in files if file.startswith("/"))
        common = _listed([name for name, _ in folders.most_common(_SHOWN)])
        return [f"No function is defined in a file under {self._project_root}. The program's sources are in: {common}."]


def _spelling(pattern: Pattern, names: Sequence[str]) -> list[str]:
    hint = " (`.` is a plain character here)" if ".*" in pattern.text else ""
    return [f"Nearest names: {_listed(names)}{hint}."] if names else []


def nearest_paths(files: list[str], text: str) -> list[str]:
    """Files whose name shares most with `text`."""
    wanted = {text.lower()[at : at + 3] for at in range(max(1, len(text) - 2))}
    scored = sorted((-sum(gram in Path(file).name.lower() for gram in wanted), file.startswith("/usr/"), file) for file in files)
    best = [file for score, _, file in scored if score < 0] or [file for _, _, file in scored]
    return best[:_SHOWN]


def _told(name: str, fate: Fate, module: str) -> str:
    if fate.kind == "inlined":
        sites = ", ".join(f"{source_name(function).shown}{f' (line {line})' if line else ''}" for function, line in fate.sites)
        what = f"`{name}` was inlined at every call and has no code of its own in {module}: it is inside {sites}."
        return f"{what} Trace those, or compile it with __attribute__((noinline)) or -fno-inline."
    if fate.kind == "declared":
        return f"`{name}` is declared in {module} but not defined there."
    return f"`{name}` is in the source of {module}, but the compiler left it out (never called, or folded away)."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
