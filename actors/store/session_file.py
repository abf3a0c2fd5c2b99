"""One session's file: opened once, written by one transaction per commit, read through cursors of the same instance."""

from __future__ import annotations

import bisect
import operator
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

from actors.store.blocks import BlockCache
from actors.store.columns import to_table
from actors.store.counts import Counts, Key, Snapshot
from actors.store.decoder import Decoded
from actors.store.instance import open_instance, reader, roll_back
from actors.store.mapping import EVICTED_COUNTS, added_counts, load_map, map_commit, stored_counts
from actors.store.scan_cache import ScanCache
from actors.store.schema import SCHEMA_VERSION, TABLES, VALUE_COLUMNS
from actors.store.sql_views import views
from actors.store.trace_map import EVENTS_MAX_DEFAULT
from actors.store.type_book import TypeBook
from strobe.disk_trouble import named
from strobe.errors import Code, StrobeError
from strobe.model.probe import Hook
from strobe.model.sampling import SampledFunction, by_function
from strobe.model.session import SessionRecord

Rows = list[dict[str, Any]]
READERS_KEPT: Final = 4
SAMPLED: Final = "sampled"  # the cause under which calls are counted that were not to be recorded
EVICTED: Final = "evicted"  # the cause under which evicted events are counted as lost


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where the session's stream is stored, and where its numbering and its time stand."""

    epoch: int = 0
    seq: int = 0
    resume: bytes = b""
    next_n: int = 1
    settled: int = 0
    newest: int = 0


@dataclass(slots=True)
class Changes:
    """What one commit stores: decoded records (numbered from `first_n`), rows by table, and the position after it."""

    position: Position
    first_n: int = 0
    decoded: Decoded = field(default_factory=Decoded)
    rows: dict[str, Rows] = field(default_factory=dict)
    other_times: list[int] = field(default_factory=list)  # of output and points, numbered after the records
    open_calls: bytes | None = None
    record: SessionRecord | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread as events name it. A new name makes a new one, so that an event shows the name of its time."""

    id: int
    lane: int
    pid: int
    tid: int
    name: str


class SessionFile:
    """Raises duckdb.Error when the file is damaged, VALIDATION_ERROR when a later version of Strobe made it.

    Only one thread commits at a time; readers are independent.
    """

    def __init__(self, path: Path, record: SessionRecord) -> None:
        self.path = path
        self._connection = open_instance(path)
        self._lock = threading.Lock()
        self._free_readers: list[duckdb.DuckDBPyConnection] = []
        self.counts = Counts()
        self.blocks = BlockCache()
        self.scans = ScanCache()
        self._evicted_to = 0  # trace events up to this number are gone
        try:
            self._make(record)
            self._load()
        except BaseException:
            self._connection.close()
            raise

    def _make(self, record: SessionRecord) -> None:
        run = self._connection.execute
        run("BEGIN")
        for statement in TABLES:
            run(statement)
        if not run("SELECT count(*) FROM positions").fetchall()[0][0]:
            run("INSERT INTO positions VALUES (0, 0, ''::BLOB, 1, 0, 0, ''::BLOB)")
        if not run("SELECT count(*) FROM session").fetchall()[0][0]:
            run("INSERT INTO session VALUES (?, ?)", [record.model_dump_json(by_alias=True), SCHEMA_VERSION])
        version: int = run("SELECT version FROM session").fetchall()[0][0]
        if version > SCHEMA_VERSION:
            what = f"The data of session {record.session_id} was written by a later version of Strobe (schema {version}, this one reads {SCHEMA_VERSION})."
            raise StrobeError(Code.VALIDATION_ERROR, what, "Use that version to read it.", value=record.session_id)
        if version < SCHEMA_VERSION:  # what is new are tables, made above
            run("UPDATE session SET version = ?", [SCHEMA_VERSION])
        columns = {row[0] for row in run("SELECT column_name FROM duckdb_columns() WHERE table_name = 'raw_calls'").fetchall()}
        self.value_columns = sum(f"a{k}" in columns for k in range(VALUE_COLUMNS))
        if not run("SELECT count(*) FROM duckdb_views() WHERE view_name = 'calls'").fetchall()[0][0]:
            self._make_views()
        run("COMMIT")

    def _load(self) -> None:
        run = self._connection.execute
        epoch, seq, resume, next_n, settled, newest, self.open_calls = run("SELECT * FROM positions").fetchall()[0]
        self.position = Position(epoch, seq, resume, next_n, settled, newest)
        self.record = SessionRecord.model_validate_json(run("SELECT record FROM session").fetchall()[0][0])
        self.hooks = {number: Hook.model_validate_json(text) for number, text in run("SELECT id, hook FROM hooks ORDER BY id").fetchall()}
        self.threads = {row[0]: Thread(*row) for row in run("SELECT * FROM threads").fetchall()}
        self.modules: dict[str, int] = dict(run("SELECT path, bias FROM modules").fetchall())
        self.types = TypeBook(row[0] for row in run("SELECT key FROM types").fetchall())
        self.next_string: int = run("SELECT coalesce(max(id), 0) + 1 FROM strings").fetchall()[0][0]
        self.losses: dict[str, int] = dict(run("SELECT cause, sum(lost)::BIGINT FROM losses GROUP BY cause").fetchall())
        rows = run("SELECT hook, sum(lost)::BIGINT FROM losses WHERE cause = ? GROUP BY hook", [SAMPLED]).fetchall()
        self.left_out: dict[int, int] = dict(rows)  # calls of a hook that were only counted
        self.periods: dict[int, list[tuple[int, int]]] = {}
        for ts, hook, period in run("SELECT ts, hook, period FROM sampling ORDER BY ts").fetchall():
            self.periods.setdefault(hook, []).append((ts, period))
        self.point_pids: set[int] = {row[0] for row in run("SELECT DISTINCT pid FROM points WHERE pid IS NOT NULL").fetchall()}
        self._map = load_map(self._connection, events_max(self.record))
        self.counts.publish(stored_counts(self._connection), self._snapshot())

    def _snapshot(self) -> Snapshot:
        at = self.position
        return Snapshot(at.next_n - 1, at.settled, at.newest, self.losses.get(EVICTED, 0), self._map)

    # Reading

    def rate(self, hook: int, ts: int) -> float:
        """The share of its calls that was recorded at a time."""
        changes = self.periods.get(hook, [])
        at = bisect.bisect_right(changes, ts, key=operator.itemgetter(0)) - 1
        return 1 / max(changes[max(at, 0)][1], 1) if changes else 1.0

    def sampled(self) -> list[SampledFunction]:
        """The functions of which not all calls were recorded."""
        known = [hook for hook in self.periods.keys() | self.left_out.keys() if hook in self.hooks]
        return by_function((self.hooks[hook].place.function, self.rate(hook, self.position.newest), self.left_out.get(hook, 0)) for hook in known)

    def reader(self) -> duckdb.DuckDBPyConnection:
        """One that is free, or a new one. To be given back, or closed."""
        try:
            return self._free_readers.pop()
        except IndexError:
            return reader(self._connection)

    def give_back(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Only one that is in no transaction and was not interrupted."""
        if len(self._free_readers) < READERS_KEPT:
            self._free_readers.append(connection)
        else:
            connection.close()

    # Writing

    def need_values(self, count: int) -> None:
        """Sees to it that `raw_calls` has a column for each of the first `count` arguments. A transaction of its own."""
        with self._lock:
            if min(count, VALUE_COLUMNS) <= self.value_columns:
                return
            while self.value_columns < min(count, VALUE_COLUMNS):
                self._connection.execute(f"ALTER TABLE raw_calls ADD COLUMN IF NOT EXISTS a{self.value_columns} BIGINT")
                self.value_columns += 1
            self._make_views()

    def _make_views(self) -> None:
        for statement in views(self.value_columns):
            self._connection.execute(statement)

    def commit(self, changes: Changes) -> None:
        """All of it in one transaction, or nothing. Afterwards it is on disk and every reader sees it."""
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                new_map = map_commit(self._map, changes.decoded, changes.first_n, changes.other_times)
                self._store(changes)
                cut = new_map.overflow()
                evicted = self._evict(cut)
                self._connection.execute("COMMIT")
            except BaseException:
                roll_back(self._connection)
                raise
            self._map = new_map
            self._evicted_to = max(self._evicted_to, cut or 0)
            self._adopt(changes, evicted)

    def _adopt(self, changes: Changes, evicted: list[tuple[Key, int]]) -> None:
        """What is kept in memory, after the commit."""
        self.position = changes.position
        if changes.open_calls is not None:
            self.open_calls = changes.open_calls
        if changes.record is not None:
            self.record = changes.record
            self._map.events_max = events_max(changes.record)
        self.types.stored([row["key"] for row in changes.rows.get("types", [])])
        for row in changes.rows.get("losses", []):
            self.losses[row["cause"]] = self.losses.get(row["cause"], 0) + row["lost"]
            if row["cause"] == SAMPLED:
                self.left_out[row["hook"]] = self.left_out.get(row["hook"], 0) + row["lost"]
        for row in changes.rows.get("sampling", []):
            self.periods.setdefault(row["hook"], []).append((row["ts"], row["period"]))
        if evicted:
            self.losses[EVICTED] = self.losses.get(EVICTED, 0) - sum(number for _, number in evicted)
        self.point_pids |= {row["pid"] for row in changes.rows.get("points", []) if row["pid"] is not None}
        self.counts.publish([*added_counts(changes.decoded, changes.rows), *evicted], self._snapshot())

    def _store(self, changes: Changes) -> None:
        decoded = changes.decoded
        for table, columns in (("raw_calls", decoded.calls), ("raw_exits", decoded.exits), ("more_values", decoded.more_values)):
            if columns:
                self._insert(table, to_table(columns))
        if decoded.payloads is not None:
            self._insert("payloads", decoded.payloads.to_table())
        for table, rows in changes.rows.items():
            if rows:
                self._insert(table, pa.Table.from_pylist(rows))
        at = changes.position
        values: list[Any] = [at.epoch, at.seq, at.resume, at.next_n, at.settled, at.newest]
        opened = ""
        if changes.open_calls is not None and changes.open_calls != self.open_calls:
            opened = ", open_calls = ?"
            values.append(changes.open_calls)
        self._connection.execute(f"UPDATE positions SET epoch = ?, seq = ?, resume = ?, next_n = ?, settled = ?, newest = ?{opened}", values)
        if changes.record is not None:
            self._connection.execute("UPDATE session SET record = ?", [changes.record.model_dump_json(by_alias=True)])

    def _evict(self, cut: int | None) -> list[tuple[Key, int]]:
        """Deletes trace events up to the number `cut`. Answers what went, as negative counts."""
        if cut is None:
            return []
        run = self._connection.execute
        past = self._evicted_to  # what is before went already: blocks of it are not looked at again
        gone: list[tuple[str, int, int, int]] = run(EVICTED_COUNTS.format(past=past, cut=cut)).fetchall()
        for table in ("raw_calls", "raw_exits", "more_values", "payloads"):
            run(f"DELETE FROM {table} WHERE n > {past} AND n <= {cut}")
        lost = sum(number for _, _, _, number in gone)
        if not run("UPDATE losses SET lost = lost + ? WHERE cause = ?", [lost, EVICTED]).fetchall()[0][0]:
            run("INSERT INTO losses VALUES (?, NULL, NULL, ?)", [EVICTED, lost])
        return [((branch, hook, thread), -number) for branch, hook, thread, number in gone if number]

    def _insert(self, table: str, rows: pa.Table) -> None:
        names = ", ".join(rows.column_names)
        self._connection.register("incoming", rows)
        try:
            self._connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM incoming")
        finally:
            self._connection.unregister("incoming")

    def save_record(self, record: SessionRecord) -> None:
        """The session's own row, outside its stream: when it ends, or is found lost."""
        with named(self.path.parent, duckdb.Error):
            self.commit(Changes(position=self.position, record=record))

    def checkpoint(self) -> None:
        with self._lock, named(self.path.parent, duckdb.Error):
            self._connection.execute("CHECKPOINT")

    def copy_to(self, path: Path) -> int:
        """File and log as they stand between two commits, to `path` and its `.wal`. Answers how many events they hold."""
        with self._lock:
            for suffix in ("", ".wal"):
                part = self.path.with_name(self.path.name + suffix)
                if part.exists():
                    shutil.copyfile(part, path.with_name(path.name + suffix))
            return self.counts.total()[0]

    def bytes_on_disk(self) -> int:
        log = self.path.with_name(self.path.name + ".wal")
        return sum(file.stat().st_size for file in (self.path, log) if file.exists())

    def close(self) -> None:
        """Writes what is in the log into the file. Readers that still run fail."""
        with self._lock:
            self._connection.close()


def events_max(record: SessionRecord) -> int:
    return int(record.detail.get("eventsMax") or EVENTS_MAX_DEFAULT)
