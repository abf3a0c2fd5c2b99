"""The plans of one file's functions: made on demand, within a deadline, and kept on disk by build-id."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from functools import cache as cache_once
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]

from actors.indexer import cache
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.functions import FunctionFinder
from actors.indexer.elf import ElfFile
from actors.indexer.planner import Planner
from actors.indexer.raw_plan import raw_plan
from strobe.model.probe import Plan

PLANS: Final = "plans"
PLANS_MAX: Final = 200_000


@cache_once
def _code_digest() -> str:
    """Plans made by other code are made anew."""
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.py"), *folder.glob("dwarf/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class PlanBook:
    """`problems`: address → why a function has only a raw plan although there is debug info."""

    def __init__(self, folder: Path, elf: ElfFile, debug: ElfFile | None, finder: FunctionFinder | None) -> None:
        self._path = folder / PLANS
        self._stamp = cache.stamp_of(elf, debug, extra=f"plans {_code_digest()}")
        self._planner = None if finder is None else Planner(finder)
        self.problems: dict[int, str] = {}

    def get(self, wanted: Sequence[tuple[int, str]], end: float) -> tuple[dict[int, Plan], bool]:
        """(link-time address → plan, whether all could be made before `end`, on the monotonic clock). `wanted`: (address, linkage name)."""
        if self._planner is None:
            return {}, True
        found = {address: self._plans[address] for address, _ in wanted if address in self._plans}
        missing = [(address, name) for address, name in wanted if address not in found]
        for done, (address, name) in enumerate(missing):
            if done and time.monotonic() > end:
                self._save()
                return found, False
            found[address] = self._plans[address] = self._make(address, name)
        if missing:
            self._save()
        return found, True

    def _make(self, address: int, name: str) -> Plan:
        assert self._planner is not None
        try:
            return self._planner.plan(address, name)
        except DwarfError as error:
            self.problems[address] = str(error)
            return raw_plan()

    @cached_property
    def _plans(self) -> dict[int, Plan]:
        body = cache.read(self._path, self._stamp)
        if body is None:
            return {}
        kept: dict[int, dict[str, Any]] = msgpack.unpackb(body, strict_map_key=False)
        return {address: Plan.model_validate(plan) for address, plan in kept.items()}

    def _save(self) -> None:
        if len(self._plans) > PLANS_MAX:
            return
        body = msgpack.packb({address: plan.model_dump() for address, plan in self._plans.items()})
        try:
            cache.write(self._path, self._stamp, body)
        except OSError as error:
            self.problems[0] = f"plans cannot be cached: {error}"
