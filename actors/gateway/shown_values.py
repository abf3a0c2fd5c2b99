"""Captured values on their way into a reply: functions named by the indexer, and no more of each value than there is room for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from actors.gateway.tool import Call
from strobe.errors import StrobeError
from strobe.model.probe import Module
from strobe.protocol.indexer import Demangle, FramesReply, NamesReply, Symbolise
from strobe.render.budget import json_tokens
from strobe.render.shorten import first_elements, shorten, shorten_all

NAMING_S: Final = 3.0
ADDRESSES_MAX: Final = 500
MODULE_BYTES_MAX: Final = 1 << 32
RUST_PANIC: Final = "panic"  # what the recorder calls one
SHARED_BY: Final = 8  # events that a page has room for even if all their values are large
EVENT_TOKENS_LEAST: Final = 80
ELEMENTS: Final = 100  # of each list of a value that is asked for alone
VALUE_ROOM: Final = 150  # tokens of a reply besides its value, in both forms
_SLICE: Final = re.compile(r"(?s)(.*)\[(\d*)\.\.(\d*)\]")
_FUNCTION: Final = re.compile(r"<function at (0x[0-9a-f]+)>")
Event = dict[str, Any]


async def function_names(addresses: Sequence[int], biases: Mapping[str, int], call: Call) -> dict[int, str]:
    """Of those that are a function's first byte. Without an answer in time the addresses stay as they are."""
    if not addresses or not biases:
        return {}
    ask = Symbolise(modules=_modules(biases), addresses=list(addresses)[:ADDRESSES_MAX], return_addresses=False)
    try:
        reply = await call.ask("indexer", ask, FramesReply, deadline_s=NAMING_S)
    except StrobeError:
        return {}
    return {frame.address: frame.function for frame in reply.frames if frame.function and not frame.inlined and not frame.offset}


async def with_thrown_types(events: list[Event], call: Call) -> list[Event]:
    """The events with the types of exceptions as they are written in the source. Without an answer in time they stay as the program has them."""
    thrown = sorted({event["exception"]["type"] for event in events if "type" in (event.get("exception") or {})} - {RUST_PANIC})
    if not thrown:
        return events
    try:
        reply = await call.ask("indexer", Demangle(names=thrown), NamesReply, deadline_s=NAMING_S)
    except StrobeError:
        return events
    written = dict(zip(thrown, reply.names, strict=True))
    return [_with_thrown_type(event, written) for event in events]


def _with_thrown_type(event: Event, written: Mapping[str, str]) -> Event:
    exception = event.get("exception") or {}
    return {**event, "exception": {**exception, "type": written[exception["type"]]}} if exception.get("type") in written else event


def _modules(biases: Mapping[str, int]) -> list[Module]:
    """Where each ends is not known: before the next one begins. An address behind its last function gets no name, for it is no function's first byte."""
    ordered = sorted(biases.items(), key=lambda one: one[1])
    ends = [*(bias for _, bias in ordered[1:]), MODULE_BYTES_MAX + ordered[-1][1]]
    return [Module(path=path, bias=bias, start=bias, end=min(end, bias + MODULE_BYTES_MAX)) for (path, bias), end in zip(ordered, ends, strict=True)]


def named(value: Any, names: Mapping[int, str]) -> Any:
    """The value with its functions' names: `0x401136 <handler>`."""
    if not names:
        return value
    if isinstance(value, str):
        found = _FUNCTION.fullmatch(value)
        name = names.get(int(found[1], 16)) if found else None
        return f"{found[1]} <{name}>" if found and name is not None else value
    if isinstance(value, list):
        return [named(one, names) for one in value]
    return {key: named(one, names) for key, one in value.items()} if isinstance(value, dict) else value


def with_names(event: Event, names: Mapping[int, str]) -> Event:
    return {key: named(one, names) if key in ("arguments", "returnValue", "watchValues") else one for key, one in event.items()} if names else event


def share_of(limit: int, events: int) -> int:
    """Tokens for the values of each event of a page within `limit` tokens, which shows them as text too."""
    return max(EVENT_TOKENS_LEAST, limit // (2 * max(1, min(events, SHARED_BY))))


def shortened(events: list[Event], share: int) -> tuple[list[Event], str | None]:
    """The events with the values of each cut to `share` tokens, and what to say about it."""
    done = [_shortened(event, share) for event in events]
    first = next(((event["id"], path) for event, path in done if path is not None), None)
    if first is None:
        return events, None
    event_id, path = first
    said = f'Values with … are not shown whole. All of one event: eventId="{event_id}"'
    said += f'; of one value: path="{path}", a part of a list: path="{path}[20..40]".' if path else "."
    return [event for event, _ in done], said


def _shortened(event: Event, tokens: int) -> tuple[Event, str | None]:
    """And the path of the first value that was cut ("" for a watch, which has none)."""
    arguments: list[dict[str, Any]] = event.get("arguments") or []
    watches: dict[str, Any] = event.get("watchValues") or {}
    results = [event["returnValue"]] if "returnValue" in event else []
    values = [*(one["value"] for one in arguments), *results, *watches.values()]
    if not any(isinstance(value, dict | list | str) for value in values):
        return event, None
    shown, cut = shorten_all(values, tokens)
    if not any(cut):
        return event, None
    places = [*(str(one.get("name") or f"args[{index}]") for index, one in enumerate(arguments)), *(["ret"] if results else []), *("" for _ in watches)]
    event = dict(event)
    if arguments:
        event["arguments"] = [{**one, "value": value} for one, value in zip(arguments, shown, strict=False)]
    if results:
        event["returnValue"] = shown[len(arguments)]
    if watches:
        event["watchValues"] = dict(zip(watches, shown[len(arguments) + len(results) :], strict=True))
    return event, places[cut.index(True)]


@dataclass(frozen=True, slots=True)
class PartOfValue:
    """`next_path`: where a list goes on that has more."""

    value: Any
    next_path: str | None
    cut: bool
    notes: list[str]


def part_of(value: Any, path: str, next_path: str | None, tokens: int) -> PartOfValue:
    """As much of the value at `path` as `tokens` allow: of a list as many whole elements as fit; of anything else what lies outermost."""
    if isinstance(value, list) and json_tokens(value) > tokens:
        count = _elements_within(value, tokens)
        if count:
            sliced = _SLICE.fullmatch(path)
            base, start = (sliced[1], int(sliced[2] or 0)) if sliced else (path, 0)
            return PartOfValue(first_elements(value, count), f"{base}[{start + count}..]", True, [])
    shown, cut = shorten(value, tokens)
    notes = ["What … stands for has paths of its own, behind this one; or raise maxTokens."] if cut else []
    return PartOfValue(shown, next_path, cut or next_path is not None, notes)


def _elements_within(value: list[Any], tokens: int) -> int:
    left = tokens * 11 // 12 - 8  # the estimate of the whole has a twelfth on top; brackets, and the text that counts the others
    for count, one in enumerate(value):
        left -= json_tokens(one) + 1
        if left < 0:
            return count
    return len(value)
