"""What the store answers about two sessions at once."""

from __future__ import annotations

from typing import Final

import duckdb

from actors.store.divergence.run import run_compare
from actors.store.files import Files
from actors.store.queries import Queries
from actors.store.session_file import SessionFile
from strobe.errors import Code, StrobeError
from strobe.protocol.compare import CompareReply, CompareSessions
from strobe.runtime import Actor, Context, handles

COMPARE_S: Final = 11.5
REPORT_S: Final = 1.5  # of an ask's time, for what was found


class Comparing(Actor):
    """For the store's actor. One comparison takes a core for seconds: it waits with the SQL of callers."""

    _files: Files
    _sql: Queries

    @handles(CompareSessions)
    async def compare_sessions(self, ask: CompareSessions, context: Context) -> CompareReply:
        if ask.session_id == ask.against:
            raise StrobeError(Code.VALIDATION_ERROR, "A session is the same as itself.", "Give another session as `against`.", value=ask.against)
        bound = min(COMPARE_S, context.deadline_s)

        def work(ours: SessionFile, connection: duckdb.DuckDBPyConnection) -> CompareReply:
            with self._files.using(ask.against) as theirs:
                other = theirs.reader()
                try:
                    return run_compare(ask, ours, theirs, (connection, other), max(0.5, bound - REPORT_S))
                finally:
                    other.close()

        return await self._sql.run(self._files.using(ask.session_id), work, bound)
