"""A session of two processes with calls, output and a crash, as the store has it in a file: what tests of queries ask."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import structlog

from actors.store.blocks import BlockCache
from actors.store.query.run import run_query
from actors.store.session_file import SessionFile
from actors.store.writer import SessionWriter
from strobe.lanes.layout import Kind, StringState
from strobe.model.query import Query
from strobe.protocol.store import QueryReply
from tests.bench.store_records import STARTED_NS, Lane, hook, record, records, value

Event = dict[str, Any]
SESSION = "demo-2026-01-02-03h04"
COLOURS = {"RED": 0, "GREEN": 1, "BLUE": 7}


class Session:
    """Some hundred events of every sort, in several commits, calls crossing them."""

    def __init__(self, path: Path, events_max: int = 2_000_000) -> None:
        self.file = SessionFile(path, record(SESSION, detail={"eventsMax": events_max}))
        self.file.blocks = BlockCache(shift=10 if events_max > 1000 else 4, bytes_max=1 << 20)
        self.writer = SessionWriter(self.file, structlog.get_logger())
        self.seq = 0
        self._fill()
        self.connection = self.file.reader()

    def send(self, kind: str, header: dict[str, Any], frames: list[bytes] | None = None) -> None:
        self.seq += 1
        assert self.writer.accept({**header, "kind": kind, "epoch": 1, "seq": self.seq}, frames or [])

    def _fill(self) -> None:
        self.send("hooks", {"hooks": [one.model_dump(by_alias=True) for one in hooks()]})
        choose = random.Random(7)
        ts = 1000
        stacks: dict[int, list[tuple[int, int]]] = {1: [], 2: [], 3: []}
        spans = dict.fromkeys(stacks, 0)
        for commit in range(6):
            lanes = {1: Lane(1, 77, 77, "main"), 2: Lane(2, 77, 78, "worker-1"), 3: Lane(3, 99, 99, "child")}
            segments = []
            for _ in range(50):
                ts += choose.randrange(1, 500)
                at = choose.choice([1, 1, 2, 3])
                stack = stacks[at]
                if stack and choose.random() < 0.5:
                    span, number = stack.pop()
                    lanes[at].exit(ts, span, number, choose.choice([0, 3, 7, 250]), kind=Kind.UNWIND if choose.random() < 0.1 else Kind.EXIT)
                else:
                    spans[at] += 1
                    number = choose.choice([1, 2, 3, 4])
                    lanes[at].enter(ts, spans[at], number, payload(choose, number), parent=stack[-1][0] if stack else 0)
                    stack.append((spans[at], number))
                if choose.random() < 0.2:
                    text = choose.choice([b"hello\n", b"warn \xff\n", "grün".encode()])
                    segments.append(
                        (
                            {
                                "stream": choose.choice([1, 2]),
                                "offset": 0,
                                "bytes": len(text),
                                "tsNs": STARTED_NS + ts,
                                "span": lanes[at].full(stack[-1][0]) if stack else None,
                            },
                            text,
                        )
                    )
            header, frames = records(*lanes.values())
            self.send("records", header, frames)
            self.send("output", {"segments": [{**segment, "approximate": False} for segment, _ in segments]}, [b"".join(text for _, text in segments)])
            if commit == 4:
                data = {
                    "signal": "SIGSEGV",
                    "cause": "address not mapped",
                    "faultAddress": "0x0",
                    "threadName": "main",
                    "frames": [{"function": "parse", "file": "/src/parse.c", "line": 4}],
                }
                self.send("event", {"events": [{"type": "crash", "tsNs": STARTED_NS + ts, "pid": 77, "tid": 77, "text": "SIGSEGV in parse", "data": data}]})
            self.send("losses", {"hooks": {1: 10, 2: 1}, "kinds": {"output_mark": 2}, "cause": "lane_full"})
            self.send("settled", {"tsNs": STARTED_NS + ts})
            self.writer.commit()

    def ask(self, **filters: Any) -> QueryReply:
        return run_query(SESSION, self.file, Query(**filters), self.connection)

    def all(self) -> list[Event]:
        found: list[Event] = []
        reply = self.ask(limit=500, verbose=True)
        found += reply.events
        assert not reply.has_more
        return found


def hooks() -> list[Any]:
    texts = [value("name", "cstring", 8, type_name="const char *"), value("size", "uint", 4, offset=8)]
    mixed = [value("ratio", "float", 4), value("on", "bool", 1, offset=4), value("colour", "enum", 4, offset=8, type_name="Colour", enumerators=COLOURS)]
    many = [value(f"p{k}", "int", 2, offset=2 * k) for k in range(8)]
    return [
        hook(1, "net::send", texts, value("", "int", 4, word=True), file="/src/net/send.cpp", line=10),
        hook(2, "net::recv", [value("at", "pointer", 8, type_name="void *")], value("", "pointer", 8, word=True, type_name="char *"), file="/src/net/recv.cpp"),
        hook(3, "paint", mixed, value("", "bool", 1, word=True), file="/src/paint.cpp"),
        hook(4, "wide", many, None, file=None, line=None),
    ]


def payload(choose: random.Random, number: int) -> bytes:
    match number:
        case 1:
            text = choose.choice([None, b"alpha", b"beta", b"alphabet"])
            state = StringState.NULL if text is None else StringState.OK
            return struct.pack("<HHBxxxI", 12, len(text or b""), state, choose.choice([1, 5, (1 << 32) - 1])) + (text or b"")
        case 2:
            return struct.pack("<Q", choose.choice([0, 0x1000, 0xFFFF_FFFF_FFFF_F000]))
        case 3:
            return struct.pack("<fBxxxi", choose.choice([0.1, 0.0, -2.5]), choose.choice([0, 1]), choose.choice([0, 1, 7, 9]))
        case _:
            return struct.pack("<8h", *(choose.choice([-1, 0, 5]) for _ in range(8)))
