"""Rows as the events of a reply: SPEC §4's two forms."""

from __future__ import annotations

import json
from typing import Any

from actors.store.display import shown
from actors.store.query.branches import ENTER, LATE, OUTPUT, POINT
from actors.store.query.event_id import event_id
from actors.store.query.scan import Row
from actors.store.reading import Reading
from actors.store.scalars import result_of
from actors.store.schema import UNWOUND, VALUE_COLUMNS
from actors.store.session_file import SessionFile
from strobe.lanes.layout import EntryFlag
from strobe.model.probe import Hook, Value

_STREAM_NAMES = {1: "stdout", 2: "stderr"}


class Presenter:
    def __init__(self, session_id: str, file: SessionFile, reading: Reading, verbose: bool) -> None:
        self._session_id = session_id
        self._file = file
        self._run = reading.execute
        self._verbose = verbose
        self._texts: dict[int, str] = {}
        self._more: dict[tuple[int, int], int] = {}
        self._enters: dict[int, dict[str, Any]] = {}

    def events(self, rows: list[Row]) -> list[dict[str, Any]]:
        if self._verbose:
            self._prepare(rows)
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
        if self._verbose and hook:
            event |= self._verbose_call(row, hook, result)
        return event

    def _verbose_call(self, row: Row, hook: Hook, result: Value | None) -> dict[str, Any]:
        columns, entered = row.columns, row.branch is ENTER
        parent = columns["parent"] if entered else columns["call"]
        more: dict[str, Any] = {"functionRaw": hook.place.function_raw, **self._who(columns["thread"]), "parentEventId": self._id(parent)}
        captured = self._enters.get(columns["call"], {}) if row.branch is LATE else columns
        if captured:
            values = [(value, self._bits(captured, position)) for position, value in enumerate(hook.plan.arguments)]
            more["arguments"] = [{"name": value.name, "type": value.type_name, "value": shown(value, bits, self._texts)} for value, bits in values]
        if not entered and result is not None and not columns["flags"] & UNWOUND:
            more["returnValue"] = shown(result, columns["ret"], self._texts)
        if columns["flags"] & EntryFlag.SAMPLED:
            more["sampled"] = True
        return more

    def _bits(self, columns: dict[str, Any], position: int) -> int | None:
        if position < VALUE_COLUMNS:
            return columns.get(f"a{position}")
        return self._more.get((columns["call"], position))

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
        if columns["function"] is not None:
            event |= {"function": columns["function"], "sourceFile": columns["file"], "line": columns["line"]}
        if self._verbose:
            event |= {"threadId": columns["tid"], "threadName": columns["thread_name"], "pid": columns["pid"], "parentEventId": self._id(columns["parent"])}
            event["data"] = json.loads(columns["data"])
        return event

    # What a verbose page needs besides its rows, fetched for all of them at once

    def _prepare(self, rows: list[Row]) -> None:
        late = [row.columns["call"] for row in rows if row.branch is LATE and row.columns["call"] is not None]
        if late:
            values = "".join(f", a{k}" for k in range(self._file.value_columns))
            answer = self._run(f"SELECT n AS call{values} FROM raw_calls WHERE n IN ({_numbers(late)})")
            names = [column[0] for column in answer.description or []]
            self._enters = {row[0]: dict(zip(names, row, strict=True)) for row in answer.fetchall()}
        calls = [row.columns for row in rows if row.branch not in (OUTPUT, POINT)]
        deep = [columns["call"] for columns in calls if self._argument_count(columns["hook"]) > VALUE_COLUMNS and columns["call"] is not None]
        if deep:
            found = self._run(f"SELECT n, position, bits FROM more_values WHERE n IN ({_numbers(deep)})").fetchall()
            self._more = {(n, position): bits for n, position, bits in found}
        ids = {bits for columns in calls for bits in self._text_ids(columns)}
        if ids:
            found = self._run(f"SELECT id, text, truncated FROM strings WHERE id IN ({_numbers(ids)})").fetchall()
            self._texts = {number: text + "…" * cut for number, text, cut in found}

    def _argument_count(self, hook: int) -> int:
        known = self._file.hooks.get(hook)
        return len(known.plan.arguments) if known else 0

    def _text_ids(self, columns: dict[str, Any]) -> list[int]:
        hook = self._file.hooks.get(columns["hook"])
        if hook is None:
            return []
        captured = columns if "a0" in columns else self._enters.get(columns["call"], {})
        bits = [self._bits(captured, position) for position, value in enumerate(hook.plan.arguments) if value.scalar == "cstring" and captured]
        result = result_of(hook.plan)
        if result is not None and result.scalar == "cstring":
            bits.append(columns.get("ret"))
        return [number for number in bits if number is not None and number > 0]


def _numbers(numbers: Any) -> str:
    return ", ".join(map(str, numbers))
