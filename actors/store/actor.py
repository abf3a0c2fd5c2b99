"""The store: takes what sessions record and print, and answers every question about it.

Three kinds of thread: the event loop (asks), the ingest thread (data stream, commits), a few query threads.
"""

from __future__ import annotations

import asyncio
import resource
import threading
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Final

from actors.store.catalog import LIVE, Catalog
from actors.store.comparing import Comparing
from actors.store.files import Files
from actors.store.in_hand import InHand
from actors.store.ingest import Ingest
from actors.store.queries import Queries
from actors.store.query.one_value import read_value
from actors.store.query.run import run_query
from actors.store.reading import NeedsStatementError
from actors.store.sql import run_sql
from actors.store.testing import TestRuns
from actors.store.testing_answers import TestAnswers
from actors.store.upkeep import Upkeep
from strobe import paths
from strobe.disk_trouble import require_room
from strobe.errors import StrobeError
from strobe.model.session import SessionRecord, SessionState
from strobe.protocol.base import Done
from strobe.protocol.store import (
    CreateSession,
    CreateSessionReply,
    DeleteSession,
    Drain,
    EndSession,
    ListSessions,
    Pending,
    PendingReply,
    QueryReply,
    ReadValue,
    RunQuery,
    RunSql,
    SessionChanged,
    SessionsReply,
    SqlReply,
    StoreStatus,
    StoreStatusReply,
    ValueReply,
)
from strobe.protocol.supervisor import ActorGone
from strobe.runtime import Actor, Context, handles, on_notice

GREETING_S: Final = 20.0  # sessions that live say HELLO within it after the store started
QUERY_S: Final = 10.0
QUERY_THREADS: Final = 4
REMEMBERED_MAX: Final = 100  # events of a page that is made without leaving the event loop
LOOK_AFTER_S: Final = 60.0
SQL_THREADS: Final = 2
ROOM_LEAST: Final = 8 << 20  # bytes free for a session to begin


class Store(Upkeep, TestAnswers, Comparing, Actor):
    role = "store"

    async def starting(self) -> None:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # one of several for each session; nothing inherits it from here
        home = Path(paths.home())
        paths.private_folder(home)
        self._catalog = Catalog(home / "catalog.duckdb", paths.sessions_folder())
        self.test_runs = TestRuns(self._catalog)
        if self._catalog.set_aside is not None:
            unreadable = [str(file) for file in self._catalog.unreadable]
            self.log.error("catalog was damaged and is rebuilt; pending patterns are lost", aside=str(self._catalog.set_aside), unreadable=unreadable)
        self._files = Files(paths.sessions_folder(), self._catalog)
        self._queries = Queries("query", QUERY_THREADS)
        self._sql = Queries("sql", SQL_THREADS, nice=10)
        self._heard: set[str] = set()
        self._unsaved: dict[str, SessionRecord] = {}  # changed, and not in the catalog's file yet
        self._making: dict[str, asyncio.Task[None]] = {}
        in_hand = InHand(home / "in-hand", fell=self.seat.fell)
        if in_hand.problem is not None:
            self.log.warning("no journal of the batches in hand", error=str(in_hand.problem))
        self._ingest = Ingest(paths.data_endpoint(), self._files, in_hand, self, self.log)
        self._thread = threading.Thread(target=self._run_ingest, name="ingest")
        self._thread.start()
        self._background = self.loop.create_task(self._look_after())
        self._background.add_done_callback(self._looked_after)

    def _run_ingest(self) -> None:
        try:
            self._ingest.run()
        except BaseException as error:  # noqa: BLE001 - whatever it was, the actor ends with it
            self.crash(error)

    async def stopping(self, reason: str) -> None:
        del reason
        self._background.cancel()
        self._ingest.stop()
        await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._queries.close()
        self._sql.close()
        self._files.close()
        self._catalog.close()

    # Told by the ingest thread

    def record_changed(self, record: SessionRecord) -> None:
        try:
            self._catalog.put(record)
            self._unsaved.pop(record.session_id, None)
        except StrobeError as error:  # a full disk; the session's own file has it
            self._unsaved[record.session_id] = record
            self.log.error("catalog not written; it will be tried again", session=record.session_id, error=str(error))
        self.notice(SessionChanged(record=record), cause="")

    def heard_of(self, session_id: str) -> None:
        self._heard.add(session_id)

    def starved(self) -> None:
        self._sql.interrupt_all()
        self._queries.interrupt_all()

    # Asks

    @handles(CreateSession)
    async def create_session(self, ask: CreateSession, context: Context) -> CreateSessionReply:
        del context
        require_room(paths.sessions_folder(), ROOM_LEAST)
        record = await asyncio.to_thread(self._catalog.create, ask)
        self._heard.add(record.session_id)
        making = self._making[record.session_id] = self.loop.create_task(self._make_file(record.session_id))
        making.add_done_callback(lambda _: self._making.pop(record.session_id, None))
        return CreateSessionReply(session_id=record.session_id)

    async def _make_file(self, session_id: str) -> None:
        """Now, while the target is being started: neither its launch (80 ms) nor its first batch need wait for it."""
        try:
            await asyncio.to_thread(self._files.touch, session_id)
        except (StrobeError, OSError) as error:
            self.log.warning("session file not made ahead", session=session_id, error=str(error))

    async def _made(self, session_id: str) -> None:
        """Until nobody is making its file: one made after its deletion would stay."""
        if making := self._making.get(session_id):
            await asyncio.wait([making])

    @handles(ListSessions)
    async def list_sessions(self, ask: ListSessions, context: Context) -> SessionsReply:
        del context
        if ask.session_id is not None:
            return SessionsReply(sessions=[self._catalog.get(ask.session_id)])
        return SessionsReply(sessions=self._catalog.sessions(ask.client_id))

    @handles(EndSession, completes=True)
    async def end_session(self, ask: EndSession, context: Context) -> EndSession.EndReply:
        del context
        self._catalog.get(ask.session_id)
        await self._made(ask.session_id)
        events = await asyncio.wrap_future(self._ingest.call(lambda: self._end_session(ask)))
        if not ask.retain:
            await asyncio.to_thread(self._delete, ask.session_id)
        # The keeper's folder holds the environment: it goes with the session. A target that lives on needs nothing of it.
        await asyncio.to_thread(paths.clear_target, ask.session_id)
        return EndSession.EndReply(events_collected=events)

    def _end_session(self, ask: EndSession) -> int:
        """In the ingest thread."""
        self._ingest.release(ask.session_id)
        with self._files.using(ask.session_id) as file:
            ended = {"state": SessionState(ask.state), "retained": ask.retain, "ended_at": file.record.ended_at or time.time_ns()}
            record = file.record.model_copy(update=ended)
            try:
                file.save_record(record)
            except StrobeError:
                if ask.retain:
                    raise
            self.record_changed(record)
            return file.counts.total()[0]

    @handles(DeleteSession, completes=True)
    async def delete_session(self, ask: DeleteSession, context: Context) -> Done:
        del context
        self._catalog.get(ask.session_id)
        await self._made(ask.session_id)
        await asyncio.wrap_future(self._ingest.call(lambda: self._ingest.release(ask.session_id)))
        await asyncio.to_thread(self._delete, ask.session_id)
        return Done()

    @handles(RunQuery)
    async def query(self, ask: RunQuery, context: Context) -> QueryReply:
        if (remembered := self._remembered(ask)) is not None:
            return remembered
        bound = min(QUERY_S, context.deadline_s)
        lease = self._files.using(ask.session_id)
        reply = await self._queries.run(lease, lambda file, connection: run_query(ask.session_id, file, ask.query, connection, all_ends=ask.ends), bound)
        return self._with_trouble(ask.session_id, reply)

    def _with_trouble(self, session_id: str, reply: QueryReply) -> QueryReply:
        """What is recorded and cannot be stored now is not in it: that is told."""
        told = self._ingest.troubles.get(session_id)
        return reply if told is None else reply.model_copy(update={"warnings": [*reply.warnings, told]})

    @handles(ReadValue)
    async def read_value(self, ask: ReadValue, context: Context) -> ValueReply:
        bound = min(QUERY_S, context.deadline_s)
        return await self._queries.run(self._files.using(ask.session_id), lambda file, connection: read_value(file, ask, connection), bound)

    def _remembered(self, ask: RunQuery) -> QueryReply | None:
        """The answer, if it needs no statement: a millisecond or two of this thread, less than another one costs."""
        if ask.query.limit > REMEMBERED_MAX or ask.query.view != "events":
            return None
        with self._files.using_open(ask.session_id) as file:
            if file is None:
                return None
            try:
                reply = run_query(ask.session_id, file, ask.query, None, all_ends=ask.ends)
            except NeedsStatementError:
                return None
        self._queries.answered += 1
        return self._with_trouble(ask.session_id, reply)

    @handles(RunSql)
    async def sql(self, ask: RunSql, context: Context) -> SqlReply:
        bound = min(ask.timeout_ms / 1000, context.deadline_s)
        lease = nullcontext(self._catalog) if ask.session_id is None else self._files.using(ask.session_id)
        return await self._sql.run(lease, lambda _, connection: run_sql(connection, ask.sql, ask.limit), bound)

    @handles(Pending)
    async def pending(self, ask: Pending, context: Context) -> PendingReply:
        del context
        return PendingReply(waiting=await asyncio.to_thread(self._catalog.change_pending, ask.client_id, ask.change, ask.take))

    @handles(StoreStatus)
    async def status(self, ask: StoreStatus, context: Context) -> StoreStatusReply:
        del ask, context
        sizes = await asyncio.to_thread(self._files.on_disk)
        return StoreStatusReply(
            sessions=len(self._catalog.sessions()),
            bytes=sum(sizes.values()),
            events=sum(file.counts.total()[0] for file in self._files.opened()),
            ingested_events=self._ingest.events,
            ingest_lag_ms=self._ingest.lag_ms,
            queries=self._queries.answered + self._sql.answered,
        )

    @handles(Drain, completes=True)
    async def drain(self, ask: Drain, context: Context) -> Done:
        del ask, context
        await asyncio.wrap_future(self._ingest.call(self._ingest.flush_all))
        await asyncio.to_thread(self._checkpoint)
        return Done()

    def _checkpoint(self) -> None:
        for file in self._files.opened():
            file.checkpoint()
        self._catalog.checkpoint()

    # What nobody asks for

    @on_notice(ActorGone)
    async def actor_gone(self, notice: ActorGone) -> None:
        if notice.session_id is not None and notice.gave_up and notice.name.startswith("session:"):
            await self._lose(notice.session_id)
            await asyncio.to_thread(self.test_runs.lose, notice.session_id)

    async def _lose(self, session_id: str) -> None:
        """Its actor is gone for good: what was captured stays."""
        record = self._catalog.find(session_id)
        if record is not None and record.state in LIVE:
            self.log.warning("session lost", session=session_id)
            try:
                await asyncio.wrap_future(self._ingest.call(lambda: self._mark_lost(session_id)))
            except StrobeError as error:
                self.log.error("lost session not marked", session=session_id, error=str(error))

    def _mark_lost(self, session_id: str) -> None:
        self._ingest.release(session_id)
        with self._files.using(session_id) as file:
            record = file.record
            if record.state in LIVE:  # else it ended in order, and only the catalog did not come to know
                record = record.model_copy(update={"state": SessionState.LOST, "ended_at": time.time_ns()})
                file.save_record(record)
            self.record_changed(record)

    def _looked_after(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.crash(error)

    async def _look_after(self) -> None:
        """At the start: what is too old to keep. Soon after: which sessions are still there. Then, every so often, what is no longer used."""
        await self._purge()
        await asyncio.sleep(GREETING_S)
        for record in self._catalog.sessions():
            if record.state in LIVE and record.session_id not in self._heard:
                await self._lose(record.session_id)
        while True:
            await asyncio.to_thread(self._files.close_idle)
            await self._purge()
            for record in list(self._unsaved.values()):
                await asyncio.wrap_future(self._ingest.call(partial(self._save_again, record)))
            await asyncio.sleep(LOOK_AFTER_S)

    def _save_again(self, record: SessionRecord) -> None:
        """In the ingest thread, as all changes of records: it may have changed once more, or be deleted."""
        if self._unsaved.get(record.session_id) is not record:
            return
        if self._catalog.find(record.session_id) is None:
            self._unsaved.pop(record.session_id)
        else:
            self.record_changed(record)
