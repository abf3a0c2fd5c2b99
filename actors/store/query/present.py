"""Rows as the events of a reply: SPEC §4's two forms."""

from __future__ import annotations

import json
from typing import Any

from actors.store.query.branches import ENTER, OUTPUT, POINT
from actors.store.query.captured import CallOf, CallValues
from actors.store.query.event_id import event_id
from actors.store.query.scan import Row
from actors.store.query.typed_values import TypedValues
from actors.store.reading import Reading
from actors.store.scalars import result_of
from actors.store.schema import UNWOUND
from actors.store.session_file import SessionFile
from strobe.lanes.layout import EntryFlag
from strobe.model.probe import Hook, Value

_STREAM_NAMES = {1: "stdout", 2: "stderr"}


class Presenter:
    def __init__(self, session_id: str, file: SessionFile, reading: Reading, typed: TypedValues, *, verbose: bool) -> None:
        self._session_id = session_id
        self._file = file
        self._verbose = verbose
        self._values = CallValues(file, reading, typed)

    def events(self, rows: list[Row]) -> list[dict[str, Any]]:
        calls = [call_of(row) for row in rows if row.branch not in (OUTPUT, POINT)]
        if self._verbose:
            self._values.prepare(calls)
        else:
            self._values.prepare_exceptions(calls)
        return [self._event(row) for row in rows]

    def _event(self, row: Row) -> dict[str, Any]:
        if row.branch is OUTPUT:
            return self._output(row)
        return self._point(row) if row.branch is POINT else self._call(row)

    def _call(self, row: Row) -> dict[str, Any]:
        columns = row.columns
        hook = self._file.hooks.get(columns["hook"])
        entered = row.branch is ENTER
        event: dict[str, Any] = {
            "id": event_id(self._session_id, row.n),
            "timestampNs": row.ts,
            "eventType": "function_enter" if entered else "function_exit",
            "function": hook.place.function if hook else f"hook {columns['hook']}",
            "sourceFile": hook.place.file if hook else None,
            "line": hook.place.line if hook else None,
        }
        result = result_of(hook.plan) if hook else None
        if not entered:
            event["durationNs"] = None if columns["enter_ts"] is None else row.ts - columns["enter_ts"]
            event["returnType"] = result.type_name if result else None
            if columns["flags"] & UNWOUND:
                event["unwound"] = True
                if (exception := self._values.exception(call_of(row))) is not None:
                    event["exception"] = exception
        if self._verbose and hook:
            event |= self._verbose_call(row, hook, result)
        return event

    def _verbose_call(self, row: Row, hook: Hook, result: Value | None) -> dict[str, Any]:
        columns, entered = row.columns, row.branch is ENTER
        parent = columns["parent"] if entered else columns["call"]
        more: dict[str, Any] = {"functionRaw": hook.place.function_raw, **self._who(columns["thread"]), "parentEventId": self._id(parent)}
        call = call_of(row)
        arguments = self._values.arguments(call, hook)
        if arguments is not None:
            more["arguments"] = arguments
        if not entered and result is not None and not columns["flags"] & UNWOUND:
            more["returnValue"] = self._values.result(call, hook, result)
        if (watched := self._values.watched(call, hook, entered=entered)) is not None:
            more["watchValues"] = watched
        if columns["flags"] & EntryFlag.SAMPLED:
            more |= {"sampled": True, "sampleRate": round(self._file.rate(hook.id, row.ts), 7)}
        return more

    def _who(self, thread: int | None) -> dict[str, Any]:
        known = self._file.threads.get(thread) if thread is not None else None
        return {"threadId": known.tid, "threadName": known.name, "pid": known.pid} if known else {"threadId": None, "threadName": None, "pid": None}

    def _id(self, n: int | None) -> str | None:
        return event_id(self._session_id, n) if n else None

    def _output(self, row: Row) -> dict[str, Any]:
        columns = row.columns
        event = {"id": event_id(self._session_id, row.n), "timestampNs": row.ts, "eventType": _STREAM_NAMES[columns["stream"]], "text": columns["text"]}
        if columns["approximate"]:
            event["approximate"] = True
        if self._verbose:
            event |= {**self._who(columns["thread"]), "parentEventId": self._id(columns["parent"])}
        return event

    def _point(self, row: Row) -> dict[str, Any]:
        columns = row.columns
        event: dict[str, Any] = {"id": event_id(self._session_id, row.n), "timestampNs": row.ts, "eventType": columns["type"], "text": columns["text"]}
        if columns["function"] is not None or columns["file"] is not None:
            event |= {"function": columns["function"], "sourceFile": columns["file"], "line": columns["line"]}
        if self._verbose:
            event |= {"threadId": columns["tid"], "threadName": columns["thread_name"], "pid": columns["pid"], "parentEventId": self._id(columns["parent"])}
            event["data"] = json.loads(columns["data"])
        return event


def call_of(row: Row) -> CallOf:
    """Of a row of ENTER, EXIT or LATE."""
    return CallOf(row.columns["call"], None if row.branch is ENTER else row.n, row.columns)
