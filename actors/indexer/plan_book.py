"""The plans of one file's functions: made on demand, within a deadline, and kept on disk by build-id, depth and formatters."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from actors.indexer.assembly import assemble
from actors.indexer.codes import CodeSymbols
from actors.indexer.deep_plans import DeepPlans, Task
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
FOUND_MAX: Final = 5000  # functions whose debug info is kept until their plans are made


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
        finding = self._finding(missing, shelf, done)
        if depth and formatters is not None and self._deep is not None:
            deep = self._deep.make(finding, Task.until(end, formatters.formatters, depth))
            shelf.add_bundles(deep.bundles)
            for address, plan in deep.plans.items():
                shelf.put(address, plan)
            done.plans.update(deep.plans)
            done.plans.update({address: assemble(found.outline) for address, found in deep.late.items()})
            done.complete = not deep.late
        for address, found in finding:
            done.plans[address] = assemble(found.outline)
            if depth == 0:
                shelf.put(address, done.plans[address])
            if time.monotonic() > end:
                break
        done.complete = done.complete and all(shelf.get(address) is not None for address, _ in missing)

    def _finding(self, missing: list[tuple[int, str]], shelf: PlanShelf, done: Planned) -> Iterator[tuple[int, Found]]:
        """Functions as they are asked for; those that only the raw plan is right for get it on the way."""
        assert self._planner is not None
        try:
            self._planner.expect(address for address, _ in missing if address not in self._found)
        except DwarfError as error:  # a unit that is damaged; its functions will say so one by one
            self.problems[0] = str(error)
        for address, name in missing:
            found = self._find(address, name)
            if found is not None:
                yield address, found
            else:
                done.plans[address] = raw_plan()
                shelf.put(address, done.plans[address])

    def _find(self, address: int, name: str) -> Found | None:
        assert self._planner is not None
        if address not in self._found:
            if len(self._found) >= FOUND_MAX:
                self._found.clear()
            try:
                self._found[address] = self._planner.find(address, name)
            except DwarfError as error:
                self.problems[address] = str(error)
                self._found[address] = None
        return self._found[address]

    def _shelf(self, depth: int, digest: str) -> PlanShelf:
        key = (depth, digest)
        if key not in self._shelves:
            while len(self._shelves) >= SHELVES_MAX:
                self._shelves.pop(next(iter(self._shelves)))
            self._shelves[key] = PlanShelf(self._folder, self._files, depth, digest)
        return self._shelves[key]
