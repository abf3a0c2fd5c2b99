"""Whether two shown values are the same but for what differs from run to run: addresses, ids of processes and threads. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from actors.store.divergence.stream import ADDRESS_HIGH, ADDRESS_IN_TEXT, ADDRESS_LOW

_ADDRESS: Final = re.compile(ADDRESS_IN_TEXT)
_UNKNOWN: Final = frozenset(["<not captured>", "<cut>"])
DIFFERENCES_MAX: Final = 10

Difference = tuple[str, Any, Any]  # path, here, there
_ABSENT: Final = "<absent>"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What each session calls its processes and threads → what both call them."""

    ours: Mapping[int, int]
    theirs: Mapping[int, int]

    def same(self, here: int, there: int) -> bool:
        if ADDRESS_LOW <= here <= ADDRESS_HIGH and ADDRESS_LOW <= there <= ADDRESS_HIGH:
            return True
        return here in self.ours and self.ours[here] == self.theirs.get(there)


def differences(here: Any, there: Any, numbers: Numbers, path: str = "") -> list[Difference]:
    """The first ten, in order. What was not captured on one side differs from nothing."""
    found = []
    for one in _differences(here, there, numbers, path):
        found.append(one)
        if len(found) == DIFFERENCES_MAX:
            break
    return found


def _differences(here: Any, there: Any, numbers: Numbers, path: str) -> Iterator[Difference]:
    if _unknown(here) or _unknown(there):
        return
    if isinstance(here, dict) and isinstance(there, dict):
        for name in [*here, *(name for name in there if name not in here)]:
            at = f"{path}.{name}" if path else str(name)
            if name not in here or name not in there:
                if "…" not in str(name):
                    yield at, here.get(name, _ABSENT), there.get(name, _ABSENT)
            elif name != "@":
                yield from _differences(here[name], there[name], numbers, at)
    elif isinstance(here, list) and isinstance(there, list):
        for number, (one, other) in enumerate(zip(here, there, strict=False)):
            yield from _differences(one, other, numbers, f"{path}[{number}]")
        if len(here) != len(there):
            yield f"{path}.length", len(here), len(there)
    elif not _same(here, there, numbers):
        yield path, here, there


def _unknown(value: Any) -> bool:
    return isinstance(value, str) and value in _UNKNOWN


def _same(here: Any, there: Any, numbers: Numbers) -> bool:
    if isinstance(here, str) and isinstance(there, str):
        return here == there or _ADDRESS.sub("0x", here) == _ADDRESS.sub("0x", there)
    if type(here) is int and type(there) is int:
        return here == there or numbers.same(here, there)
    return type(here) is type(there) and bool(here == there)
