"""The plans of one file's functions: made on demand, within a deadline, and kept on disk by build-id, depth and formatters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from actors.indexer.assembly import assemble
from actors.indexer.codes import CodeSymbols
from actors.indexer.deep_plans import DeepPlans
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.functions import FunctionFinder
from actors.indexer.dwarf.type_index import TypeIndex
from actors.indexer.elf import ElfFile
from actors.indexer.plan_shelf import PlanShelf
from actors.indexer.planner import Found, Planner
from actors.indexer.project_formatters import ProjectFormatters
from actors.indexer.raw_plan import raw_plan
from strobe.model.probe import Plan

SHELVES_MAX: Final = 4  # kinds of plans (depth, formatters) of a file in memory
_FIND_SHARE: Final = 0.4  # of the time, for finding functions; the rest is for their types


@dataclass
class Planned:
    """`plans` by link-time address. `types`: bundles that they count in, by key. `complete`: all that were asked for, as deep as was asked for."""

    plans: dict[int, Plan] = field(default_factory=dict)
    types: dict[str, bytes] = field(default_factory=dict)
    complete: bool = True


class PlanBook:
    """`problems`: address → why a function has only a raw plan although there is debug info."""

    def __init__(self, folder: Path, elf: ElfFile, debug: ElfFile | None, finder: FunctionFinder | None, index: TypeIndex | None) -> None:
        self._folder = folder
        self._files = (elf, debug)
        self._planner = None if finder is None else Planner(finder)
        self._deep = None if index is None else DeepPlans(index, CodeSymbols(elf, debug, index), elf.path)
        self._shelves: dict[tuple[int, str], PlanShelf] = {}
        self._found: dict[int, Found | None] = {}
        self.problems: dict[int, str] = {}

    def get(self, wanted: Sequence[tuple[int, str]], end: float) -> tuple[dict[int, Plan], bool]:
        """(link-time address → plan of scalars, whether all could be made before `end`, on the monotonic clock). `wanted`: (address, linkage name)."""
        planned = self.planned(wanted, end)
        return planned.plans, planned.complete

    def planned(self, wanted: Sequence[tuple[int, str]], end: float, depth: int = 0, formatters: ProjectFormatters | None = None) -> Planned:
        """`depth` 0: scalars only. What is not made before `end` has no plan, or one of scalars only, and is made when it is asked for again."""
        if self._planner is None:
            return Planned()
        shelf = self._shelf(depth, "" if formatters is None else formatters.digest)
        done = Planned()
        missing: list[tuple[int, str]] = []
        for address, name in wanted:
            kept = shelf.get(address)
            if kept is None:
                missing.append((address, name))
            else:
                done.plans[address] = kept
        if missing:
            self._make(missing, end, depth, formatters, shelf, done)
            shelf.save(self.problems)
        done.types = shelf.bundles_of(done.plans.values())
        return done

    def _make(self, missing: list[tuple[int, str]], end: float, depth: int, formatters: ProjectFormatters | None, shelf: PlanShelf, done: Planned) -> None:
        begin = time.monotonic()
        find_end = end if depth == 0 else begin + (end - begin) * _FIND_SHARE
        found: dict[int, Found] = {}
        for count, (address, name) in enumerate(missing):
            if count and time.monotonic() > find_end:
                done.complete = False
                break
            one = self._find(address, name)
            if one is None:
                done.plans[address] = raw_plan()
                shelf.put(address, done.plans[address])
            else:
                found[address] = one
        if depth == 0 or formatters is None or self._deep is None:
            plans = {address: assemble(one.outline) for address, one in found.items()}
        else:
            deep = self._deep.make(found, formatters.formatters, depth, end)
            done.complete = done.complete and deep.complete
            plans = deep.plans
            shelf.add_bundles(deep.bundles)
        for address, plan in plans.items():
            shelf.put(address, plan)
        done.plans.update({address: plans.get(address) or assemble(one.outline) for address, one in found.items()})

    def _find(self, address: int, name: str) -> Found | None:
        assert self._planner is not None
        try:
            return self._planner.find(address, name)
        except DwarfError as error:
            self.problems[address] = str(error)
            return None

    def _shelf(self, depth: int, digest: str) -> PlanShelf:
        key = (depth, digest)
        if key not in self._shelves:
            while len(self._shelves) >= SHELVES_MAX:
                self._shelves.pop(next(iter(self._shelves)))
            self._shelves[key] = PlanShelf(self._folder, self._files, depth, digest)
        return self._shelves[key]
