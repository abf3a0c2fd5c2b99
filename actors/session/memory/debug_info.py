"""What debug info says about the names of one request: asked of the indexer once, kept while the same modules are loaded."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from actors.session.memory.thread_locals import DESCRIPTORS
from actors.session.target import Asker, Target
from strobe.model.probe import Module
from strobe.modules import is_own
from strobe.protocol.indexer import FramesReply, Symbolise, Variables, VariablesReply
from strobe.values.bundle import Bundle

ASK_S: Final = 8.0
BUDGET_MS: Final = 5000
_KEPT_MAX: Final = 32
_LIBC: Final = ("libc.so.6", "libc-")

Key = tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]


@dataclass(frozen=True, slots=True)
class Known:
    """About one set of names. `functions`: names by their addresses in the process. `layout`: addresses of thread_locals.DESCRIPTORS."""

    reply: VariablesReply
    bundle: Bundle
    modules: Mapping[str, Module]
    program: str
    functions: Mapping[int, str]
    layout: Mapping[str, int]


class DebugInfo:
    def __init__(self, actor: Asker, target: Target) -> None:
        self._actor = actor
        self._target = target
        self._kept: OrderedDict[Key, Known] = OrderedDict()
        self._layouts: dict[tuple[str, int], dict[str, int]] = {}

    async def about(self, names: set[str], types: set[str], codes: set[int], functions: set[int]) -> Known:
        """`codes`: addresses in the process that vtable pointers hold; `functions`: those that function pointers hold."""
        modules = self._target.modules()
        placed = [(module.path, address - module.bias) for address in sorted(codes) if (module := _holding(modules, address))]
        key: Key = (tuple(sorted(names)), tuple(sorted(types)), tuple(placed), tuple((module.path, module.bias) for module in modules))
        known = self._kept.get(key)
        if known is None:
            known = await self._asked(key, modules)
        if missing := functions - known.functions.keys():
            found = {**known.functions, **await self._names(missing, modules)}
            known = Known(known.reply, known.bundle, known.modules, known.program, found, known.layout)
        self._kept[key] = known
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
        return known

    async def _asked(self, key: Key, modules: list[Module]) -> Known:
        names, types, codes, _ = key
        launch = self._target.journal.launch
        paths = [module.path for module in modules]
        program = launch.command if self._target.core is not None else _program(self._target.pid, launch.command)
        paths = [program, *(path for path in paths if path != program)]
        own = [path for path in paths if is_own(path, program)]
        ask = Variables(
            names=list(names), types=list(types), codes=list(codes), modules=paths, main_modules=own, symbols_path=launch.symbols_path, budget_ms=BUDGET_MS
        )
        reply: VariablesReply = await self._actor.ask("indexer", ask, deadline_s=ASK_S)
        by_path = {module.path: module for module in modules}
        elsewhere = any(one.kind == "thread_local" and one.module != program for found in reply.variables.values() for one in found)
        layout = await self._layout(modules) if elsewhere else {}
        return Known(reply, Bundle.unpack(reply.bundle), by_path, program, {}, layout)

    async def _layout(self, modules: list[Module]) -> dict[str, int]:
        libc = next((module for module in modules if module.path.rpartition("/")[2].startswith(_LIBC)), None)
        if libc is None:
            return {}
        key = (libc.path, libc.bias)
        if key not in self._layouts:
            ask = Variables(names=list(DESCRIPTORS), modules=[libc.path], main_modules=[libc.path])
            reply: VariablesReply = await self._actor.ask("indexer", ask, deadline_s=ASK_S)
            places = {name: found[0].value for name, found in reply.variables.items() if found and found[0].kind == "address"}
            self._layouts[key] = {name: value + libc.bias for name, value in places.items() if isinstance(value, int)}
        return self._layouts[key]

    async def _names(self, addresses: set[int], modules: list[Module]) -> dict[int, str]:
        """Of the functions that begin there."""
        ordered = sorted(addresses)
        ask = Symbolise(modules=modules, addresses=ordered, return_addresses=False, symbols_path=self._target.journal.launch.symbols_path)
        reply: FramesReply = await self._actor.ask("indexer", ask, deadline_s=ASK_S)
        found = {frame.address: frame.function for frame in reply.frames if frame.function and not frame.inlined and frame.offset == 0}
        return {address: name for address, name in found.items() if name is not None}


def _holding(modules: list[Module], address: int) -> Module | None:
    return next((module for module in modules if module.start <= address < module.end), None)


def _program(pid: int, command: str) -> str:
    """What runs now: the launched file, without symbolic links, or what it has become by exec."""
    try:
        return os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 (as text: the maps name it so)
    except OSError:
        return command
