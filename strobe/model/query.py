"""debug_query's filters and page, as SPEC §4 names them. One model from the tool's schema to the store's WHERE."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema, field_validator

from strobe.model.base import Noun

EventType = Literal[
    "function_enter", "function_exit", "stdout", "stderr", "crash", "variable_snapshot", "logpoint", "pause", "exception",
    "condition", "ui_action", "channel",
]  # fmt: skip


Bound = Annotated[int | float | str | None, WithJsonSchema({})]  # told in few words: its schema goes to clients


class TextFilter(Noun):
    equals: str | None = None
    contains: str | None = None
    matches: str | None = None  # regular expression (RE2)


class FileFilter(Noun):
    equals: str | None = None
    contains: str | None = None


class ValueFilter(Noun):
    """Conditions on one captured value; all of those given must hold. `name` is a path of the expression language (`order.items[0].id`).

    Of what JSON shows as a number, numbers are compared; of texts, characters; pointers with their address (`0x…`), enums by name or number.
    """

    name: str | None = Field(default=None, description="order.items[0].id")
    equals: Any = None
    ne: Any = None
    lt: Bound = None
    lte: Bound = None
    gt: Bound = None
    gte: Bound = None
    contains: str | None = None
    is_null: bool | None = None


class ArgumentFilter(ValueFilter):
    """`name` begins with an argument's; without one, any argument may meet the conditions."""


class ReturnFilter(ValueFilter):
    """`name` begins with `ret`; without one, the result itself is meant."""


class ThreadNameFilter(Noun):
    contains: str | None = None


class Query(Noun):
    """Time bounds are ns since session start, or text relative to the newest event: -5s, -1m, -500ms."""

    event_type: EventType | None = None
    function: TextFilter | None = None
    source_file: FileFilter | None = None
    return_value: ReturnFilter | None = None
    argument: ArgumentFilter | None = None
    thread_name: ThreadNameFilter | None = None
    thread_id: int | None = None
    pid: int | None = None
    time_from: int | str | None = None
    time_to: int | str | None = None
    min_duration_ns: int | None = Field(default=None, ge=0)
    parent_event_id: str | None = None
    after_event_id: str | None = None
    order_by: Literal["time", "thread", "duration"] = "time"
    limit: int = Field(default=50, ge=1, le=500)
    offset: int = Field(default=0, ge=0)
    cursor: str | None = None
    verbose: bool = False
    view: Literal["events", "callTree", "hotspots", "summary"] = "events"

    @field_validator("time_from", "time_to")
    @classmethod
    def _relative(cls, value: int | str | None) -> int | str | None:
        if isinstance(value, str):
            parse_relative_ns(value)
        return value


def parse_relative_ns(text: str) -> int:
    """`-5s`, `-1m`, `-500ms`, `-10us`, `-7ns` → ns before the newest event (positive). Raises ValueError naming the value."""
    units = {"ms": 10**6, "us": 10**3, "ns": 1, "s": 10**9, "m": 60 * 10**9}
    for unit, factor in units.items():
        number = text[1 : -len(unit)]
        if text.startswith("-") and text.endswith(unit) and number.replace(".", "", 1).isdigit():
            return int(float(number) * factor)
    raise ValueError(f"{text!r} is neither ns since session start nor a relative time such as -5s, -1m or -500ms")
