"""A session's events as Parquet: one row an event, in time order; values as JSON.

id, timestamp_ns (since the session's start), event_type, function, source_file, line, duration_ns, thread_id, thread_name, pid, parent_id,
arguments ([{name, type, value}]), return_value, exception, text, more (every other field)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as parquet  # type: ignore[import-untyped]

_PLAIN: Final = {
    "id": pa.string(), "timestampNs": pa.int64(), "eventType": pa.string(), "function": pa.string(), "sourceFile": pa.string(), "line": pa.int32(),
    "durationNs": pa.int64(), "threadId": pa.int64(), "threadName": pa.string(), "pid": pa.int64(), "parentEventId": pa.string(), "text": pa.string(),
}  # fmt: skip
_JSON: Final = ("arguments", "returnValue", "exception")
_NAMES: Final = {
    "timestampNs": "timestamp_ns", "eventType": "event_type", "sourceFile": "source_file", "durationNs": "duration_ns", "threadId": "thread_id",
    "threadName": "thread_name", "parentEventId": "parent_id", "returnValue": "return_value",
}  # fmt: skip
_COLUMNS: Final = {**_PLAIN, **dict.fromkeys((*_JSON, "more"), pa.string())}
_SCHEMA: Final = pa.schema([(_NAMES.get(name, name), kind) for name, kind in _COLUMNS.items()])
Event = dict[str, Any]


class TraceWriter:
    """Context manager; `events` counts."""

    def __init__(self, path: Path) -> None:
        self._writer = parquet.ParquetWriter(path, _SCHEMA, compression="zstd")
        self.events = 0

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._writer.close()

    def write(self, events: Sequence[Event]) -> None:
        rows = [_row(event) for event in events]
        self._writer.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA))
        self.events += len(rows)


def _row(event: Event) -> Event:
    row = {_NAMES.get(name, name): event.get(name) for name in _PLAIN}
    row |= {_NAMES.get(name, name): _json(event[name]) if name in event else None for name in _JSON}
    more = {name: value for name, value in event.items() if name not in _PLAIN and name not in _JSON and value is not None}
    return {**row, "more": _json(more) if more else None}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def first_events(content: bytes, limit: int) -> tuple[list[Event], int]:
    """The first rows as debug_query's events, and how many there are. Raises ValueError: it is no such file."""
    back = {column: name for name, column in _NAMES.items()}
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        found: list[Event] = []
        for part in file.iter_batches(batch_size=max(1, limit)):
            found += part.to_pylist()
            if len(found) >= limit:
                break
        total: int = file.metadata.num_rows
        return [_event({back.get(name, name): value for name, value in row.items() if value is not None}) for row in found[:limit]], total
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"no trace: {str(error).splitlines()[0][:200]}") from None


def _event(row: Event) -> Event:
    return {name: json.loads(value) if name in _JSON else value for name, value in row.items() if name != "more"}
