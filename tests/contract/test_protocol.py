"""Messages between actors: one handler each, and no break with a released version."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.gateway import schemas
from strobe.protocol.base import Ask

ROOT = Path(__file__).resolve().parents[2]
RELEASED = sorted((ROOT / "schemas/released").glob("protocol-*.json"))
ASKS = {message.TYPE: message for message in schemas.messages() if issubclass(message, Ask)}
NOTICES = {message.TYPE: message for message in schemas.messages() if not issubclass(message, Ask)}


def decorated(decorator: str) -> Iterator[tuple[str, Path]]:
    """(class name of the message, file) of each `@handles(X)` or `@on_notice(X)` in the tree."""
    for path in (*(ROOT / "actors").rglob("*.py"), *(ROOT / "strobe").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.AsyncFunctionDef):
                continue
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == decorator:
                    yield f"{message_module(path, call.args[0])}", path


def message_module(path: Path, argument: ast.expr) -> str:
    """`store.RunQuery`: message as (file of strobe.protocol).(class), however it was imported."""
    if isinstance(argument, ast.Attribute) and isinstance(argument.value, ast.Name):
        return f"{argument.value.id}.{argument.attr}"
    assert isinstance(argument, ast.Name)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == argument.id for alias in node.names):
            return f"{(node.module or '').rsplit('.', 1)[-1]}.{argument.id}"
    return f"{path.stem}.{argument.id}"


def named(message: type[Any]) -> str:
    return f"{message.__module__.rsplit('.', 1)[-1]}.{message.__name__}"


HANDLED = Counter(name for name, _ in decorated("handles"))


@pytest.mark.parametrize("type_name", sorted(ASKS))
def test_every_ask_has_exactly_one_handler(type_name: str) -> None:
    assert HANDLED[named(ASKS[type_name])] == 1


FOR_OUTSIDE = {"store.SessionChanged"}  # heard by clients of the bus that follow sessions, not by actors


def test_every_notice_is_heard() -> None:
    heard = {name for name, _ in decorated("on_notice")}
    assert {named(message) for message in NOTICES.values()} - heard == FOR_OUTSIDE


SECOND_FILES = {"compare": "store", "upkeep": "store", "test_runs": "store", "testing": "session"}  # messages of one actor in several files, by noun


@pytest.mark.parametrize("type_name", sorted(ASKS))
def test_an_ask_is_named_after_who_answers_it(type_name: str) -> None:
    answering, verb = type_name.split(".")
    file = ASKS[type_name].__module__.removeprefix("strobe.protocol.")
    assert SECOND_FILES.get(file, file) == answering
    assert verb.islower()


def test_types_are_unique() -> None:
    types = Counter(message.TYPE for message in schemas.messages())
    assert [name for name, number in types.items() if number > 1] == []


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.stem)
def test_compatible_with_released_protocol(released: Path) -> None:
    """A message of a released version keeps its fields and needs no new ones; a reply keeps what it promised."""
    old = json.loads(released.read_text(encoding="utf-8"))["messages"]
    new = schemas.protocol_json()["messages"]
    assert list(breaks(old, new)) == []


def test_there_is_a_released_copy() -> None:
    assert RELEASED


def breaks(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for name, entry in old.items():
        if name not in new:
            yield f"{name} is gone"
            continue
        for part in ("message", "reply"):
            before, now = entry.get(part), new[name].get(part)
            if before and now:
                yield from object_breaks(f"{name} {part}", before, now)


def object_breaks(name: str, before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for field in before.get("properties", {}):
        if field not in now.get("properties", {}):
            yield f"{name}: {field} is gone"
    if name.endswith("message"):
        for field in set(now.get("required", [])) - set(before.get("required", [])):
            yield f"{name}: {field} is newly required"
    else:
        for field in set(before.get("required", [])) - set(now.get("required", [])):
            yield f"{name}: {field} is no longer always there"


def test_breaks_would_be_found() -> None:
    old = {"a.b": {"message": {"properties": {"x": {}, "y": {}}, "required": ["x"]}, "reply": {"properties": {"r": {}}, "required": ["r"]}}}
    new = {"a.b": {"message": {"properties": {"x": {}, "z": {}}, "required": ["x", "z"]}, "reply": {"properties": {"r": {}}, "required": []}}}
    assert list(breaks(old, new)) == ["a.b message: y is gone", "a.b message: z is newly required", "a.b reply: r is no longer always there"]
    assert list(breaks(old, {})) == ["a.b is gone"]
    assert list(breaks(old, old)) == []
