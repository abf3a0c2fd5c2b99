"""Where the recorder's own hooks go: the functions it must see (unwinder, write, sigaction …), in every module that defines them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from actors.spawner.elf import read_image
from actors.spawner.items import Wanted
from actors.spawner.process import AGENT_MAPPING, Mapping


@dataclass(frozen=True, slots=True)
class Internal:
    """An element of the recorder's table. `every_module`: wherever it is defined, else in libc alone."""

    symbol: str
    every_module: bool

    @classmethod
    def from_agent(cls, row: dict[str, Any]) -> Internal:
        return cls(row["symbol"], row["everyModule"])


def find_internals(internals: Sequence[Internal], mappings: Sequence[Mapping], recorder: str) -> list[Wanted]:
    """One per place; an address that several names lead to (`write`, `__write`) is taken once, by the first."""
    found: dict[int, Wanted] = {}
    everywhere = tuple(item.symbol for item in internals if item.every_module)
    anywhere = tuple(item.symbol for item in internals)
    numbers = {item.symbol: n for n, item in enumerate(internals, 1)}
    for first in _first_mappings(mappings, recorder):
        image = read_image(first.path, anywhere if is_libc(first.path) else everywhere)
        start = image.link_address(first.offset) if image else None
        if image is None or start is None:
            continue
        for function in image.functions:
            address = first.start - start + function.value
            found.setdefault(address, Wanted(address, function.size, internal=numbers[function.name]))
    return list(found.values())


def is_libc(path: str) -> bool:
    name = PurePath(path).name
    return name.startswith(("libc.so", "libc-"))


def _first_mappings(mappings: Sequence[Mapping], recorder: str) -> list[Mapping]:
    """The first mapping of every ELF file that is the target's own."""
    first: dict[str, Mapping] = {}
    for mapping in mappings:
        path = mapping.path
        if path.startswith("/") and AGENT_MAPPING not in path and path != recorder and not path.endswith(" (deleted)"):
            first.setdefault(path, mapping)
    return list(first.values())
