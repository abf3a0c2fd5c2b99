"""Values that only payloads hold, compared one call after the other: those of the calls that all other filters leave, in order of arrival, as far as the
time allows. What was compared is remembered: the same question goes on where it stopped, and a later page repeats nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actors.store.query.branches import CALL, ENTER, EXIT, LATE, Branch, number_list, where
from actors.store.query.compare import holds_for, tells_bits
from actors.store.query.deep_values import captured_value
from actors.store.query.plain_paths import Bodies, PlainPath, follow_all, plain_path
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
ROWS_AT_ONCE: Final = 1024
PLAIN_AT_ONCE: Final = 16_384
DENSE: Final = 1 / 20  # of the numbers between the first and the last: then all payloads there are read
LEAF: Final = Limits(depth=1, elements=100, text=65_536)
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


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
        self._paths: dict[tuple[int, int | None], PlainPath | None] = {}

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
        plain = all(self._plain(self._file.hooks[hook], test, tests) is not None for hook, those in tests.by_hook.items() for test in those)
        at_once = PLAIN_AT_ONCE if plain else ROWS_AT_ONCE
        while done < events.size and (done == 0 or time.monotonic() < until):
            chunk = slice(done, done + at_once)
            scanned.numbers += self._meeting(payloads[chunk], hooks[chunk], bits[chunk], tests)
            done = min(done + at_once, events.size)
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

    def _meeting(self, payloads: Ints, hooks: Ints, bits: Any, tests: DeepTests) -> list[int]:
        """Numbers of the payloads that meet it, in the order given."""
        first, last = int(payloads.min()), int(payloads.max())
        only = "" if payloads.size >= DENSE * (last - first + 1) else f" AND {number_list('n', payloads.tolist())}"
        stored = self._run(f"SELECT n, body FROM payloads WHERE n BETWEEN {first} AND {last}{only}").fetchnumpy()
        bodies = Bodies.of(stored["n"], stored["body"].tolist(), payloads, np.ma.filled(bits, 0).astype(np.int64).view(np.uint64))
        has_word = ~np.ma.getmaskarray(bits)
        met = np.zeros(payloads.size, dtype=np.bool_)
        for hook_id in np.unique(hooks).tolist():
            rows = np.flatnonzero(hooks == hook_id)
            hook = self._file.hooks[hook_id]
            waiting = np.zeros(rows.size, dtype=np.bool_)
            for test in tests.by_hook[hook_id]:
                found, unsure = self._at_once(hook, test, bodies.take(rows), has_word[rows], tests)
                met[rows] |= found
                waiting |= unsure
            for row in rows[waiting & ~met[rows]].tolist():
                met[row] = self._one(hook, Captured(int(bodies.words[row].view(np.int64)) if has_word[row] else None, bodies.bytes_of(row)), tests)
        return [int(number) for number in payloads[met]]

    def _at_once(self, hook: Hook, test: DeepTest, bodies: Bodies, has_word: Mask, tests: DeepTests) -> tuple[Mask, Mask]:
        """(those that meet the test, those that must be looked at one by one)."""
        path = self._plain(hook, test, tests)
        if path is None:
            return np.zeros(has_word.size, dtype=np.bool_), np.ones(has_word.size, dtype=np.bool_)
        values, known, unsure = follow_all(bodies, path, hook.plan.exit_image if tests.of_result else hook.plan.image)
        if path.offset is None:
            known, unsure = known & has_word, unsure & has_word
        return known & holds_for(path.leaf, values, tests.wanted), unsure

    def _plain(self, hook: Hook, test: DeepTest, tests: DeepTests) -> PlainPath | None:
        key = (hook.id, test.position)
        if key not in self._paths:
            bundle = self._typed.bundle(hook)
            path = None if bundle is None else plain_path(bundle.table, self._typed.formatters, test.value, test.steps)
            self._paths[key] = path if path is not None and tells_bits(path.leaf, tests.wanted) else None
        return self._paths[key]

    def _one(self, hook: Hook, captured: Captured, tests: DeepTests) -> bool:
        image = Image.of(captured.payload or b"", hook.plan.exit_image if tests.of_result else hook.plan.image)
        return any(self._meets(hook, test, captured, image, tests) for test in tests.by_hook[hook.id])

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
