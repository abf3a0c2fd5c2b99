"""One unit of `.debug_info` or `.debug_types`, and its entries (DWARF 5 §7.5.1, §7.5.2)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import Abbreviation, DwarfError, read_table, step_over
from actors.indexer.leb import signed, unsigned

if TYPE_CHECKING:
    from actors.indexer.dwarf.file import DwarfFile
    from actors.indexer.dwarf.named_entries import NamePlaces
    from actors.indexer.dwarf.scopes import Scope

_CHILDREN_MAX: Final = 200_000
_SKELETON: Final = (4, 5)  # DW_UT_skeleton, DW_UT_split_compile
# Bytes of forms that hold a number of a fixed size, by the size of the unit's offsets
_SIZES: Final = {wide: {**{form: size for form, size in dw.FIXED.items() if size}, **dict.fromkeys(dw.SECTION_OFFSETS, wide)} for wide in (4, 8)}
Raw = tuple[int, int | bytes]  # form, and the number or bytes it stands for


@dataclass(slots=True)
class Entry:
    """A debugging information entry. `end` is the position after its attributes: of its first child, or of the next entry."""

    unit: Unit
    offset: int
    abbreviation: Abbreviation
    attributes: dict[int, Raw]
    end: int

    @property
    def tag(self) -> int:
        return self.abbreviation.tag

    def has(self, attribute: int) -> bool:
        return attribute in self.attributes

    def number(self, attribute: int) -> int | None:
        """A constant, flag or offset; None when it is absent or an expression."""
        raw = self.attributes.get(attribute)
        if raw is None or isinstance(raw[1], bytes):
            return None
        return raw[1]

    def text(self, attribute: int) -> str | None:
        raw = self.attributes.get(attribute)
        return None if raw is None else self.unit.file.string(self.unit, *raw)

    def address(self, attribute: int) -> int | None:
        raw = self.attributes.get(attribute)
        return None if raw is None or isinstance(raw[1], bytes) else self.unit.file.address(self.unit, raw[0], raw[1])

    def reference(self, attribute: int) -> Entry | None:
        raw = self.attributes.get(attribute)
        return None if raw is None or isinstance(raw[1], bytes) else self.unit.file.reference(self.unit, raw[0], raw[1])

    def block(self, attribute: int) -> bytes | None:
        raw = self.attributes.get(attribute)
        return raw[1] if raw is not None and isinstance(raw[1], bytes) else None

    def children(self) -> Iterator[Entry]:
        """Direct children. Raises DwarfError on malformed entries."""
        if not self.abbreviation.children:
            return
        at = self.end
        for _ in range(_CHILDREN_MAX):
            child = self.unit.entry(at)
            if child is None:
                return
            yield child
            at = self.unit.after(child)
        raise DwarfError(f"entry at {self.offset:#x} has too many children")

    def parts(self, wanted: Wanted) -> Iterator[Entry]:
        """The direct children that are `wanted`; the others are stepped over, which is quicker. Raises DwarfError."""
        if not self.abbreviation.children:
            return
        unit, at = self.unit, self.end
        codes = unit.codes_of(wanted)
        for _ in range(_CHILDREN_MAX):
            start = at
            at, sibling, shape = unit.skip(at)
            if shape is None:
                return
            if shape.code in codes and (child := unit.entry(start)) is not None:
                yield child
            if shape.children:
                at = sibling or unit.past(at)
        raise DwarfError(f"entry at {self.offset:#x} has too many children")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Entries by their shape: of one of `tags`, or of one of `rarely` with the attribute `attribute`."""

    tags: frozenset[int]
    rarely: frozenset[int] = frozenset()
    attribute: int = 0


@dataclass(slots=True, eq=False)
class Unit:
    file: DwarfFile
    data: bytes
    offset: int
    first: int  # position of the root entry
    end: int
    version: int
    offset_bytes: int  # 4, or 8 in 64-bit DWARF
    kind: int
    abbreviations_at: int
    signature: int | None = None
    type_at: int = 0
    _table: dict[int, Abbreviation] | None = None
    _root: Entry | None = None
    functions: dict[int, list[int]] | None = None
    complete: bool = False
    line_files: list[str] | None = None
    scope: Scope | None = None
    _leaves: dict[int, int] | None = None
    trivial: dict[int, bool | None] = field(default_factory=dict)
    name_places: dict[frozenset[int], NamePlaces | None] = field(default_factory=dict)
    _codes: dict[Wanted, frozenset[int]] = field(default_factory=dict)

    @property
    def table(self) -> dict[int, Abbreviation]:
        if self._table is None:
            self._table = self.file.abbreviations(self.abbreviations_at, self.offset_bytes)
        return self._table

    @property
    def is_known(self) -> bool:
        """Whether entries of it were read."""
        return self._table is not None

    @property
    def root(self) -> Entry:
        """The unit's own entry. Reads only as much of the abbreviation table as it takes."""
        if self._root is None:
            try:
                code, _ = unsigned(self.data, self.first)
            except (IndexError, ValueError) as error:
                raise DwarfError(f"unit at {self.offset:#x} is cut short") from error
            table = self._table or read_table(self.file.abbrev, self.abbreviations_at, self.offset_bytes, wanted=code)
            root = self._parse(self.first, table)
            if root is None:
                raise DwarfError(f"unit at {self.offset:#x} is empty")
            self._root = root
        return self._root

    @property
    def split(self) -> bool:
        """Split DWARF: the entries are in a `.dwo` file."""
        return self.kind in _SKELETON or self.root.has(dw.DWO_NAME) or self.root.has(dw.GNU_DWO_NAME)

    def entry(self, at: int) -> Entry | None:
        """The entry at a position; None for the null entry that ends a list of children. Raises DwarfError."""
        return self._parse(at, self.table)

    def _parse(self, at: int, table: dict[int, Abbreviation]) -> Entry | None:
        if not self.first <= at < self.end:
            raise DwarfError(f"entry at {at:#x} is outside its unit")
        start = at
        try:
            data = self.data
            code, at = unsigned(data, at)
            if code == 0:
                return None
            abbreviation = table[code]
            attributes: dict[int, Raw] = {}
            sizes = _SIZES[self.offset_bytes]
            for attribute, form, implicit in abbreviation.attributes:
                size = sizes.get(form)
                value: int | bytes
                if size is None or at + size > self.end:
                    value, at = self.value(form, at, implicit)
                else:
                    value = data[at] if size == 1 else int.from_bytes(data[at : at + size], "little")
                    at += size
                attributes[attribute] = (form, value)
        except (IndexError, KeyError, ValueError, struct.error) as error:
            raise DwarfError(f"entry at {start:#x} is malformed") from error
        return Entry(self, start, abbreviation, attributes, at)

    def value(self, form: int, at: int, implicit: int = 0, *, data: bytes | None = None, offset_bytes: int = 0) -> tuple[int | bytes, int]:
        """(what the form holds, position after it). `data` and `offset_bytes`: another section's, whose forms are the same."""
        end = self.end if data is None else len(data)
        data = self.data if data is None else data
        if form == dw.F_IMPLICIT_CONST:
            return implicit, at
        if form == dw.F_FLAG_PRESENT:
            return 1, at
        size = (offset_bytes or self.offset_bytes) if form in dw.SECTION_OFFSETS else dw.FIXED.get(form, -1)
        if size >= 0:
            if at + size > end:
                raise IndexError(at)
            return int.from_bytes(data[at : at + size], "little"), at + size
        if form in dw.ULEBS:
            return unsigned(data, at)
        if form == 0x0D:
            return signed(data, at)
        if form == dw.F_STRING:
            stop = data.index(0, at, end)
            return data[at:stop], stop + 1
        if form == dw.F_INDIRECT:
            form, at = unsigned(data, at)
            if form == dw.F_INDIRECT:
                raise ValueError("indirect form of an indirect form")
            return self.value(form, at, data=data, offset_bytes=offset_bytes)
        length, at = _block_length(data, form, at)
        if at + length > end:
            raise IndexError(at)
        return data[at : at + length], at + length

    def after(self, entry: Entry) -> int:
        """Position of the next entry on the same level: past all children."""
        if not entry.abbreviation.children:
            return entry.end
        sibling = entry.number(dw.SIBLING)
        if sibling is not None and self.offset + sibling > entry.end:
            return self.offset + sibling
        return self.past(entry.end)

    def past(self, at: int) -> int:
        """Position after the null entry that ends the list of children which begins at `at`."""
        leaves, data, depth = self.leaves, self.data, 1
        while depth:
            size = leaves.get(data[at]) if at < self.end else None
            if size is not None:
                at += size
                continue
            at, sibling, shape = self.skip(at)
            if sibling:
                at = sibling
            else:
                depth += -1 if shape is None else shape.children
        return at

    @property
    def leaves(self) -> dict[int, int]:
        """Bytes of an entry with its code, for one-byte codes of entries that have a fixed size and no children."""
        if self._leaves is None:
            self._leaves = {code: 1 + shape.fixed for code, shape in self.table.items() if code < 128 and shape.fixed >= 0 and not shape.children}
        return self._leaves

    def codes_of(self, wanted: Wanted) -> frozenset[int]:
        """Codes of the abbreviations that are wanted."""
        if wanted not in self._codes:
            tags, rarely, attribute = wanted.tags, wanted.rarely, wanted.attribute
            found = [shape.code for shape in self.table.values() if shape.tag in tags or (shape.tag in rarely and attribute in shape.names)]
            self._codes[wanted] = frozenset(found)
        return self._codes[wanted]

    def skip(self, at: int) -> tuple[int, int, Abbreviation | None]:
        """(position after the entry's attributes, position of its next sibling or 0, its shape or None for a null entry)."""
        start, data = at, self.data
        try:
            code, at = (data[at], at + 1) if data[at] < 0x80 else unsigned(data, at)
            if code == 0:
                return at, 0, None
            abbreviation = (self._table or self.table)[code]
            if abbreviation.fixed >= 0 and not abbreviation.has_sibling:
                at, sibling = at + abbreviation.fixed, 0
            else:
                at, sibling = step_over(data, at, abbreviation)
        except (IndexError, KeyError, ValueError) as error:
            raise DwarfError(f"entry at {start:#x} is malformed") from error
        if at > self.end:
            raise DwarfError(f"entry at {start:#x} runs out of its unit")
        sibling += self.offset
        return at, sibling if at < sibling <= self.end else 0, abbreviation


def _block_length(data: bytes, form: int, at: int) -> tuple[int, int]:
    if form in (0x09, dw.F_EXPRLOC):
        return unsigned(data, at)
    if form not in dw.BLOCKS:
        raise ValueError(f"form {form:#x}")
    size = dw.BLOCKS[form]
    return int.from_bytes(data[at : at + size], "little"), at + size
