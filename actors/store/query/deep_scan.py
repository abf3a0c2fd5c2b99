"""Values that only payloads hold, compared one call after the other: those of the calls that all other filters leave, in order of arrival, as far as the
time allows. What was compared is remembered: the same question goes on where it stopped, and a later page repeats nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actors.store.query.branches import CALL, ENTER, EXIT, LATE, Branch, number_list, where
from actors.store.query.deep_values import captured_value
from actors.store.query.selection import Selection
from actors.store.query.typed_values import Captured, TypedValues
from actors.store.query.value_path import follow
from actors.store.query.value_test import meets
from actors.store.query.value_tests import DeepTest, DeepTests, ValueTests
from actors.store.reading import Reading
from actors.store.scan_cache import Scanned
from actors.store.session_file import SessionFile
from strobe.expression import Scalar, Unavailable
from strobe.model.probe import Hook
from strobe.model.type_nodes import Enum
from strobe.values.memory import Image
from strobe.values.reader import Limits, Reader
from strobe.values.typed import TypedValue
from strobe.values.typed_world import World

SCAN_S: Final = 3.0
ROWS_AT_ONCE: Final = 2048
DENSE: Final = 1 / 20  # of the numbers between the first and the last: then all payloads there are read
LEAF: Final = Limits(depth=1, elements=100, text=65_536)
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Compared:
    """The selection with what met its deep tests. `last_n` of it is lower than asked for where the time was up; `left`: calls not compared then."""

    selection: Selection
    left: int


class DeepScan:
    """For one query, in the read transaction that `reading` is. `of_calls`: for a view, whose rows are calls."""

    def __init__(self, file: SessionFile, reading: Reading, typed: TypedValues, *, of_calls: bool) -> None:
        self._file = file
        self._run = reading.execute
        self._typed = typed
        self._of_calls = of_calls
        self._worlds: dict[str, World] = {}

    def resolve(self, selection: Selection) -> Compared:
        until = time.monotonic() + SCAN_S
        left = 0
        for name in ("arguments", "results"):
            tests: ValueTests | None = getattr(selection, name)
            if tests is None or tests.deep is None:
                continue
            others = replace(selection, arguments=None, results=None, exits_only=selection.wants_exits)
            scanned, behind = self._scan(others, tests.deep, until)
            left += behind
            found = replace(tests, numbers=tuple(scanned.numbers))
            selection = replace(selection, last_n=min(selection.last_n, scanned.upto))
            selection = replace(selection, arguments=found) if name == "arguments" else replace(selection, results=found)
        return Compared(selection, left)

    def _scan(self, others: Selection, tests: DeepTests, until: float) -> tuple[Scanned, int]:
        low = others.after or 0
        key = repr((replace(others, last_n=0, after=None), tests.wanted, sorted(tests.by_hook), tests.of_result, self._of_calls))
        scanned = self._file.scans.get(key, low)
        if scanned.upto >= others.last_n:
            return scanned, 0
        events, payloads, hooks, bits = self._rows(replace(others, after=None), tests, scanned.upto)
        done = 0
        while done < events.size and (done == 0 or time.monotonic() < until):
            chunk = slice(done, done + ROWS_AT_ONCE)
            scanned.numbers += self._meeting(payloads[chunk], hooks[chunk], bits[chunk], tests)
            done = min(done + ROWS_AT_ONCE, events.size)
        scanned.upto = others.last_n if done >= events.size else int(events[done]) - 1
        self._file.scans.put(key, scanned)
        return scanned, events.size - done

    def _branches(self, others: Selection, tests: DeepTests) -> list[tuple[Branch, str]]:
        """Where the events are, and the column with the number of the payload."""
        if self._of_calls:
            return [(CALL, "exit_n" if tests.of_result else "n")]
        if tests.of_result:
            return [(EXIT, "exit_n"), (LATE, "n")]
        return [(EXIT, "n"), (LATE, "call")] if others.exits_only else [(ENTER, "n")]

    def _rows(self, others: Selection, tests: DeepTests, low: int) -> tuple[Ints, Ints, Ints, Any]:
        """Numbers of events, of their payloads, hooks and (of results) the word returned, by number."""
        parts = []
        for branch, payload in self._branches(others, tests):
            chosen = where(branch, others)
            if not chosen.possible:
                continue
            bits = "ret" if tests.of_result else "NULL::BIGINT"
            columns = f"{branch.n} AS e, {payload} AS p, hook, {bits} AS bits"
            conditions = f"{chosen.text()} AND {number_list('hook', tests.by_hook)} AND {branch.n} > {low} AND {payload} IS NOT NULL"
            parts.append(self._run(f"SELECT {columns} FROM {branch.table} WHERE {conditions}", chosen.texts).fetchnumpy())
        if not parts:
            empty = np.zeros(0, dtype=np.int64)
            return empty, empty, empty, empty
        events, payloads, hooks = (np.concatenate([np.ma.getdata(part[name]) for part in parts]) for name in ("e", "p", "hook"))
        words: Any = np.ma.concatenate([part["bits"] for part in parts])  # type: ignore[no-untyped-call]
        order = np.argsort(events, kind="stable")
        return events[order], payloads[order], hooks[order], words[order]

    def _meeting(self, payloads: Ints, hooks: Ints, bits: Any, tests: DeepTests) -> Iterator[int]:
        first, last = int(payloads.min()), int(payloads.max())
        only = "" if payloads.size >= DENSE * (last - first + 1) else f" AND {number_list('n', payloads.tolist())}"
        bodies = dict(self._run(f"SELECT n, body FROM payloads WHERE n BETWEEN {first} AND {last}{only}").fetchall())
        for n, hook_id, word in zip(payloads.tolist(), hooks.tolist(), bits.tolist(), strict=True):
            hook = self._file.hooks[hook_id]
            captured = Captured(word, bodies.get(n))
            image = Image.of(captured.payload or b"", hook.plan.exit_image if tests.of_result else hook.plan.image)
            if any(self._meets(hook, test, captured, image, tests) for test in tests.by_hook[hook_id]):
                yield n

    def _meets(self, hook: Hook, test: DeepTest, captured: Captured, image: Image, tests: DeepTests) -> bool:
        world = self._world(hook, image)
        found = None if world is None else captured_value(world, test.value, captured)
        if found is None or isinstance(found, Unavailable):
            return False
        found = follow(found, test.steps)
        if isinstance(found, Unavailable):
            return False
        assert world is not None
        return meets(self._shown(world, image, found), _enum_number(found), tests.wanted)

    def _shown(self, world: World, image: Image, value: TypedValue) -> Any:
        reader = Reader(world.table, image, self._typed.formatters, LEAF)
        if value.at is not None and value.bits is None:
            return reader.at(value.type, value.at)
        raw = value.raw()
        return f"<{raw.reason}>" if isinstance(raw, Unavailable) else reader.of(value.type, raw)

    def _world(self, hook: Hook, image: Image) -> World | None:
        key = hook.plan.types or ""
        if key not in self._worlds:
            bundle = self._typed.bundle(hook)
            if bundle is None:
                return None
            self._worlds[key] = World(bundle.table, image, self._typed.formatters)
        world = self._worlds[key]
        world.memory = image
        return world


def _enum_number(value: TypedValue) -> int | None:
    if not isinstance(value.world.table.stripped(value.type), Enum):
        return None
    scalar = value.scalar()
    return scalar.value if isinstance(scalar, Scalar) and isinstance(scalar.value, int) else None
