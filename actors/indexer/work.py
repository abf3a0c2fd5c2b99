"""What a worker process does with each ask. Plain and synchronous; a worker has one ask in hand at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.indexer.binary import Binary, Library
from actors.indexer.raw_plan import raw_plan
from actors.indexer.resolver import Resolver
from strobe.protocol.indexer import Load, ModuleFacts, Plans, PlansReply, Resolve, ResolveReply


class Work:
    """`tell` is called with each file before it is opened, so that a file that kills the worker is known by name."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._library = Library()

    def run(self, ask: Any) -> Any:
        handlers: dict[type[Any], Callable[[Any], Any]] = {Load: self.load, Resolve: self.resolve, Plans: self.plans}
        return handlers[type(ask)](ask)

    def load(self, ask: Load) -> ModuleFacts:
        binary = self._open(ask.path, ask.symbols_path)
        return ModuleFacts(
            path=binary.path,
            build_id=binary.elf.build_id,
            has_symbols=binary.has_symbols,
            has_debug_info=binary.dwarf_file is not None,
            debug_file=binary.debug.path if binary.debug is not None else None,
            functions=binary.functions,
        )

    def resolve(self, ask: Resolve) -> ResolveReply:
        resolver = Resolver(lambda path: self._open(path, ask.symbols_path), ask.modules, ask.main_modules, ask.limit)
        return resolver.resolve(ask.patterns)

    def plans(self, ask: Plans) -> PlansReply:
        return PlansReply(plans=[raw_plan() for _ in ask.places], complete=True)

    def _open(self, path: str, symbols_path: str | None) -> Binary:
        self._tell(path)
        return self._library.open(path, symbols_path)
