"""Which language a unit was written in."""

from __future__ import annotations

from typing import Final, Literal

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.unit import Unit

Language = Literal["c", "c++", "rust"]
_C: Final = frozenset({0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E})  # DW_LANG_C89, C, C99, C11, C17, C23
_CPP: Final = frozenset({0x04, 0x1A, 0x21, 0x2A, 0x2B, 0x3A, 0x3B})  # C++, 11, 14, 17, 20, 23
_RUST: Final = 0x1C


def language_of(unit: Unit) -> Language | None:
    """None: a language whose calling convention is not known here."""
    number = unit.root.number(dw.LANGUAGE)
    if number in _C:
        return "c"
    if number in _CPP:
        return "c++"
    if number == _RUST:
        return "rust"
    producer = unit.root.text(dw.PRODUCER) or ""
    return "c++" if producer.startswith("GNU C++") else "c" if producer.startswith("GNU C") else None
