"""Type nodes as lists for msgpack: [kind, field, …] by position, trailing fields that have their default left out.

A field may be added at a class's end with a default without a new version: older rows lack it.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, Final

from strobe.model import type_nodes as nodes

VERSION: Final = 1
_KINDS: Final[dict[int, type[Any]]] = {
    0: nodes.Void,
    1: nodes.Cut,
    2: nodes.Integer,
    3: nodes.Float,
    4: nodes.Complex,
    5: nodes.Enum,
    6: nodes.Pointer,
    7: nodes.MemberPointer,
    8: nodes.Function,
    9: nodes.Array,
    10: nodes.Record,
    11: nodes.Typedef,
    12: nodes.Qualified,
    13: nodes.Unspecified,
    14: nodes.Opaque,
}
_CODES: Final = {kind: code for code, kind in _KINDS.items()}
# Fields that hold other rows: one (False) or many (True)
_ROWS: Final[dict[tuple[type[Any], str], tuple[type[Any], bool]]] = {
    (nodes.Record, "members"): (nodes.Member, True),
    (nodes.Record, "bases"): (nodes.Base, True),
    (nodes.Record, "statics"): (nodes.Static, True),
    (nodes.Record, "template"): (nodes.TemplateArgument, True),
    (nodes.Record, "variant_part"): (nodes.VariantPart, False),
    (nodes.VariantPart, "discriminant"): (nodes.Member, False),
    (nodes.VariantPart, "variants"): (nodes.Variant, True),
    (nodes.Variant, "members"): (nodes.Member, True),
}


def to_wire(node: nodes.Node) -> list[Any]:
    return [_CODES[type(node)], *row_to_wire(node)]


def from_wire(row: list[Any]) -> nodes.Node:
    """Raises ValueError."""
    if not isinstance(row, list) or not row or row[0] not in _KINDS:
        raise ValueError(f"no row of a type: {row!r:.80}")
    node: nodes.Node = row_from_wire(_KINDS[row[0]], row[1:])
    return node


_fields_known: dict[type[Any], tuple[tuple[str, Any], ...]] = {}


def _fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """(name, default), in order."""
    if kind not in _fields_known:
        _fields_known[kind] = tuple((field.name, field.default) for field in fields(kind))
    return _fields_known[kind]


def row_to_wire(value: Any) -> list[Any]:
    kind = type(value)
    row: list[Any] = []
    kept = 0
    for name, default in _fields(kind):
        item = getattr(value, name)
        row.append(_item_to_wire(item))
        if default is MISSING or item != default:
            kept = len(row)
    return row[:kept]


def _item_to_wire(item: Any) -> Any:
    if isinstance(item, tuple):
        return [_item_to_wire(one) for one in item]
    if item is None or isinstance(item, str | int | bytes):
        return item
    return row_to_wire(item)


def row_from_wire(kind: type[Any], row: list[Any]) -> Any:
    """Raises ValueError."""
    names = [name for name, _ in _fields(kind)]
    if not isinstance(row, list) or len(row) > len(names):
        raise ValueError(f"no row of a {kind.__name__}: {row!r:.80}")
    values = {name: _item_from_wire(kind, name, item) for name, item in zip(names, row, strict=False)}
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"a row of a {kind.__name__} is too short: {row!r:.80}") from error


def _item_from_wire(kind: type[Any], name: str, item: Any) -> Any:
    inner = _ROWS.get((kind, name))
    if inner is None or item is None:
        return _tuples(item)
    row, many = inner
    return tuple(row_from_wire(row, one) for one in item) if many else row_from_wire(row, item)


def _tuples(item: Any) -> Any:
    return tuple(_tuples(one) for one in item) if isinstance(item, list) else item
