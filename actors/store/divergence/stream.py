"""A thread's enters and exits in their order, some ten thousand at a time: how many calls there are does not matter for memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actors.store.divergence.functions import Compared, Look
from actors.store.divergence.threads import TracedThread
from actors.store.query.branches import number_list
from actors.store.reading import Reading
from actors.store.schema import UNWOUND
from actors.store.session_file import SessionFile
from actors.store.strings import UNREADABLE_ID

Ints = NDArray[np.int64]
Marks = NDArray[np.uint64]
EVENTS_A_PART: Final = 131_072
NUMBERS_A_PART: Final = 8 * EVENTS_A_PART  # a part has no more events than numbers
ADDRESS_LOW: Final = 0x5500_0000_0000  # where programs, libraries, heaps and stacks of x86-64 are put at random
ADDRESS_HIGH: Final = 0x7FFF_FFFF_FFFF
ADDRESS_IN_TEXT: Final = "0x[0-9a-f]{6,}"
_FAR: Final = 1 << 40  # a mark apart from numbers of threads and processes


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one thread. `code`: 2 · function, + 1 for an exit, and the sign for one by an exception; `marks[k]`: what the value in column k compares by
    (0: not to be compared), the last column the result's."""

    n: Ints
    call: Ints
    ts: Ints
    hook: Ints
    code: Ints
    flags: Ints
    bits: NDArray[np.int64]  # rows × columns
    known: NDArray[np.bool_]
    marks: Marks
    deep: NDArray[np.bool_]

    @property
    def size(self) -> int:
        return int(self.n.size)

    def cut(self, start: int, end: int) -> Part:
        return Part(*(getattr(self, name)[start:end] for name in self.__slots__))

    def then(self, other: Part) -> Part:
        return Part(*(np.concatenate((getattr(self, name), getattr(other, name))) for name in self.__slots__))


class ThreadStream:
    """Reads one thread. `numbers`: what its session calls its processes and threads → the same number on the other side."""

    def __init__(
        self, file: SessionFile, reading: Reading, thread: TracedThread, compared: Mapping[int, Compared], last_n: int, numbers: Mapping[int, int]
    ) -> None:
        self._file, self._reading, self._thread = file, reading, thread
        self._compared = compared
        self._last_n = last_n
        self._numbers = numbers
        self._columns = file.value_columns

    def parts(self) -> Iterator[Part]:
        at, last = self._thread.first_n, min(self._thread.last_n, self._last_n)
        span = last - at + 1
        dense = max(1, span // max(1, 2 * self._thread.calls))
        step = min(max(EVENTS_A_PART * dense, EVENTS_A_PART), NUMBERS_A_PART)
        while at <= last:
            end = min(at + step, last + 1)
            part = self._part(at, end)
            if part is not None:
                yield part
            at = end

    def _part(self, start: int, end: int) -> Part | None:
        rows = self._reading.execute(self._sql(start, end)).fetchnumpy()
        if not len(rows["at"]):
            return None
        column = {name: _filled(values) for name, values in rows.items()}
        names = [f"a{k}" for k in range(self._columns)] + ["ret"]
        bits = np.stack([column[name] for name in names], axis=1)
        known = np.stack([~np.ma.getmaskarray(np.ma.asarray(rows[name])) for name in names], axis=1)
        hook, leaves = column["hook"], column["leaves"]
        keys, deep = np.zeros(hook.size, np.int64), np.zeros(hook.size, np.bool_)
        marks = np.zeros(bits.shape, np.uint64)
        for number in np.unique(hook).tolist():
            compared = self._compared[number]
            chosen = hook == number
            keys[chosen], deep[chosen] = compared.key, compared.deep
            for k, look in [*enumerate(compared.arguments[: self._columns]), (self._columns, compared.result)]:
                if look is not Look.NONE:
                    which = np.flatnonzero(chosen & known[:, k])
                    marks[which, k] = self._marks(look, bits[which, k])
        thrown = (leaves == 1) & ((column["flags"] & UNWOUND) != 0)
        marks[thrown, -1] = 0
        code = np.where(thrown, -(2 * keys + 2), 2 * keys + leaves)
        return Part(column["at"], column["call"], column["ts"], hook, code, column["flags"], bits, known, marks, deep)

    def _sql(self, start: int, end: int) -> str:
        of = f"{number_list('thread', self._thread.ids)} AND {number_list('hook', self._compared)}"
        values, empty = "".join(f", a{k}" for k in range(self._columns)), ", NULL" * self._columns
        none = "NULL::BIGINT"
        return (
            f"SELECT n AS at, n AS call, ts, hook, 0::BIGINT AS leaves, flags::BIGINT AS flags, {none} AS ret{values} FROM raw_calls "
            f"WHERE n >= {start} AND n < {end} AND {of} UNION ALL "
            f"SELECT exit_n, n, exit_ts, hook, 1, flags::BIGINT, ret{empty} FROM raw_calls WHERE n < {end} AND exit_n >= {start} AND exit_n < {end} AND {of} "
            f"UNION ALL SELECT n, call, ts, hook, 1, flags::BIGINT, ret{empty} FROM raw_exits WHERE n >= {start} AND n < {end} AND {of} ORDER BY 1"
        )

    def _marks(self, look: Look, bits: Ints) -> Marks:
        """Never 0."""
        if look is Look.POINTER:
            return np.where(bits == 0, 1, 2).astype(np.uint64)
        if look is Look.TEXT:
            return self._texts(bits)
        if look is Look.FLOAT:
            numbers = bits.view(np.float64)
            bits = np.where(np.isnan(numbers), -1, np.where(numbers == 0, 0, bits))  # -0.0 is 0.0
        elif self._numbers:
            bits = self._renumbered(bits)
        if look is Look.WIDE:
            bits = np.where((bits >= ADDRESS_LOW) & (bits <= ADDRESS_HIGH), ADDRESS_LOW, bits)
        mixed = bits.view(np.uint64)
        return np.where(mixed == 0, np.uint64(1 << 63), np.where(mixed == np.uint64(1 << 63), np.uint64(0x9E3779B97F4A7C15), mixed))

    def _renumbered(self, bits: Ints) -> Ints:
        """Ids of processes and threads as what both sides call them."""
        which = np.flatnonzero(np.isin(bits, list(self._numbers)))
        if which.size:
            bits = bits.copy()
            bits[which] = [_FAR + self._numbers[number] for number in bits[which].tolist()]
        return bits

    def _texts(self, ids: Ints) -> Marks:
        wanted = np.unique(ids[ids > 0])
        found = np.full(ids.size, 1, np.uint64)
        found[ids == UNREADABLE_ID] = 2
        if wanted.size:
            text = f"regexp_replace(text, '{ADDRESS_IN_TEXT}', '0x', 'g')"
            sql = f"SELECT id, hash({text}) AS mark FROM strings WHERE id IN (SELECT unnest(?::BIGINT[])) ORDER BY id"
            rows = self._reading.execute(sql, [wanted.tolist()]).fetchnumpy()
            at = np.searchsorted(rows["id"], ids)
            present = (ids > 0) & (at < rows["id"].size)
            present[present] = rows["id"][at[present]] == ids[present]
            found[present] = np.maximum(_unmasked(rows["mark"])[at[present]].astype(np.uint64), 3)
        return found


def _filled(values: Any) -> Ints:
    return _unmasked(values).astype(np.int64)


def _unmasked(values: Any) -> NDArray[Any]:
    filled: NDArray[Any] = np.ma.filled(values, 0) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    return filled
