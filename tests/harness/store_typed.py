"""A session whose functions have typed plans: entries with images, as the recorder would write them, made by hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog

from actors.store.query.run import run_query
from actors.store.session_file import SessionFile
from actors.store.writer import SessionWriter
from strobe.lanes.layout import RegionState, StringState
from strobe.model.probe import Hook, Place, Plan, Value
from strobe.model.query import Query
from strobe.model.type_nodes import Array, Enum, Float, Function, Integer, Member, Node, Pointer, Record, Typedef
from strobe.model.types import FIRST_NODES, TypeTable
from strobe.protocol.store import QueryReply
from strobe.values.bundle import Bundle, Code
from tests.bench.store_records import Lane, record, records

SESSION = "demo-2026-01-02-03h04"
MODULE, BIAS = "/bin/demo", 0x55_0000_0000
HEAP = 0x7F00_0000_0000
NODES: tuple[Node, ...] = (
    Integer("int", "c++", 4, True),  # 2
    Float("double", "c++", 8, "double"),  # 3
    Integer("char", "c++", 1, True, "char"),  # 4
    Array("int[4]", "c++", 16, 2, (4,)),  # 5
    Record(
        "Order", "c++", "struct", 48, (Member("id", 2, 0), Member("total", 3, 8), Member("items", 5, 16), Member("next", 7, 32), Member("mode", 8, 40))
    ),  # 6
    Pointer("Order *", "c++", 8, 6),  # 7
    Enum("Mode", "c++", 4, False, None, (("Live", 0), ("Test", 1), ("Read", 2), ("Write", 4)), True, True),  # 8
    Record("Point", "c++", "struct", 16, (Member("x", 3, 0), Member("y", 3, 8))),  # 9
    Function("void (int)", "c++", 0, (2,)),  # 10
    Pointer("void (*)(int)", "c++", 8, 10),  # 11
    Typedef("Total", "c++", 3),  # 12
    Record("Shape", "c++", "class", 8, (), vtable=0),  # 13
    Pointer("Shape *", "c++", 8, 13),  # 14
    Record("Circle", "c++", "class", 16, (Member("r", 3, 8),), (), vtable=0),  # 15
)
ORDER, POINT, CALLBACK, SHAPE, MODE = 7, 9, 11, 14, 8
CIRCLE_VTABLE = 0x4010
TABLE = TypeTable((*FIRST_NODES, *NODES))
BUNDLE = Bundle(TABLE, (Code(MODULE, CIRCLE_VTABLE, 15),))
KEY, BODY = BUNDLE.pack()


def typed(
    name: str, type_: int, type_name: str, scalar: Any = "pointer", size: int = 8, *, offset: int = 0, home: Any = "payload", source: Any = "payload"
) -> Value:
    names = {"Live": 0, "Test": 1, "Read": 2, "Write": 4} if scalar == "enum" else None
    return Value(name=name, type_name=type_name, scalar=scalar, size=size, source=source, offset=offset, type=type_, home=home, enumerators=names)


def hook(
    number: int, function: str, arguments: Sequence[Value], result: Value | None = None, *, image: int | None = None, exit_image: int | None = None
) -> Hook:
    names = {"function": function, "function_raw": function, "full_name": function}
    place = Place(pattern="*", **names, module=MODULE, offset=0x1000 * number, size=16, file="/src/shop.cpp", line=number)
    plan = Plan(ops=bytes(range(256)), typed=True, arguments=list(arguments), result=result, types=KEY, image=image, exit_image=exit_image, depth=3)
    return Hook(id=number, place=place, address=BIAS + place.offset, plan=plan)


def hooks() -> list[Hook]:
    order = typed("order", ORDER, "Order *", offset=8)
    mode = typed("mode", MODE, "Mode", "enum", 4, offset=16)
    found = typed("", ORDER, "Order *", offset=8)
    return [
        hook(1, "place", [order, mode], typed("", 2, "int", "int", 4, source="word"), image=0),
        hook(2, "find", [typed("id", 2, "int", "int", 4)], found, exit_image=0),
        hook(3, "move", [typed("to", POINT, "Point", "opaque", 0, offset=0)]),
        hook(4, "each", [typed("f", CALLBACK, "void (*)(int)")]),
        hook(5, "draw", [typed("shape", SHAPE, "Shape *", offset=8)], image=0),
    ]


def region(address: int, data: bytes, state: RegionState = RegionState.OK) -> bytes:
    return struct.pack("<QII", address, len(data), state) + data.ljust((len(data) + 7) // 8 * 8, b"\0")


def with_image(fixed: bytes, *regions: bytes) -> bytes:
    """An image descriptor, what is fixed behind it, and the image."""
    image = b"".join(regions)
    start = 8 + (len(fixed) + 7) // 8 * 8
    return (struct.pack("<HHBxxx", start, len(image), StringState.OK) + fixed).ljust(start, b"\0") + image


def order_bytes(number: int, total: float, items: Sequence[int] = (1, 2, 3, 4), next_: int = 0, mode: int = 0) -> bytes:
    return struct.pack("<i4xd4iQI4x", number, total, *items, next_, mode)


def order_entry(number: int, total: float, mode: int = 0, *, next_total: float | None = None, address: int = HEAP) -> bytes:
    """Payload of a call of `place`: its order, and the one behind it."""
    behind = [] if next_total is None else [region(address + 0x1000, order_bytes(number + 1000, next_total))]
    first = region(address, order_bytes(number, total, next_=0 if next_total is None else address + 0x1000, mode=mode))
    return with_image(struct.pack("<QI", address, mode), first, *behind)


class TypedSession:
    def __init__(self, path: Path, *, hooks_known: bool = True, **detail: Any) -> None:
        self.path = path
        self.file = SessionFile(path, record(SESSION, detail=detail, project_root=str(path.parent)))
        self.writer = SessionWriter(self.file, structlog.get_logger())
        self.seq = 0
        self.connection = self.file.reader()
        if hooks_known:
            wire = [one.model_dump(by_alias=True) for one in hooks()]
            self.send("hooks", {"hooks": wire, "types": {KEY: BODY}, "modules": {"/lib/libc.so.6": 0x7FFF_0000_0000}})

    def send(self, kind: str, header: dict[str, Any], frames: list[bytes] | None = None) -> None:
        self.seq += 1
        assert self.writer.accept({**header, "kind": kind, "epoch": 1, "seq": self.seq}, frames or [])

    def records(self, *lanes: Lane) -> None:
        header, frames = records(*lanes)
        self.send("records", header, frames)
        self.writer.commit()

    def reopen(self) -> None:
        self.file.close()
        self.file = SessionFile(self.path, record(SESSION))
        self.writer = SessionWriter(self.file, structlog.get_logger())
        self.connection = self.file.reader()

    def ask(self, **filters: Any) -> QueryReply:
        return run_query(SESSION, self.file, Query(**filters), self.connection)
