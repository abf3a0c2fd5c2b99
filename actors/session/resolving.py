"""From patterns to functions in what a target has mapped, by the indexer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from actors.session.not_loaded import candidates
from actors.session.target import Asker, Target
from strobe.errors import Code, StrobeError
from strobe.model.probe import Module, Place
from strobe.modules import Mapped, is_own, placed
from strobe.protocol.indexer import Resolve, ResolveReply

RESOLVE_S: Final = 20.0
HOOKS_MAX: Final = 10_000
KEPT_MAX: Final = 256
ELSEWHERE_S: Final = 3.0


class Resolving:
    """Of one session."""

    def __init__(self, actor: Asker, target: Target) -> None:
        self._actor = actor
        self._target = target
        self._matched: dict[str, bool] = {}  # pattern → whether it matches anything
        self._kept: dict[tuple[object, ...], list[Place]] = {}  # of libraries that come and go

    async def resolve(self, patterns: Sequence[str], modules: Sequence[Module]) -> tuple[dict[int, Place], list[str]]:
        """Places by runtime address, and what to tell the caller about patterns that matched nothing or too much."""
        if not patterns:
            return {}, []
        reply = await self._ask(patterns, modules, explain=True)
        warnings = [f"{item.pattern}: {item.explanation}{await self._elsewhere(item.pattern, modules)}" for item in reply.patterns if item.explanation]
        if reply.truncated:
            warnings.append(f"More than {HOOKS_MAX:,} functions match; the first {HOOKS_MAX:,} are traced. Narrow the patterns.")
        return placed(reply.places, modules), warnings

    def all_match(self, patterns: Sequence[str]) -> bool:
        """Whether each of them matched something when it was asked for."""
        return all(self._matched.get(pattern) for pattern in patterns)

    async def _elsewhere(self, pattern: str, modules: Sequence[Module]) -> str:
        """A library near the program that would answer to `pattern`, in words."""
        root = self._target.journal.project_root
        folders = [Path(self._program).parent, *([Path(root)] if root else [])]
        paths = await asyncio.to_thread(candidates, pattern, folders, frozenset(module.path for module in modules))
        if not paths:
            return ""
        ask = Resolve(
            patterns=[pattern], modules=[str(path) for path in paths], main_modules=[str(path) for path in paths], project_root=root,
            symbols_path=self._target.journal.launch.symbols_path, limit=1, explain=False,
        )  # fmt: skip
        try:
            reply: ResolveReply = await self._actor.ask("indexer", ask, deadline_s=ELSEWHERE_S)
        except StrobeError as error:
            if error.code is not Code.TIMEOUT:
                raise
            return ""  # it would have been more than was asked for
        return "".join(f" It is defined in {_shown(place.module, root)}, which is not loaded." for place in reply.places)

    async def in_new(self, patterns: Sequence[str], fresh: Sequence[Mapped], program: str | None = None) -> dict[int, Place]:
        """Places in libraries that have just come, or in all of a child's `program`. Those of the system count, as in `resolve`, for patterns that match
        nothing in the program's own."""
        program = program or self._program
        wanted: dict[int, Place] = {}
        for own in (True, False):
            some = tuple(pattern for pattern in patterns if own or pattern.startswith("@") or not self._matched.get(pattern))
            those = [one for one in fresh if is_own(one.module.path, program) == own]
            if some and those:
                wanted |= placed(await self._places(some, those, program), [one.module for one in those])
        return wanted

    @property
    def _program(self) -> str:
        return self._target.journal.launch.command

    async def _places(self, patterns: tuple[str, ...], fresh: Sequence[Mapped], program: str) -> list[Place]:
        keys = {one.module.path: (one.module.path, one.file, patterns, self._target.journal.project_root) for one in fresh}
        missing = {one.module.path: one.module for one in fresh if keys[one.module.path] not in self._kept}
        if missing:
            reply = await self._ask(patterns, list(missing.values()), explain=False, program=program)
            for path in missing:
                self._kept[keys[path]] = [place for place in reply.places if place.module == path]
        found = [place for key in keys.values() for place in self._kept[key]]
        while len(self._kept) > KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        return found

    async def _ask(self, patterns: Sequence[str], modules: Sequence[Module], *, explain: bool, program: str | None = None) -> ResolveReply:
        own = [module.path for module in modules if is_own(module.path, program or self._program)]
        ask = Resolve(
            patterns=list(patterns), modules=[module.path for module in modules], main_modules=own, project_root=self._target.journal.project_root,
            symbols_path=self._target.journal.launch.symbols_path, limit=HOOKS_MAX, explain=explain,
        )  # fmt: skip
        reply: ResolveReply = await self._actor.ask("indexer", ask, deadline_s=RESOLVE_S)
        self._matched |= {item.pattern: item.matched > 0 or (not explain and self._matched.get(item.pattern, False)) for item in reply.patterns}
        return reply


def _shown(path: str, root: str) -> str:
    return os.path.relpath(path, root) if root and path.startswith(f"{root}/") else path
