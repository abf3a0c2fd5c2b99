"""Answers `Variables`: names and types over several files, in one bundle."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from actors.indexer.binary import Binary
from actors.indexer.code_types import code_type
from actors.indexer.data_symbols import DataSymbols
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.type_graph import TypeGraph
from actors.indexer.dwarf.type_index import TypeIndex
from actors.indexer.dwarf.type_numbering import Limits
from actors.indexer.merged_types import MergedTypes, shifted_number
from actors.indexer.nearest import nearest_names
from actors.indexer.variable_search import Candidate, VariableSearch
from strobe.errors import StrobeError
from strobe.model.type_nodes import TypeId
from strobe.protocol.indexer import FoundVariable, Variables, VariablesReply
from strobe.values.bundle import Bundle, Code

T = TypeVar("T")
NODES_MAX: Final = 8000  # types of one file
FILES_MAX: Final = 64  # whose indexes are kept


class _File:
    """One module, for as long as a worker has it open."""

    def __init__(self, binary: Binary) -> None:
        self.binary = binary
        self.symbols = DataSymbols(binary)
        self.index = None if binary.dwarf is None else TypeIndex(binary.dwarf)


class _Looking:
    """One file, for one ask."""

    def __init__(self, file: _File, end: float) -> None:
        self.file = file
        self.problem: str | None = None
        self.found: list[tuple[str, Candidate]] = []
        self.types: dict[str, TypeId] = {}
        self.codes: list[Code] = []
        self.graph: TypeGraph | None = None
        self.search: VariableSearch | None = None
        if file.index is not None and file.binary.dwarf is not None:
            self.graph = TypeGraph(file.index, Limits(nodes=NODES_MAX, end=end))
            self.search = VariableSearch(file.binary.dwarf, file.index, self.graph, end)

    def look_for(self, names: set[str], types: set[str], *, is_main: bool) -> None:
        """Takes what it finds out of both sets. Elsewhere than in the program and its own libraries only what has a symbol is looked for (the debug info of
        a whole system is much to read for names that are nowhere), and a bare name is no function's own variable."""
        for name in sorted(names):
            if not is_main and self.file.symbols.named(plain_name(name)) is None:
                continue
            found = self._guarded(lambda search, _: search.find(plain_name(name)))  # noqa: B023 (called at once)
            if not is_main and "::" not in plain_name(name):
                found = [one for one in found or [] if not one.in_function]
            self.found += [(name, one) for one in found or []]
            if any(one.variable.location.kind not in ("removed", "other") for one in found or []):
                names.discard(name)
        for name in sorted(types):
            number = self._guarded(lambda _, graph: graph.named(name))  # noqa: B023 (called at once)
            if number is not None:
                self.types[name] = number
                types.discard(name)

    def look_at(self, module: str, address: int) -> None:
        number = self._guarded(lambda _, graph: code_type(self.file.binary, self.file.symbols, graph, address))
        if number is not None:
            self.codes.append(Code(module, address, number))

    def _guarded(self, look: Callable[[VariableSearch, TypeGraph], T]) -> T | None:
        if self.search is None or self.graph is None:
            return None
        try:
            return look(self.search, self.graph)
        except DwarfError as error:
            self.problem = f"the debug info of {self.file.binary.path} is damaged: {error}"
            return None


class VariablesAnswer:
    """Keeps the indexes of the files that were asked about."""

    def __init__(self, open_file: Callable[[str, str | None], Binary]) -> None:
        self._open = open_file
        self._files: dict[int, _File] = {}

    def answer(self, ask: Variables) -> VariablesReply:
        """What is in the program and its own libraries is not looked for in others."""
        end = time.monotonic() + ask.budget_ms / 1000
        names, types = set(ask.names), set(ask.types)
        looked: dict[str, _Looking] = {}
        for module in [*ask.main_modules, *(one for one in ask.modules if one not in ask.main_modules)]:
            if not (names or types) or time.monotonic() > end:
                break
            if (looking := self._looking(module, ask.symbols_path, end)) is not None:
                looking.look_for(names, types, is_main=module in ask.main_modules)
                looked[module] = looking
        for module, address in ask.codes:
            if (looking := looked.get(module) or self._looking(module, ask.symbols_path, end)) is not None:
                looking.look_at(module, address)
                looked[module] = looking
        reply = self._merged(ask, looked)
        self._add_symbols(ask, reply, [one for one in ask.names if not _has_place(reply, one)])
        late = time.monotonic() > end
        return reply.model_copy(update={"complete": not late or not (names or types)})

    def _looking(self, module: str, symbols_path: str | None, end: float) -> _Looking | None:
        file = self._file(module, symbols_path)
        return None if file is None else _Looking(file, end)

    def _file(self, module: str, symbols_path: str | None) -> _File | None:
        try:
            binary = self._open(module, symbols_path)
        except StrobeError:  # gone or changed since it was mapped: what others have is still found
            return None
        kept = self._files.get(id(binary))
        if kept is None or kept.binary is not binary:
            if len(self._files) >= FILES_MAX:
                self._files.clear()
            kept = self._files[id(binary)] = _File(binary)
        return kept

    def _merged(self, ask: Variables, looked: dict[str, _Looking]) -> VariablesReply:
        merged = MergedTypes()
        variables: dict[str, list[FoundVariable]] = {}
        types: dict[str, TypeId] = {}
        codes: list[Code] = []
        locals_of: dict[str, list[str]] = {}
        for module, one in looked.items():
            if one.graph is None:
                continue
            first = merged.add(one.graph.table())
            for name, candidate in one.found:
                variables.setdefault(name, []).append(self._found(ask, module, candidate, first))
            types.update({name: shifted_number(number, first) for name, number in one.types.items() if name not in types})
            codes += [replace(code, type=shifted_number(code.type, first)) for code in one.codes]
            for name, functions in (one.search.stack_of if one.search else {}).items():
                locals_of.setdefault(name, functions)
        key, body = Bundle(merged.table(), tuple(codes)).pack()
        problems = [one.problem for one in looked.values() if one.problem]
        return VariablesReply(variables=variables, types=types, near={}, locals_of=locals_of, key=key, bundle=body, problems=problems)

    def _found(self, ask: Variables, module: str, candidate: Candidate, first: TypeId) -> FoundVariable:
        made = candidate.variable
        kind, value = made.location.kind, made.location.value
        program = ask.modules[0] if ask.modules else module
        if kind == "address" and candidate.external and module != program and (file := self._file(program, ask.symbols_path)) is not None:
            here = file.symbols.exported(made.linkage_name or made.name)
            if here is not None:
                module, value = program, here.value
        if value == 0 and self._is_thrown_away(ask, module, kind, made.linkage_name):
            kind, value = "removed", None
        return FoundVariable(
            name=made.name, type=shifted_number(made.type, first), module=module, kind=kind, value=value, file=candidate.file,
            in_function=candidate.in_function, linkage_name=made.linkage_name,
        )  # fmt: skip

    def _is_thrown_away(self, ask: Variables, module: str, kind: str, linkage_name: str | None) -> bool:
        """By the linker, which leaves 0 in its description."""
        file = self._file(module, ask.symbols_path)
        if kind != "thread_local" or linkage_name is None or file is None:
            return kind == "address"
        found = file.symbols.named(linkage_name)
        return found is None or found.name != linkage_name

    def _add_symbols(self, ask: Variables, reply: VariablesReply, names: list[str]) -> None:
        """Places from symbol tables for what debug info only declares or does not know; else names like it."""
        for name in names:
            declared = next((one for one in reply.variables.get(name, []) if one.kind == "removed"), None)
            if declared is None and name in reply.locals_of:
                continue
            placed = self._placed(ask, (declared.linkage_name if declared else None) or plain_name(name))
            if placed is not None:
                type_ = declared.type if declared else None
                reply.variables[name] = [placed.model_copy(update={"type": type_})]
            elif name not in reply.variables:
                files = [file for module in ask.main_modules if (file := self._file(module, ask.symbols_path)) is not None]
                reply.near[name] = nearest_names([file.symbols for file in files], plain_name(name))

    def _placed(self, ask: Variables, name: str) -> FoundVariable | None:
        for module in ask.modules:
            file = self._file(module, ask.symbols_path)
            symbol = None if file is None else file.symbols.named(name)
            if symbol is not None:
                return FoundVariable(
                    name=symbol.plain, type=None, module=module, kind=symbol.kind, value=symbol.value, size=symbol.size, linkage_name=symbol.name
                )  # fmt: skip
        return None


def _has_place(reply: VariablesReply, name: str) -> bool:
    return any(one.kind in ("address", "thread_local", "constant") for one in reply.variables.get(name, []))


def plain_name(name: str) -> str:
    return name.removeprefix("::")
