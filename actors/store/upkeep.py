"""What the store does for operators, and by itself: purging, activity, copies. Part of the store actor."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Final

from actors.store.catalog import LIVE, Catalog
from actors.store.copying import FORMS
from actors.store.files import Files
from actors.store.ingest import Ingest
from actors.store.queries import Queries
from actors.store.retention import chosen, ended_at, expired
from actors.store.session_file import SessionFile
from strobe import paths
from strobe.config import load_settings
from strobe.errors import StrobeError
from strobe.model.session import SessionRecord
from strobe.protocol.upkeep import (
    Activity,
    ActivityReply,
    BusySession,
    CopyReply,
    CopySession,
    FunctionCalls,
    Purge,
    PurgedSession,
    PurgeReply,
)
from strobe.runtime import Context, handles
from strobe.runtime.log import Logger

COPY_S: Final = 600.0
FUNCTIONS_MAX: Final = 1000  # told of each session
SESSIONS_MAX: Final = 50


class Upkeep:
    """The store has this as a base; it sets these."""

    log: Logger
    _catalog: Catalog
    _files: Files
    _ingest: Ingest
    _sql: Queries

    async def _made(self, session_id: str) -> None:
        raise NotImplementedError

    @handles(Purge, completes=True)
    async def purge(self, ask: Purge, context: Context) -> PurgeReply:
        del context
        going, kept = chosen(ask, self._catalog.sessions(), time.time_ns())
        sizes = await asyncio.to_thread(self._files.on_disk)
        if not ask.dry_run:
            for record in going:
                await self._remove(record.session_id, sizes)
        left = sizes if ask.dry_run else await asyncio.to_thread(self._files.on_disk)
        purged = [_purged(record, sizes) for record in going]
        return PurgeReply(purged=purged, kept=kept, freed_bytes=sum(one.bytes for one in purged), left_bytes=sum(left.values()))

    async def _purge(self) -> None:
        """Deletes what the settings no longer let it keep."""
        settings = await asyncio.to_thread(load_settings)
        sizes = await asyncio.to_thread(self._files.on_disk)
        for name in expired(self._catalog.sessions(), sizes, time.time_ns(), settings.values["retention.days"], settings.values["retention.maxBytes"]):
            try:
                await self._remove(name, sizes)
            except StrobeError as error:  # a full disk, perhaps; it is tried again
                self.log.error("session not purged", session=name, error=str(error))

    async def _remove(self, session_id: str, sizes: dict[str, int]) -> None:
        self.log.info("session purged", session=session_id, bytes=sizes.get(session_id, 0))
        await self._made(session_id)
        await asyncio.wrap_future(self._ingest.call(partial(self._ingest.release, session_id)))
        await asyncio.to_thread(self._delete, session_id)

    def _delete(self, session_id: str) -> None:
        # The file first: if we die in between, the catalog's row is found to have none, and goes at the next start.
        self._files.delete(session_id)
        self._catalog.remove(session_id)
        # The keeper's folder holds the environment: it goes with the session. A target that lives on needs nothing of it.
        paths.clear_target(session_id)  # it may go at this moment with the session's process

    @handles(Activity)
    async def activity(self, ask: Activity, context: Context) -> ActivityReply:
        del ask, context
        sizes = await asyncio.to_thread(self._files.on_disk)
        opened = {file.record.session_id: file for file in self._files.opened()}
        shown = [record for record in self._catalog.sessions() if record.state in LIVE or record.session_id in opened]
        return ActivityReply(sessions=[_busy(record, opened.get(record.session_id), sizes) for record in shown[:SESSIONS_MAX]])

    @handles(CopySession, completes=True)
    async def copy_session(self, ask: CopySession, context: Context) -> CopyReply:
        del context
        await asyncio.wrap_future(self._ingest.call(partial(self._ingest.flush, ask.session_id)))
        copying = FORMS[ask.form]
        return await self._sql.run(
            self._files.using(ask.session_id), lambda file, connection: copying(file, connection, Path(ask.path)), COPY_S
        )


def _purged(record: SessionRecord, sizes: dict[str, int]) -> PurgedSession:
    return PurgedSession(session_id=record.session_id, state=str(record.state), ended_at=ended_at(record), bytes=sizes.get(record.session_id, 0))


def _busy(record: SessionRecord, file: SessionFile | None, sizes: dict[str, int]) -> BusySession:
    """Without an open file nothing was recorded since the store started."""
    called = file.counts.called() if file else {}
    hooks = file.hooks if file else {}
    most = sorted(called.items(), key=lambda pair: -pair[1])[:FUNCTIONS_MAX]
    return BusySession(
        session_id=record.session_id,
        state=str(record.state),
        pid=record.pid,
        events=file.position.next_n - 1 if file else 0,
        bytes=sizes.get(record.session_id, 0),
        dropped=sum(file.losses.values()) if file else 0,
        calls=[FunctionCalls(function=hooks[hook].place.function, calls=number) for hook, number in most if hook in hooks],
    )
