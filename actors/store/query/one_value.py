"""One captured value of one event, whole or in part: what a page had no room for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from actors.store.query.branches import ALL, ENTER, OUTPUT, POINT
from actors.store.query.captured import CallOf, CallValues
from actors.store.query.deep_values import captured_value
from actors.store.query.event_id import parse_event_id
from actors.store.query.present import Presenter, call_of
from actors.store.query.rows import Rows
from actors.store.query.scan import Row
from actors.store.query.typed_values import Captured, TypedValues, biases_of
from actors.store.query.value_path import Path, follow, parse_path, root_of
from actors.store.reading import Reading
from actors.store.scalars import result_of
from actors.store.session_file import SessionFile
from strobe.errors import Code, StrobeError
from strobe.expression import Unavailable
from strobe.model.probe import Hook, Value
from strobe.protocol.store import ReadValue, ValueReply
from strobe.values.memory import Image
from strobe.values.reader import Limits
from strobe.values.typed import TypedValue
from strobe.values.typed_world import World

DEPTH: Final = 10
TEXT_MAX: Final = 65_536
MEMBERS_MAX: Final = 10_000
_SLICE: Final = re.compile(r"(?s)(.*)\[(\d*)\.\.(\d*)\]")
_MORE: Final = re.compile(r"… (\d+) more|…")
_NEXT: Final = "Give a path as it is shown: order.items[0], this->state, ret.name; [20..40] at its end for a part of a list."


@dataclass(frozen=True, slots=True)
class Part:
    """Elements `start` to `end` (not included; None: as many as the limit allows) of the list at the path before it."""

    start: int
    end: int | None


def read_value(file: SessionFile, ask: ReadValue, connection: duckdb.DuckDBPyConnection) -> ValueReply:
    """Raises VALIDATION_ERROR: there is no such event, or it has no such value."""
    reading = Reading(connection)
    try:
        return _read(file, ask, reading)
    finally:
        reading.end()


def _read(file: SessionFile, ask: ReadValue, reading: Reading) -> ValueReply:
    row = _row(file, ask, reading)
    path, part = _split(ask.path)
    elements = ask.limit if part is None else max(1, part.start + ask.limit if part.end is None else part.end)
    typed = TypedValues(file, reading, Limits(DEPTH, elements, TEXT_MAX, MEMBERS_MAX))
    if path is None:
        event = Presenter(ask.session_id, file, reading, typed, verbose=True).events([row])[0]
        return ValueReply(event=event, **_besides(file, typed))
    if row.branch in (OUTPUT, POINT):
        raise StrobeError(Code.VALIDATION_ERROR, f"Event {ask.event_id} is no call: it has no {path.text}.", "Leave path out.", value=ask.event_id)
    event = Presenter(ask.session_id, file, reading, typed, verbose=False).events([row])[0]
    value, type_name = _value(file, row, path, typed, reading)
    if part is not None:
        value = _cut(value, part, ask.path or "")
    shown, count = _shown(value)
    start = part.start if part else 0
    following = f"{path.text}[{start + shown}..]" if count is None or count > 0 else None
    return ValueReply(event=event, value=value, type_name=type_name, next_path=following, **_besides(file, typed))


def _besides(file: SessionFile, typed: TypedValues) -> dict[str, Any]:
    functions = sorted(typed.functions)
    return {"function_addresses": functions, "modules": biases_of(file) if functions else {}, "warnings": typed.warnings}


def _row(file: SessionFile, ask: ReadValue, reading: Reading) -> Row:
    n = parse_event_id(ask.session_id, ask.event_id, "eventId")
    rows = Rows(file, reading, file.counts.snapshot())
    for branch in ALL:
        columns = rows.select(branch, [f"{branch.n} = {n}", branch.always], [])
        if columns["event_n"].size:
            named = {name: column.tolist()[0] for name, column in columns.items()}
            return Row(branch, n, named["event_ts"], (), named)
    what = f"Session {ask.session_id} has no event {n}."
    raise StrobeError(Code.VALIDATION_ERROR, what, "It may have been evicted by newer ones; give an id as debug_query returned it.", value=ask.event_id)


def _split(text: str | None) -> tuple[Path | None, Part | None]:
    if text is None:
        return None, None
    found = _SLICE.fullmatch(text.strip())
    if found is None:
        return parse_path(text, "path"), None
    part = Part(int(found[2] or 0), int(found[3]) if found[3] else None)
    if part.end is not None and part.end <= part.start:
        raise StrobeError(Code.VALIDATION_ERROR, f"path {text!r}: the part ends before it begins.", "Write [20..40] for elements 20 to 39.", value=text)
    return parse_path(found[1], "path"), part


def _value(file: SessionFile, row: Row, path: Path, typed: TypedValues, reading: Reading) -> tuple[Any, str]:
    hook, position, value = _root(file, row, path)
    calls = CallValues(file, reading, typed)
    call = call_of(row)
    calls.prepare([call])
    if not path.steps:
        return (calls.result(call, hook, value) if position is None else calls.argument(call, hook, position)), value.type_name
    return _inside(hook, value, calls, call, path, typed)


def _root(file: SessionFile, row: Row, path: Path) -> tuple[Hook, int | None, Value]:
    """Where the path begins: (hook, position of the argument, or None for the result; what is captured there)."""
    hook = file.hooks.get(row.columns["hook"])
    result = result_of(hook.plan) if hook and row.branch is not ENTER else None
    if hook is not None and path.root is None and result is not None:
        return hook, None, result
    if hook is not None and path.root is not None and (root := root_of(hook, path)) is not None:
        return hook, *root
    names = [*(value.name for value in hook.plan.arguments if value.name), *(["ret"] if result else [])] if hook else []
    what = f"This event has no value {path.root if path.root is not None else 'ret'!r}."
    raise StrobeError(Code.VALIDATION_ERROR, what, f"It has: {', '.join(names)}." if names else "Leave path out.", value=path.text)


def _inside(hook: Hook, value: Value, calls: CallValues, call: CallOf, path: Path, typed: TypedValues) -> tuple[Any, str]:
    captured = calls.captured_result(call) if path.root is None else calls.captured_argument(call, hook.plan.arguments.index(value))
    image = Image.of(captured.payload or b"", hook.plan.exit_image if path.root is None else hook.plan.image)
    bundle = typed.bundle(hook)
    if bundle is None or value.type is None:
        raise StrobeError(Code.VALIDATION_ERROR, f"{path.text!r}: the types of this value are not known.", "Leave out what follows its name.", value=path.text)
    world = World(bundle.table, image, typed.formatters)
    found = _followed(world, value, captured, path)
    if isinstance(found, Unavailable):
        raise StrobeError(Code.VALIDATION_ERROR, f"{path.text!r}: {found.reason}.", _NEXT, value=path.text)
    reader = typed.reader(hook, bundle, image, world.table)
    if found.at is not None and found.bits is None:
        return reader.at(found.type, found.at), found.type_name
    raw = found.raw()
    return (f"<{raw.reason}>" if isinstance(raw, Unavailable) else reader.of(found.type, raw)), found.type_name


def _followed(world: World, value: Value, captured: Captured, path: Path) -> TypedValue | Unavailable:
    found = captured_value(world, value, captured)
    return Unavailable("it was not captured") if found is None else found if isinstance(found, Unavailable) else follow(found, path.steps)


def _cut(value: Any, part: Part, text: str) -> Any:
    """The part of a list, a map or a text. An object with its address is what a pointer leads to: then what it holds is meant."""
    if isinstance(value, dict) and isinstance(value.get("*"), list | str | dict):
        value = value["*"]
    match value:
        case str():
            return value[part.start : part.end]
        case dict():
            return dict(list(value.items())[part.start :]) if part.end is None else _first(value, part.start, part.end)
        case list():
            return value[part.start :] if part.end is None or (_MORE.fullmatch(str(value[-1])) and len(value) == part.end + 1) else value[part.start : part.end]
        case _:
            raise StrobeError(Code.VALIDATION_ERROR, f"path {text!r}: this value has no elements.", "Leave out the [..] at its end.", value=text)


def _first(value: dict[str, Any], start: int, end: int) -> dict[str, Any]:
    items = list(value.items())
    rest = [items[-1]] if len(items) == end + 1 and items[-1][0] == "…" else []
    return dict([*items[start:end], *rest])


def _shown(value: Any) -> tuple[int, int | None]:
    """(elements shown of a list or map, how many more there are: None if that is not known)."""
    if isinstance(value, list) and value and isinstance(value[-1], str) and (found := _MORE.fullmatch(value[-1])):
        return len(value) - 1, int(found[1]) if found[1] else None
    if isinstance(value, dict) and "…" in value and (found := re.fullmatch(r"(?:(\d+) more)|…", str(value["…"]))):
        return len(value) - 1, int(found[1]) if found[1] else None
    return 0, 0
