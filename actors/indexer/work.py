"""What a worker process does with each ask. Plain and synchronous; a worker has one ask in hand at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from actors.indexer.binary import Binary, Library
from actors.indexer.demangle import demangle, itanium
from actors.indexer.frames import AddressSpace
from actors.indexer.project_formatters import project_formatters
from actors.indexer.raw_plan import raw_plan
from actors.indexer.resolver import Resolver
from actors.indexer.unwind.walker import Step
from actors.indexer.variables_ask import VariablesAnswer
from strobe.errors import StrobeError
from strobe.model.probe import Place, Plan
from strobe.protocol.indexer import (
    Demangle,
    FramesReply,
    Load,
    ModuleFacts,
    NamesReply,
    Plans,
    PlansReply,
    Resolve,
    ResolveReply,
    Symbolise,
    Unwind,
    Variables,
)


@dataclass(frozen=True, slots=True)
class BuildLines:
    """Between actor and worker only: index a file's lines (stage 2) and leave them in the cache."""

    path: str
    symbols_path: str | None
    TYPE = "indexer.build_lines"


@dataclass(frozen=True, slots=True)
class Answer:
    """`wanting`: files whose lines would make the reply better, and are not indexed yet."""

    reply: Any
    wanting: list[str] = field(default_factory=list)


class Work:
    """`tell` is called with each file before it is opened, so that a file that kills the worker is known by name."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._library = Library()
        self._variables = VariablesAnswer(self._open)
        self._handlers: dict[type[Any], Callable[[Any], Answer]] = {
            Load: self._load,
            Resolve: self._resolve,
            Plans: self._plans,
            Symbolise: self._symbolise,
            Unwind: self._unwind,
            Variables: lambda ask: Answer(self._variables.answer(ask)),
            Demangle: lambda ask: Answer(NamesReply(names=[_readable(name) for name in ask.names])),
            BuildLines: self._build_lines,
        }

    def run(self, ask: Any) -> Answer:
        """Errors: StrobeError."""
        return self._handlers[type(ask)](ask)

    def _load(self, ask: Load) -> Answer:
        binary = self._open(ask.path, ask.symbols_path)
        facts = ModuleFacts(
            path=binary.path,
            build_id=binary.elf.build_id,
            has_symbols=binary.has_symbols,
            has_debug_info=binary.dwarf_file is not None,
            debug_file=binary.debug.path if binary.debug is not None else None,
            functions=len(binary.starts),
        )
        return Answer(facts, [ask.path] if binary.dwarf_file is not None and binary.lines is None else [])

    def _resolve(self, ask: Resolve) -> Answer:
        resolver = Resolver(lambda path: self._open(path, ask.symbols_path), ask.modules, ask.main_modules, ask.project_root, ask.limit, explain=ask.explain)
        reply: ResolveReply = resolver.resolve(ask.patterns)
        return Answer(reply, resolver.wanting)

    def _plans(self, ask: Plans) -> Answer:
        end = time.monotonic() + ask.budget_ms / 1000
        formatters = project_formatters(ask.project_root) if ask.depth else None
        by_module: dict[str, list[Place]] = {}
        for place in ask.places:
            by_module.setdefault(place.module, []).append(place)
        found: dict[tuple[str, int], Plan] = {}
        types: dict[str, bytes] = {}
        complete = True
        for module, places in by_module.items():
            try:
                book = self._open(module, ask.symbols_path).plans
            except StrobeError:  # gone or changed since it was resolved: raw values still are
                continue
            planned = book.planned([(place.offset, place.function_raw) for place in places], end, ask.depth, formatters)
            found.update({(module, offset): plan for offset, plan in planned.plans.items()})
            types.update(planned.types)
            complete &= planned.complete
        plans = [found.get((place.module, place.offset)) or raw_plan() for place in ask.places]
        return Answer(PlansReply(plans=plans, complete=complete, types=types))

    def _symbolise(self, ask: Symbolise) -> Answer:
        space = AddressSpace(ask.modules, lambda path: self._open(path, ask.symbols_path))
        steps = [Step(address, index == 0 or not ask.return_addresses) for index, address in enumerate(ask.addresses)]
        return Answer(FramesReply(frames=space.symbolise(steps)), space.wanting)

    def _unwind(self, ask: Unwind) -> Answer:
        space = AddressSpace(ask.modules, lambda path: self._open(path, ask.symbols_path))
        frames, culprit = space.unwind(dict(ask.regs), ask.stack_base, ask.stack, ask.limit, ask.project_root)
        return Answer(FramesReply(frames=frames, culprit=culprit), space.wanting)

    def _build_lines(self, ask: BuildLines) -> Answer:
        return Answer(self._open(ask.path, ask.symbols_path).build_lines() is not None)

    def _open(self, path: str, symbols_path: str | None) -> Binary:
        self._tell(path)
        return self._library.open(path, symbols_path)


def _readable(name: str) -> str:
    return demangle(name).text if name.startswith(("_Z", "_R")) else itanium.demangle(name) or name
