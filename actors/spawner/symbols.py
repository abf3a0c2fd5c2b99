"""Where the recorder's own hooks go: the functions it must see (unwinder, write, sigaction …), in every module that defines them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from actors.spawner.elf import read_image
from actors.spawner.items import Wanted
from actors.spawner.process import AGENT_MAPPING, Mapping
from strobe.protocol.spawner import Internal

LOADING: Final = "_dl_debug_state"  # of glibc's dynamic linker: an empty function, there to be seen by debuggers (elf/dl-debug.c)
ALIGNMENT: Final = 16  # of functions in it
RETURN_ONLY: Final = 6  # bytes at most of a function that only returns: endbr64; rep ret


def find_internals(internals: Sequence[Internal], mappings: Sequence[Mapping], recorder: str) -> list[Wanted]:
    """One per place; an address that several names lead to (`write`, `__write`) is taken once, by the first."""
    found: dict[int, Wanted] = {}
    everywhere = tuple(item.symbol for item in internals if item.every_module)
    anywhere = tuple(item.symbol for item in internals)
    by_symbol = {item.symbol: item for item in internals}
    for first in _first_mappings(mappings, recorder):
        image = read_image(first.path, anywhere if is_libc(first.path) else everywhere)
        start = image.link_address(first.offset) if image else None
        if image is None or start is None:
            continue
        for function in image.functions:
            address = first.start - start + function.value
            padded = function.name == LOADING and function.size <= RETURN_ONLY
            size = function.size + -(function.value + function.size) % ALIGNMENT if padded else function.size
            found.setdefault(address, Wanted(address, size, internal=by_symbol[function.name], padded=padded))
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
