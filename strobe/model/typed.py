"""What is typed by a `TypeTable`: a function's parameters and result, a variable and where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from strobe.model.type_nodes import TypeId


@dataclass(frozen=True, slots=True)
class TypedParameter:
    name: str
    type: TypeId
    artificial: bool = False  # `this`, and what else the compiler adds


@dataclass(frozen=True, slots=True)
class TypedFunction:
    """Parameters in the order in which the planner lists them."""

    parameters: tuple[TypedParameter, ...]
    result: TypeId
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Location:
    """Where a variable lives. `address`: at a link-time address. `thread_local`: `value` bytes into its module's block of each thread.
    `constant`: nowhere, its value is known (an integer or its bytes). `removed`: debug info describes it, but it was optimised out or is only
    declared. `other`: computed in a way that is not read here."""

    kind: Literal["address", "thread_local", "constant", "removed", "other"]
    value: int | bytes | None = None


@dataclass(frozen=True, slots=True)
class TypedVariable:
    """`name` is qualified (`shop::Order::count`; a function's own static variable: `shop::next::counter`)."""

    name: str
    type: TypeId
    location: Location
    linkage_name: str | None = None
