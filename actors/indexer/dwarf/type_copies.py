"""Each unit has its own copy of the types of the headers it includes. By what copies have in common they are taken for one."""

from __future__ import annotations

from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.language import language_of
from actors.indexer.dwarf.scopes import ANONYMOUS, in_function, scopes_of
from actors.indexer.dwarf.unit import Entry

_RECORDS: Final = frozenset({dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE})


def copy_key(entry: Entry) -> tuple[object, ...] | None:
    """Equal for the copies of one record: its name (a linker keeps a text once, so where that is), size, place in its source file, and the scopes it
    stands in (all else is the same in `Stack<long>::Node` and `Stack<double>::Node`). That is enough for what C++ has once in a program, of whose parts
    compilers tell only those that a unit uses; of others, which have no linkage, the first part too. None for what has no name, and for what only is
    declared. Raises DwarfError."""
    name = entry.attributes.get(dw.NAME)
    if entry.tag not in _RECORDS or name is None or entry.has(dw.DECLARATION) or entry.unit.signature is not None:
        return None
    raw, scopes = entry.attributes, scopes_of(entry)
    own = (entry.tag, name, *(raw.get(one, (0, 0))[1] for one in (dw.BYTE_SIZE, dw.DECL_LINE, dw.DECL_COLUMN)), scopes)
    if language_of(entry.unit) == "c++" and ANONYMOUS not in scopes and not in_function(entry.unit, entry.offset):
        return own
    first = entry.unit.entry(entry.end) if entry.abbreviation.children else None
    if first is None:
        return own
    return (*own, first.tag, first.attributes.get(dw.NAME), first.attributes.get(dw.DECL_LINE, (0, 0))[1])
