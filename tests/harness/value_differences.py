"""Values as Strobe shows them against the same values as gdb has them: what agrees, what can't be compared and why, what is different.

Both are in the form of strobe/values/README.md. gdb's come from two runs: what these two show differently (addresses that a union shows as numbers, bytes
that nobody wrote, the time) is not determined by the program, and is not compared.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

Json = Any
UNKNOWN: Final = "<gdb: "  # gdb_shown.UNKNOWN
MORE: Final = "…"
LEFT: Final = "left out by Strobe"
LEFT_OUT: Final = ("<not captured>", "<cut>")
_USER_END: Final = 1 << 47
_ADDRESS: Final = re.compile(r"0x[0-9a-f]+")
_AT: Final = re.compile(r"<(.+) at (0x[0-9a-f]+)>", re.DOTALL)
_FUNCTION: Final = re.compile(r"(0x[0-9a-f]+) <(.+)>", re.DOTALL)
_STATE: Final = re.compile(r"<(circular ref to|unreadable|function at) (0x[0-9a-f]+)>")
_REST: Final = re.compile(r"(?:… )?(\d+) more")
_TIME: Final = re.compile(r"\b\d\d:\d\d:\d\d\b")
_NOT_A_NAME: Final = re.compile(r"\b(?:const|volatile|struct|class|union|enum)\b|\b__cxx11::|\s")
_DEFAULT: Final = re.compile(r",std::(?:allocator|less|hash|equal_to|default_delete|char_traits)<")


@dataclass(frozen=True, slots=True)
class Difference:
    call: str
    path: str
    ours: Json
    gdb: Json

    def __str__(self) -> str:
        return f"{self.call}: {self.path}: Strobe {_short(self.ours)}, gdb {_short(self.gdb)}"


@dataclass(slots=True)
class Tally:
    """Of values without others in them: numbers, texts, addresses, empty lists. `rich`: calls in which a text, or something inside of a value, agreed."""

    rich: set[str] = field(default_factory=set)
    skipped: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)  # call → values that agreed
    left_out: Counter[str] = field(default_factory=Counter)  # call → values that Strobe left out
    differences: list[Difference] = field(default_factory=list)

    @property
    def agreed(self) -> int:
        return self.counts.total()

    def cut_although_small(self, values: int) -> list[str]:
        """Calls of fewer values than that of which Strobe left some out: not for want of room."""
        return [f"{call}: {count} of {count + self.counts[call]}" for call, count in self.left_out.items() if count + self.counts[call] < values]

    def summary(self, most: int = 40) -> str:
        skipped = "; ".join(f"{count} {why}" for why, count in self.skipped.most_common())
        head = f"{self.agreed} values of {len(self.counts)} calls agree, {len(self.rich)} of them with texts or values in values. Not compared: {skipped}."
        return "\n".join([head, f"{len(self.differences)} differ:", *map(str, self.differences[:most])])


class Comparison:
    """`explained`: pattern of a path → why what it names is not compared."""

    def __init__(self, explained: Mapping[str, str] = MappingProxyType({})) -> None:
        self.tally = Tally()
        self.explained = {re.compile(pattern): why for pattern, why in explained.items()}

    def call(self, name: str, ours: Mapping[str, Json], theirs: Mapping[str, Json], again: Mapping[str, Json]) -> None:
        """The values of one call, by argument's name. What gdb doesn't name is not compared."""
        one = _Call(name, self.tally, self.explained)
        for argument, value in theirs.items():
            if argument in ours:
                one.values(argument, ours[argument], value, again.get(argument))
            elif not unknown(value):
                one.differs(argument, "(no such value)", value)


class _Call:
    """`places`: gdb's address → ours, and the other way round: two addresses that are one to gdb are one to Strobe."""

    def __init__(self, name: str, tally: Tally, explained: Mapping[re.Pattern[str], str]) -> None:
        self.name, self.tally, self.explained = name, tally, explained
        self.places: dict[tuple[str, str], str] = {}

    def values(self, path: str, ours: Json, theirs: Json, again: Json) -> None:
        why = next((why for pattern, why in self.explained.items() if pattern.search(path)), None)
        if why is not None:
            self.skips(why, theirs)
        elif unknown(theirs) or unknown(again):
            self.skips(theirs if unknown(theirs) else again, theirs)
        elif ours in LEFT_OUT or (isinstance(ours, dict) and ours.get("*") in LEFT_OUT and not (isinstance(theirs, dict) and "*" in theirs)):
            self.skips(LEFT, theirs)
        elif not self._determined(theirs, again):
            self.skips("gdb's two runs differ", theirs)
        elif isinstance(theirs, dict) and isinstance(ours, dict):
            self._members(path, ours, theirs, again)
        elif isinstance(theirs, list) and isinstance(ours, list):
            self._elements(path, ours, theirs, again)
        elif isinstance(theirs, dict | list) or isinstance(ours, dict | list):
            self.differs(path, ours, theirs)
        elif is_prefix(ours, theirs):
            self.skips("a text cut by Strobe", theirs)
        elif self._same(ours, theirs) and self._at_its_place(ours, theirs):
            self.agrees(path, theirs)
        else:
            self.differs(path, ours, theirs)

    def _members(self, path: str, ours: dict[str, Json], theirs: dict[str, Json], again: dict[str, Json]) -> None:
        if not theirs and not ours:
            self.agrees(f"{path}.", None)
        if theirs.keys() != again.keys():
            self.skips("gdb's two runs differ", theirs)
            return
        for name, value in theirs.items():
            if name == MORE:
                continue
            if name in ours:
                self.values(f"{path}.{name}", ours[name], value, again[name])
            elif MORE in ours:
                self.skips(LEFT, value)
            else:
                self.differs(f"{path}.{name}", "(no such member)", value)
        added = ours.keys() - theirs.keys() - {MORE}
        if added and MORE not in theirs:
            self.differs(path, {name: ours[name] for name in sorted(added)}, "(no such members)")
        self._counts(path, ours, theirs)

    def _counts(self, path: str, ours: dict[str, Json], theirs: dict[str, Json]) -> None:
        """What is left out is counted: all in all there are as many as gdb sees."""
        mine, gdbs = (len(one) - (MORE in one) + rest(one.get(MORE)) for one in (ours, theirs))
        if MORE in ours and _REST.fullmatch(str(ours[MORE])) and mine != gdbs:
            self.differs(path, f"{mine} in all", f"{gdbs} in all")

    def _elements(self, path: str, ours: list[Json], theirs: list[Json], again: list[Json]) -> None:
        if not theirs and not ours:
            self.agrees(f"{path}[]", None)
        if theirs and unknown(theirs[-1]):  # gdb showed no more
            self.skips(theirs[-1], None)
            ours, theirs = ours[: len(theirs) - 1], theirs[:-1]
        elif sum(map(elements_of, ours)) != sum(map(elements_of, theirs)) and not (ours and ours[-1] in LEFT_OUT):
            self.differs(path, f"{sum(map(elements_of, ours))} elements", f"{sum(map(elements_of, theirs))} elements")
            return
        for index, value in enumerate(theirs):
            if is_rest(value):
                continue
            if index >= len(ours) or is_rest(ours[index]) or (index == len(ours) - 1 and ours[index] in LEFT_OUT):
                for left in theirs[index:]:
                    self.skips(LEFT, left)
                return
            self.values(f"{path}[{index}]", ours[index], value, again[index] if index < len(again) else f"{UNKNOWN}nothing>")

    def _determined(self, theirs: Json, again: Json) -> bool:
        """By the program. Memory that it never wrote is no addresses in the second run."""
        if isinstance(theirs, dict | list) or isinstance(again, dict | list):
            place = addressed(again["@"]) if isinstance(again, dict) and "@" in again else None
            return type(theirs) is type(again) and (place is None or int(place, 16) < _USER_END)
        place = addressed(again)
        if place is not None and (int(place, 16) >= _USER_END or (str(again).startswith("<unreadable") and again != theirs)):
            return False
        return self._same(theirs, again)

    def _same(self, one: Json, other: Json) -> bool:
        if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
            return one is other
        if isinstance(one, int | float) and isinstance(other, int | float):
            return one == other or single(one) == single(other) is not None
        return isinstance(one, str) and isinstance(other, str) and without_addresses(one) == without_addresses(other)

    def _at_its_place(self, ours: Json, theirs: Json) -> bool:
        mine, gdbs = addressed(ours), addressed(theirs)
        if mine is None or gdbs is None:
            return mine is gdbs
        return self.places.setdefault(("gdb", gdbs), mine) == mine and self.places.setdefault(("ours", mine), gdbs) == gdbs

    def agrees(self, path: str, value: Json) -> None:
        self.tally.counts[self.name] += 1
        if isinstance(value, str) or "." in path or "[" in path:
            self.tally.rich.add(self.name)

    def skips(self, why: str, value: Json) -> None:
        self.tally.skipped[why] += leaves(value)
        if why == LEFT:
            self.tally.left_out[self.name] += leaves(value)

    def differs(self, path: str, ours: Json, theirs: Json) -> None:
        self.tally.differences.append(Difference(self.name, path, ours, theirs))


def unknown(value: Json) -> bool:
    return isinstance(value, str) and value.startswith(UNKNOWN)


def single(number: float) -> float | None:
    """A float's value after it was in 4 bytes; None for an int, and where it has no room in them."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0]) if isinstance(number, float) else None
    except OverflowError:
        return None


def is_prefix(ours: Json, theirs: Json) -> bool:
    """A text that Strobe cut earlier than gdb did."""
    return isinstance(ours, str) and isinstance(theirs, str) and ours.endswith(MORE) and len(ours) < len(theirs) and theirs.startswith(ours[:-1])


def rest(value: Json) -> int:
    """Of `… 97 more`, or of `97 more`: 97."""
    found = _REST.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) if found else 0


def is_rest(value: Json) -> bool:
    return isinstance(value, str) and value.startswith(MORE) and rest(value) > 0


def elements_of(value: Json) -> int:
    return rest(value) if is_rest(value) else 1


def leaves(value: Json) -> int:
    if isinstance(value, dict | list):
        return sum(leaves(one) for one in (value.values() if isinstance(value, dict) else value)) or 1
    return 1


def addressed(value: Json) -> str | None:
    """The address that a text says."""
    if not isinstance(value, str):
        return None
    if _ADDRESS.fullmatch(value):
        return value
    found = _AT.fullmatch(value) or _FUNCTION.fullmatch(value) or _STATE.fullmatch(value)
    return next(group for group in found.groups() if _ADDRESS.fullmatch(group)) if found else None


def without_addresses(text: str) -> str:
    """And without times of day. Types are written in several ways: only what they name is compared."""
    if _ADDRESS.fullmatch(text):
        return "0x"
    if found := _STATE.fullmatch(text):
        return f"<{found[1]} 0x>"
    if found := _AT.fullmatch(text):
        return f"<{type_name(found[1])} at 0x>"
    if found := _FUNCTION.fullmatch(text):
        return f"0x <{found[2]}>"
    return _TIME.sub("time", text)


def type_name(text: str) -> str:
    """Without what is left out by some: qualifiers, kinds, spaces, template arguments that are the library's own defaults."""
    text = _NOT_A_NAME.sub("", text)
    while found := _DEFAULT.search(text):
        text = text[: found.start()] + text[_closed(text, found.end()) :]
    return text.replace("std::basic_string<char>", "std::string")


def _closed(text: str, at: int) -> int:
    """Behind the bracket that closes what is open at `at`."""
    depth = 1
    while depth and at < len(text):
        depth += (text[at] == "<") - (text[at] == ">")
        at += 1
    return at


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
