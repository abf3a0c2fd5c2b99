"""`catalog.duckdb`: which sessions there are, and the patterns that wait for a client's next launch.

It holds nothing about a session that the session's own file does not hold too: a damaged catalog is set aside and built anew from those.
All methods may be called from any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from actors.store.instance import open_instance, reader, roll_back
from actors.store.session_id import new_session_id
from strobe.disk_trouble import named, trouble
from strobe.errors import Code, StrobeError
from strobe.model.pending import PendingChange, PendingSet
from strobe.model.session import SessionRecord, SessionState
from strobe.protocol.store import CreateSession

LIVE: Final = (SessionState.RUNNING, SessionState.PAUSED)
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS sessions(id VARCHAR PRIMARY KEY, client VARCHAR, binary_path VARCHAR, state VARCHAR, started_at BIGINT, record VARCHAR)",
    "CREATE TABLE IF NOT EXISTS waiting(client VARCHAR PRIMARY KEY, body VARCHAR)",
)


class Catalog:
    def __init__(self, path: Path, sessions_folder: Path) -> None:
        self._folder = sessions_folder
        self._lock = threading.Lock()
        self._pending_lock = threading.Lock()
        self._creating = threading.Lock()
        self._pending: dict[str, PendingSet] = {}  # by client, as the table has it
        self.set_aside: Path | None = None
        self.unreadable: list[Path] = []
        try:
            self._connection = self._open(path)
            self._records = self._load()
        except (duckdb.Error, ValueError) as error:
            if (told := trouble(error, path)) is not None:
                raise told from error
            self.set_aside = _set_aside(path)
            self._connection = self._open(path)
            self._records = {}
            self._rebuild()

    @staticmethod
    def _open(path: Path) -> duckdb.DuckDBPyConnection:
        connection = open_instance(path)
        try:
            for statement in _TABLES:
                connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection

    def _load(self) -> dict[str, SessionRecord]:
        """All records, which stay in memory: this process alone writes them. Raises duckdb.Error, ValueError."""
        try:
            records = [SessionRecord.model_validate_json(row[0]) for row in self._connection.execute("SELECT record FROM sessions").fetchall()]
            rows = self._connection.execute("SELECT client, body FROM waiting").fetchall()
            self._pending = {client: PendingSet.model_validate_json(body) for client, body in rows}
        except BaseException:
            self._connection.close()
            raise
        return {record.session_id: record for record in records}

    def _rebuild(self) -> None:
        """From the session files, each of which holds its own row. One that cannot be read stays where it is, unlisted."""
        for file in sorted(self._folder.glob("*.duckdb")):
            try:
                connection = open_instance(file)
            except duckdb.Error:
                self.unreadable.append(file)
                continue
            try:
                for (text,) in connection.execute("SELECT record FROM session").fetchall():
                    self.put(SessionRecord.model_validate_json(text))
            except (duckdb.Error, ValueError):
                self.unreadable.append(file)
            finally:
                connection.close()

    @contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._lock, named(self._folder, duckdb.Error):
            self._connection.execute("BEGIN")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                roll_back(self._connection)
                raise

    def create(self, ask: CreateSession) -> SessionRecord:
        """The new session's record. Raises SESSION_EXISTS when this client has a live session of this binary, or anyone one of this process."""
        with self._creating:  # of two that attach to one process the second sees the first
            with self.transaction() as run:
                live = self._live(run, ask) if ask.session_id is None else None
                if live is not None:
                    of = ask.binary_path if ask.pid is None else f"process {ask.pid}"
                    what = f"Session {live} of {of} is running."
                    raise StrobeError(Code.SESSION_EXISTS, what, "Use that session, or stop it with debug_session action=stop first.", value=live)
                record = SessionRecord(
                    session_id=ask.session_id or new_session_id(ask.binary_path, ask.started_at, lambda name: self._taken(run, name)),
                    client_id=ask.client_id,
                    binary_path=ask.binary_path,
                    command=ask.command,
                    cwd=ask.cwd,
                    project_root=ask.project_root,
                    pid=ask.pid,
                    state=SessionState.RUNNING,
                    started_at=ask.started_at,
                    started_monotonic_ns=ask.started_monotonic_ns,
                    detail={"eventsMax": ask.events_max},
                )
                _put(run, record)
            self._records[record.session_id] = record
        return record

    def _live(self, run: duckdb.DuckDBPyConnection, ask: CreateSession) -> str | None:
        """The live session that this one would be a second of."""
        if ask.pid is not None:
            return next((one.session_id for one in list(self._records.values()) if one.pid == ask.pid and one.state in LIVE), None)
        rows = run.execute(
            "SELECT id FROM sessions WHERE client = ? AND binary_path = ? AND state IN ('running', 'paused')", [ask.client_id, ask.binary_path]
        ).fetchall()
        return rows[0][0] if rows else None

    def _taken(self, run: duckdb.DuckDBPyConnection, name: str) -> bool:
        return bool(run.execute("SELECT 1 FROM sessions WHERE id = ?", [name]).fetchall()) or (self._folder / f"{name}.duckdb").exists()

    def put(self, record: SessionRecord) -> None:
        """Raises LIMIT_EXCEEDED where it cannot be written; it is known then all the same, until this process ends."""
        self._records[record.session_id] = record
        with self.transaction() as run:
            _put(run, record)

    def remove(self, session_id: str) -> None:
        self._records.pop(session_id, None)
        with self.transaction() as run:
            run.execute("DELETE FROM sessions WHERE id = ?", [session_id])

    def find(self, session_id: str) -> SessionRecord | None:
        return self._records.get(session_id)

    def get(self, session_id: str) -> SessionRecord:
        """Raises SESSION_NOT_FOUND."""
        record = self.find(session_id)
        if record is None:
            known = ", ".join(record.session_id for record in self.sessions()[:5])
            next_step = f"The latest are: {known}." if known else "There is no session yet; start one with debug_launch."
            raise StrobeError(Code.SESSION_NOT_FOUND, f"There is no session {session_id!r}.", next_step, value=session_id)
        return record

    def sessions(self, client_id: str | None = None) -> list[SessionRecord]:
        """Latest first."""
        records = [record for record in list(self._records.values()) if client_id is None or record.client_id == client_id]
        return sorted(records, key=lambda record: (record.started_at, record.session_id), reverse=True)

    def change_pending(self, client_id: str, change: PendingChange, take: bool) -> PendingSet:
        """One difference to what waits for a client's launch. Answers the set as it was (`take`, which empties it) or is now.

        It is on disk when this returns; what changes nothing costs no write.
        """
        with self._pending_lock:
            before = self._pending.get(client_id, PendingSet())
            found = change.applied(before)
            after = PendingSet() if take else found
            if after != before:
                self._save_pending(client_id, after)
            return found

    def _save_pending(self, client_id: str, after: PendingSet) -> None:
        with self.transaction() as run:
            if after.empty:
                run.execute("DELETE FROM waiting WHERE client = ?", [client_id])
            else:
                run.execute("INSERT OR REPLACE INTO waiting VALUES (?, ?)", [client_id, after.model_dump_json(by_alias=True)])
        if after.empty:
            self._pending.pop(client_id, None)
        else:
            self._pending[client_id] = after

    def reader(self) -> duckdb.DuckDBPyConnection:
        return reader(self._connection)

    def give_back(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.close()

    def checkpoint(self) -> None:
        with self._lock, named(self._folder, duckdb.Error):
            self._connection.execute("CHECKPOINT")

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _put(run: duckdb.DuckDBPyConnection, record: SessionRecord) -> None:
    run.execute(
        "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?)",
        [record.session_id, record.client_id, record.binary_path, str(record.state), record.started_at, record.model_dump_json(by_alias=True)],
    )


def _set_aside(path: Path) -> Path:
    """Moves a damaged file and its log out of the way, for someone to look at."""
    aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    if path.exists():
        path.rename(aside)
    log = path.with_name(path.name + ".wal")
    if log.exists():
        log.rename(aside.with_name(aside.name + ".wal"))
    return aside
