"""Captured values as the expression language has them: what paths go into."""

from __future__ import annotations

from actors.store.query.typed_values import Captured, data_of, place_of
from strobe.expression import Unavailable
from strobe.model.probe import Value
from strobe.values.typed import TypedValue, followed, value_at
from strobe.values.typed_world import World


def captured_value(world: World, value: Value, captured: Captured) -> TypedValue | Unavailable | None:
    """None: it was not captured. `world` has the memory of the same entry."""
    if value.type is None or value.type >= len(world.table):
        return None
    place = place_of(value, captured)
    if place is not None:
        return value_at(world, value.type, place)
    data = data_of(value, captured)
    return None if data is None else followed(TypedValue(world, value.type, None, data))
