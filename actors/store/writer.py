"""What one session's stream becomes: batches gathered in memory, decoded and committed together.

A batch is taken when it follows the last one taken of its epoch; anything else was stored before, or will be sent again. Rows and
position are committed in one transaction, so after any crash the stream goes on exactly where the file ends.

Three steps: `accept` gathers, `prepare` decodes what was gathered, `store` commits the oldest that was prepared. `store` may run in another
thread, so that the next commit is decoded meanwhile; `stored` then tells the writer.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from actors.store import quarantine
from actors.store.decoder import Decoded, Decoder
from actors.store.entries import Records
from actors.store.hook_table import HookTable
from actors.store.open_calls import OpenCalls
from actors.store.session_file import Changes, Position, Rows, SessionFile, Thread
from actors.store.strings import StringTable
from strobe.disk_trouble import trouble
from strobe.lanes.layout import SLOT_BYTES
from strobe.model.probe import Hook
from strobe.model.session import SessionRecord
from strobe.runtime.log import Logger

COMMIT_ROWS: Final = 250_000
COMMIT_BYTES: Final = 64 << 20  # of records: entries with images are large
COMMIT_NS: Final = 50_000_000
QUIET_NS: Final = 4_000_000  # few rows are committed sooner: they cost little, and someone may be waiting for them
QUIET_ROWS: Final = 4_096
PREPARED_MAX: Final = 2  # one being stored, one that follows at once
STREAMS: Final = {"stdout": 1, "stderr": 2}
MALFORMED: Final = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)  # what a batch of another shape can raise
Header = Mapping[str, Any]
Frames = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Stored:
    """A commit, done: where the stream then stands, numbers taken, when its first batch came (CLOCK_MONOTONIC), the session's record if it changed."""

    position: Position
    events: int
    since_ns: int
    record: SessionRecord | None


class SessionWriter:
    """Everything the ingest thread keeps for one session. Used by that thread alone, `store` excepted."""

    def __init__(self, file: SessionFile, log: Logger) -> None:
        self.file = file
        self.record = record = file.record
        self.ended = False
        self._log = log
        self.position = file.position
        self._started_ns = record.started_monotonic_ns
        self._hooks = HookTable(file.hooks.values())
        self._strings = StringTable(file.next_string)
        self._open_calls = OpenCalls(file.open_calls)
        self._decoder = Decoder(self._hooks, self._strings, self._open_calls, self._started_ns)
        self._threads = {(thread.lane, thread.pid, thread.tid, thread.name): thread for thread in file.threads.values()}
        self._prepared: deque[tuple[Changes, Stored]] = deque()
        self._clear()

    def _clear(self) -> None:
        self._records: list[Records] = []
        self._rows: dict[str, Rows] = {"types": [], "modules": [], "hooks": [], "threads": [], "output": [], "points": [], "losses": [], "sampling": []}
        self._changed_record: SessionRecord | None = None
        self.pending_rows = 0
        self.pending_bytes = 0
        self.pending_since_ns: int | None = None

    # The stream's position

    def follows(self, epoch: int, seq: int) -> bool:
        """Whether that batch is the next one."""
        at = self.position
        return (epoch, seq) == (at.epoch, at.seq + 1) or (epoch > at.epoch and seq == 1)

    def accept(self, header: Header, frames: Frames, *, deadly: bool = False) -> bool:
        """Takes a batch if it is the next one. False: it was taken before, or one before it is missing. One that is `deadly` is rejected unread."""
        epoch, seq = int(header["epoch"]), int(header["seq"])
        at = self.position
        if not self.follows(epoch, seq):
            return False
        settled = 0
        marks = {name: len(rows) for name, rows in self._rows.items()}
        try:
            if deadly:
                raise ValueError("the store has died of this batch before")
            settled = self._take(str(header["kind"]), header, frames)
        except MALFORMED as error:
            for name, mark in marks.items():
                del self._rows[name][mark:]
            self._reject(header, frames, error)
        except duckdb.Error as error:
            if (told := trouble(error, self.file.path.parent)) is None:
                raise
            for name, mark in marks.items():
                del self._rows[name][mark:]
            self._log.error("batch not taken; it will be sent again", session=self.record.session_id, error=str(told))
            return False
        if self.pending_since_ns is None:
            self.pending_since_ns = time.monotonic_ns()
        self.position = Position(epoch, seq, bytes(header.get("resume") or b""), at.next_n, max(at.settled, settled), at.newest)
        return True

    def _reject(self, header: Header, frames: Frames, error: Exception) -> None:
        """It goes to a file, its events count as lost, and the stream goes on behind it."""
        name = f"{self.record.session_id}-{header['epoch']}-{header['seq']}"
        path = quarantine.keep(self.file.path.parent.parent / "rejected", name, header, frames, error)
        lost = quarantine.events_in(header, frames)
        self._rows["losses"].append({"cause": quarantine.REJECTED, "hook": None, "kind": str(header.get("kind")), "lost": lost})
        self._log.error("batch rejected", session=self.record.session_id, error=repr(error), events=lost, kept=str(path), exc_info=error)

    # Commits

    @property
    def prepared(self) -> int:
        """Commits that are decoded and not stored yet."""
        return len(self._prepared)

    @property
    def pending(self) -> bool:
        return bool(self._prepared) or self.pending_since_ns is not None

    def due_in_ns(self, now_ns: int) -> int | None:
        """How long what was gathered may still wait to be prepared; None: nothing was, or the commits before it come first."""
        if self.pending_since_ns is None or len(self._prepared) >= PREPARED_MAX:
            return None
        if self.pending_rows >= COMMIT_ROWS or self.pending_bytes >= COMMIT_BYTES:
            return 0
        wait = QUIET_NS if self.pending_rows < QUIET_ROWS else COMMIT_NS
        return max(0, self.pending_since_ns + wait - now_ns)

    def prepare(self) -> None:
        """Decodes and numbers what was gathered. Nothing is gathered then."""
        if self.pending_since_ns is not None:
            self._prepared.append(self._changes())

    def store(self) -> None:
        """Commits the oldest that was prepared. Raises duckdb.Error with nothing stored; the same commit can then be tried again."""
        self.file.commit(self._prepared[0][0])

    def stored(self) -> Stored:
        """To be called after `store`. The position may be acknowledged."""
        return self._prepared.popleft()[1]

    def commit(self) -> Stored | None:
        """All of it at once: the last commit, None if there was nothing to store. Raises as `store` does."""
        done = None
        self.prepare()
        while self._prepared:
            self.store()
            done = self.stored()
        return done

    def _changes(self) -> tuple[Changes, Stored]:
        at = self.position
        decoded = self._decoded(at)
        next_n = at.next_n + decoded.times.size
        newest = max(at.newest, decoded.newest)
        others = sorted([*self._rows["output"], *self._rows["points"]], key=lambda row: int(row["ts"]))
        for row in others:
            row["n"] = next_n
            row["parent"], thread = self._decoder.call_of(row.pop("span"))
            if "thread" in row and row["thread"] is None:
                row["thread"] = thread
            next_n += 1
            newest = max(newest, row["ts"])
        if decoded.strange:
            self._rows["losses"].append({"cause": "unreadable", "hook": None, "kind": "record", "lost": decoded.strange})
        self._rows["strings"] = [{"id": number, "text": text, "truncated": cut} for number, text, cut in self._strings.fresh]
        position = Position(at.epoch, at.seq, at.resume, next_n, at.settled, newest)
        changes = Changes(position, at.next_n, decoded, self._rows, [row["ts"] for row in others], self._open_calls.pack(), self._changed_record)
        stored = Stored(position, next_n - at.next_n, self.pending_since_ns or time.monotonic_ns(), self._changed_record)
        self.position = position
        self._strings.fresh = []
        self._clear()
        return changes, stored

    def _decoded(self, at: Position) -> Decoded:
        if not self._records:
            return Decoded()
        try:
            return self._decoder.decode(self._records, at.next_n)
        except MALFORMED as error:
            for number, part in enumerate(self._records):
                header = {"kind": "records", "epoch": at.epoch, "seq": f"{at.seq}-{number}", "threads": part.threads, "clock": part.clock}
                self._reject(header, [part.slot_map, part.slots], error)
            return Decoded()

    # Kinds of batch

    def _take(self, kind: str, header: Header, frames: Frames) -> int:
        """Keeps the batch; answers the session time it settles, 0 if none."""
        match kind:
            case "records":
                self._take_records(header, frames)
            case "output":
                self._take_output(header, frames)
            case "hooks":
                self._take_hooks(header)
            case "losses":
                self._take_losses(header)
            case "sampling":
                ts = int(header["tsNs"]) - self._started_ns
                self._rows["sampling"] += [{"ts": ts, "hook": int(hook), "period": int(period)} for hook, period in header["periods"].items()]
            case "event":
                for event in header["events"]:
                    self._take_event(event)
            case "session":
                self._change_record(header)
            case "settled":
                return int(header["tsNs"]) - self._started_ns
            case "end":
                self.ended = True
            case _:
                raise ValueError(f"a batch of unknown kind {kind!r}")
        return 0

    def _take_records(self, header: Header, frames: Frames) -> None:
        threads = [(self._thread_of(part), int(part["slots"])) for part in header["slices"]]
        slot_map, slots = np.frombuffer(frames[0], dtype=np.uint8), np.frombuffer(frames[1], dtype=np.uint8)
        sliced = sum(count for _, count in threads)
        if slots.size != slot_map.size * SLOT_BYTES or sliced != slot_map.size:
            raise ValueError(f"a records batch of {slot_map.size} slots, {slots.size} bytes and slices of {sliced} slots")
        if header.get("segments"):
            self._take_output(header, frames[2:])
        self._records.append(Records(slot_map, slots, threads, _clock(header.get("clock"))))
        self.pending_rows += int(np.count_nonzero(slot_map))
        self.pending_bytes += slots.size

    def _take_output(self, header: Header, frames: Frames) -> None:
        content: NDArray[np.uint8] = np.frombuffer(frames[0], dtype=np.uint8)
        start = 0
        for segment in header["segments"]:
            size = int(segment["bytes"])
            part = content[start : start + size].tobytes()
            start += size
            text = part.decode("utf-8", "replace")
            row = {
                "n": 0, "ts": int(segment["tsNs"]) - self._started_ns, "stream": _stream(segment["stream"]), "start": int(segment["offset"]),
                "text": text, "bytes": None if text.encode() == part else part, "approximate": bool(segment.get("approximate")),
                "parent": None, "thread": self._writer_of(segment.get("by")), "span": int(segment.get("span") or 0),
            }  # fmt: skip
            self._rows["output"].append(row)
            self.pending_rows += 1

    def _take_hooks(self, header: Header) -> None:
        fresh = [_without_ops(hook) for hook in map(Hook.model_validate, header["hooks"]) if hook.id not in self._hooks.hooks]
        types = {str(key): bytes(body) for key, body in (header.get("types") or {}).items()}
        modules = {str(path): int(bias) for path, bias in (header.get("modules") or {}).items()}
        self.file.need_values(max((len(hook.plan.arguments) for hook in fresh), default=0))  # first: a full disk refuses it, and nothing is changed yet
        self._rows["types"] += [{"key": key, "body": body} for key, body in types.items() if self.file.types.add(key, body)]
        self._rows["modules"] += [{"path": path, "bias": bias} for path, bias in modules.items() if self.file.modules.get(path) != bias]
        self.file.modules |= modules
        for hook in fresh:
            self._hooks.add(hook)
            self.file.hooks[hook.id] = hook
            place, result = hook.place, hook.plan.result
            self._rows["hooks"].append({
                "id": hook.id, "function": place.function, "function_raw": place.function_raw, "file": place.file, "line": place.line,
                "result_type": result.type_name if result else None, "hook": hook.model_dump_json(by_alias=True),
            })  # fmt: skip

    def _take_losses(self, header: Header) -> None:
        cause = str(header["cause"])
        self._rows["losses"] += [{"cause": cause, "hook": int(hook), "kind": None, "lost": int(lost)} for hook, lost in header["hooks"].items()]
        kinds = header["kinds"].items()
        self._rows["losses"] += [{"cause": cause, "hook": None, "kind": str(kind), "lost": int(lost)} for kind, lost in kinds]

    def _take_event(self, event: Mapping[str, Any]) -> None:
        data: Mapping[str, Any] = event.get("data") or {}
        shown = place_of(data)
        self._rows["points"].append({
            "n": 0, "ts": int(event["tsNs"]) - self._started_ns, "type": str(event["type"]), "pid": event.get("pid"), "tid": event.get("tid"),
            "thread_name": data.get("threadName"), "function": shown.get("function"), "file": shown.get("file"), "line": shown.get("line"),
            "text": event.get("text"), "data": json.dumps(data), "parent": None, "span": int(data.get("span") or 0),
        })  # fmt: skip
        self.pending_rows += 1

    def _change_record(self, header: Header) -> None:
        known = {name for field in SessionRecord.model_fields.items() for name in (field[0], field[1].alias)}
        changed = {key: value for key, value in header.items() if key in known and key not in ("sessionId", "session_id")}
        merged = {**self.record.model_dump(by_alias=True), **changed, "detail": {**self.record.detail, **(header.get("detail") or {})}}
        self.record = self._changed_record = SessionRecord.model_validate(merged)

    def _writer_of(self, by: Sequence[Any] | None) -> int | None:
        return None if by is None else self._thread_of(dict(zip(("thread", "pid", "tid", "comm"), by, strict=True)))

    def _thread_of(self, part: Mapping[str, Any]) -> int:
        """The stored id of a slice's thread."""
        lane, pid, tid, name = key = (int(part["thread"]), int(part["pid"]), int(part["tid"]), str(part["comm"]))
        known = self._threads.get(key)
        if known is None:
            known = self._threads[key] = Thread(len(self._threads) + 1, lane, pid, tid, name)
            self.file.threads[known.id] = known
            self._rows["threads"].append({"id": known.id, "lane": lane, "pid": pid, "tid": tid, "name": name})
        return known.id


def _without_ops(hook: Hook) -> Hook:
    """What the recorder is told is of no use here, and no text."""
    return hook.model_copy(update={"plan": hook.plan.model_copy(update={"ops": b""})})


def _clock(points: Sequence[Any] | None) -> list[int] | None:
    """[tsc0, mono0, tsc1, mono1]; ValueError when it is no line that rises."""
    if points is None:
        return None
    tsc0, mono0, tsc1, mono1 = (int(point) for point in points)
    if tsc1 <= tsc0 or mono1 < mono0:
        raise ValueError(f"clock points {points!r} are no rising line")
    return [tsc0, mono0, tsc1, mono1]


def _stream(stream: int | str) -> int:
    return STREAMS[stream] if isinstance(stream, str) else int(stream)


def place_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """{function, file, line} of an event: as it says itself, or its innermost frame with a source line (where a reader looks first)."""
    if data.get("function") or data.get("file"):
        return {"function": data.get("function"), "file": data.get("file") or data.get("sourceFile"), "line": data.get("line")}
    frames = [frame for frame in data.get("frames") or [] if isinstance(frame, Mapping)]
    return dict(next((frame for frame in frames if frame.get("file") and frame.get("function")), frames[0] if frames else {}))
