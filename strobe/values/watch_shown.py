"""What a call's watches read, from the image of its entry."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from strobe.expression import Expression, Scalar, Unavailable, Value, evaluate, parse
from strobe.model.probe import Plan, WatchValue
from strobe.model.types import TypeTable
from strobe.values.bundle import Bundle
from strobe.values.memory import PAYLOAD_BASE, Image
from strobe.values.reader import Reader
from strobe.values.typed import TypedValue
from strobe.values.typed_world import Forms, World


class _Root:
    """The scope of a watch: whatever it asks for by name is what it begins at."""

    def __init__(self, value: TypedValue | Unavailable) -> None:
        self._value = value

    def resolve(self, _name: str, /) -> Value | Unavailable:
        return self._value

    def argument(self, _key: int | str, /) -> Value | Unavailable:
        return self._value

    def result(self) -> None:
        return None

    def cast(self, _type_name: str, _pointers: int, _address: int, /) -> None:
        return None

    def near(self, _name: str, /) -> Sequence[str]:
        return ()


ReaderOf: TypeAlias = Callable[[WatchValue, Bundle, TypeTable, Image], Reader]


def watch_values(
    plan: Plan, payload: bytes, *, entered: bool, bundle_of: Callable[[str], Bundle | None], forms: Forms, reader_of: ReaderOf
) -> dict[str, Any]:
    """By label. Those that begin at an argument are read on entry only. `<unavailable: …>` says why one could not be read."""
    image = Image.of(payload, plan.image if entered else plan.exit_image)
    found: dict[str, Any] = {}
    for watch in plan.watches:
        if entered or watch.argument is None:
            bundle = bundle_of(watch.types)
            found[watch.label] = "<types not kept>" if bundle is None else _shown(watch, plan, payload, bundle, image, forms, reader_of)
    return found


def _shown(
    watch: WatchValue, plan: Plan, payload: bytes, bundle: Bundle, image: Image, forms: Forms, reader_of: ReaderOf
) -> Any:
    at = _place(watch, plan, payload)
    if at is None:
        return "<not captured>"
    if watch.expr is None:
        return reader_of(watch, bundle, bundle.table, image).at(watch.type, at)
    world = World(bundle.table, image, forms)
    outcome = evaluate(_parsed(watch.expr), _Root(TypedValue(world, watch.type, at)))
    if isinstance(outcome, Unavailable):
        return f"<unavailable: {outcome.reason}>"
    if isinstance(outcome, Scalar):
        return outcome.value
    assert isinstance(outcome, TypedValue)  # the scope knows no others
    reader = reader_of(watch, bundle, world.table, image)
    if outcome.at is not None and outcome.bits is None:
        return reader.at(outcome.type, outcome.at)
    raw = outcome.raw()
    return f"<unavailable: {raw.reason}>" if isinstance(raw, Unavailable) else reader.of(outcome.type, raw)


def _place(watch: WatchValue, plan: Plan, payload: bytes) -> int | None:
    if watch.argument is None:
        return watch.address
    value = plan.arguments[watch.argument] if watch.argument < len(plan.arguments) else None
    if value is None or value.source != "payload":
        return None
    if value.home == "payload":
        return PAYLOAD_BASE + value.offset
    return struct.unpack_from("<Q", payload, value.offset)[0] if value.offset + 8 <= len(payload) else None


@lru_cache(maxsize=256)
def _parsed(text: str) -> Expression:
    return parse(text)
