"""As much of an ELF file as decides whether it may be touched: headers, sections by name, dynamic entries, notes. Nothing is read that is not asked for.

Numbers are from the System V gABI and <elf.h>. Only 64-bit little-endian files get past `read_elf`; of others the identification alone is told.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple

ELF_MAGIC: Final = b"\x7fELF"
MACHINES: Final = {3: "i386", 8: "mips", 20: "powerpc", 21: "powerpc64", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv", 258: "loongarch"}
ET_EXEC: Final = 2
ET_DYN: Final = 3
TYPES: Final = {0: "no type", 1: "object file", ET_EXEC: "program", ET_DYN: "shared object", 4: "core dump"}
PT_DYNAMIC: Final = 2
PT_INTERP: Final = 3
PT_NOTE: Final = 4
PT_GNU_PROPERTY: Final = 0x6474E553
SHT_SYMTAB: Final = 2
DT_NEEDED: Final = 1
DT_STRTAB: Final = 5
DT_STRSZ: Final = 10
DT_FLAGS_1: Final = 0x6FFFFFFB
DF_1_PIE: Final = 0x08000000
NT_GNU_BUILD_ID: Final = 3
NT_GNU_PROPERTY_TYPE_0: Final = 5
GNU_PROPERTY_X86_FEATURE_1_AND: Final = 0xC0000002
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_TABLE_MAX: Final = 65536
_NOTES_MAX: Final = 1 << 20


class Identity(NamedTuple):
    """The first 20 bytes of an ELF file."""

    bits: int  # 32 or 64
    little_endian: bool
    type: int
    machine: str


class Segment(NamedTuple):
    type: int
    offset: int
    address: int
    bytes: int


class Section(NamedTuple):
    name: str
    type: int
    offset: int
    bytes: int


class BrokenElf(ValueError):
    """The file starts like an ELF file and is none; the message says where it fails."""


def identify(start: bytes) -> Identity | None:
    """What the first bytes of a file say; None when they are no ELF identification."""
    if len(start) < 20 or start[:4] != ELF_MAGIC:
        return None
    little = start[5] != 2
    kind, machine = struct.unpack_from("<HH" if little else ">HH", start, 16)
    return Identity(64 if start[4] == 2 else 32, little, kind, MACHINES.get(machine, f"machine {machine}"))


@dataclass
class Elf:
    """A mapped 64-bit little-endian ELF file. Use as a context manager."""

    content: mmap.mmap
    segments: list[Segment] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path) -> Elf:
        """OSError when it cannot be read, BrokenElf when it is too short to be one."""
        with path.open("rb") as file:
            try:
                elf = cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            except ValueError:
                raise BrokenElf("the file is empty") from None
        try:
            elf.segments = elf._read_segments()
        except BrokenElf:
            elf.content.close()
            raise
        return elf

    def __enter__(self) -> Elf:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.content.close()

    @functools.cached_property
    def header(self) -> tuple[int, ...]:
        """type, machine, version, entry, phoff, shoff, flags, ehsize, phentsize, phnum, shentsize, shnum, shstrndx"""
        return self._unpack(_HEADER, 0, "file header")[1:]

    @property
    def type(self) -> int:
        return self.header[0]

    @property
    def entry(self) -> int:
        return self.header[3]

    def _read_segments(self) -> list[Segment]:
        offset, count = self.header[4], self.header[9]
        rows = (self._unpack(_SEGMENT, offset + i * _SEGMENT.size, "program header") for i in range(count))
        return [Segment(row[0], row[2], row[3], row[5]) for row in rows]

    @functools.cached_property
    def sections(self) -> dict[str, Section]:
        """By name; empty where the section table was cut off, as some packers do."""
        offset, count, names_index = self.header[5], self.header[11], self.header[12]
        if not offset or not count or offset + count * _SECTION.size > len(self.content) or names_index >= count:
            return {}
        rows = [_SECTION.unpack_from(self.content, offset + i * _SECTION.size) for i in range(min(count, _TABLE_MAX))]
        names = rows[names_index]
        table = self.content[names[4] : names[4] + min(names[5], _NOTES_MAX)]
        named = [Section(_text(table, row[0]), row[1], row[4], row[5] if row[1] != 8 else 0) for row in rows]  # 8: NOBITS
        return {section.name: section for section in named}

    def segment(self, kind: int) -> Segment | None:
        return next((segment for segment in self.segments if segment.type == kind), None)

    def bytes_of(self, part: Section | Segment, limit: int = _NOTES_MAX) -> bytes:
        return self.content[part.offset : part.offset + min(part.bytes, limit)]

    def holds(self, section: str, text: bytes, limit: int | None = None) -> bool:
        """Whether a section's bytes (the first `limit` of them) contain `text`."""
        return self.find(section, text, 0, limit) >= 0

    def find(self, section: str, text: bytes, start: int, limit: int | None = None) -> int:
        """Offset in the file of `text` in a section, from offset `start` of the file on; -1. A search without a copy, about 1 GB/s."""
        found = self.sections.get(section)
        if found is None:
            return -1
        size = found.bytes if limit is None else min(found.bytes, limit)
        return self.content.find(text, max(start, found.offset), found.offset + size)

    @functools.cached_property
    def interpreter(self) -> str | None:
        """PT_INTERP: the loader that the kernel starts for it."""
        segment = self.segment(PT_INTERP)
        return None if segment is None else self.bytes_of(segment, 4096).split(b"\0")[0].decode(errors="replace")

    @functools.cached_property
    def dynamic(self) -> dict[int, list[int]]:
        """Values by tag of the dynamic section."""
        segment = self.segment(PT_DYNAMIC)
        found: dict[int, list[int]] = {}
        if segment is not None:
            content = self.bytes_of(segment)
            for tag, value in struct.iter_unpack("<QQ", content[: len(content) // 16 * 16]):
                if not tag:
                    break
                found.setdefault(tag, []).append(value)
        return found

    @functools.cached_property
    def needed(self) -> list[str]:
        """DT_NEEDED: the libraries it names."""
        table = self.dynamic.get(DT_STRTAB)
        if not table:
            return []
        start = self._offset_of(table[0])
        size = self.dynamic.get(DT_STRSZ, [0])[0]
        return [_text(self.content, start + value) for value in self.dynamic.get(DT_NEEDED, []) if value < size]

    def notes(self) -> Iterator[tuple[bytes, int, bytes]]:
        """(owner, type, content) of every note in a note segment."""
        for segment in self.segments:
            if segment.type == PT_NOTE:
                yield from _notes(self.bytes_of(segment), 8 if segment.type == PT_GNU_PROPERTY else 4)

    @functools.cached_property
    def build_id(self) -> str | None:
        """Hex digits of the GNU build-id."""
        return next((content.hex() for owner, kind, content in self.notes() if owner == b"GNU" and kind == NT_GNU_BUILD_ID), None)

    @functools.cached_property
    def cet(self) -> bool:
        """Marked for indirect branch tracking or shadow stacks."""
        segment = self.segment(PT_GNU_PROPERTY)
        if segment is None:
            return False
        for owner, kind, content in _notes(self.bytes_of(segment), 8):
            if owner == b"GNU" and kind == NT_GNU_PROPERTY_TYPE_0:
                return any(bits & 3 for bits in _properties(content, GNU_PROPERTY_X86_FEATURE_1_AND))
        return False

    def _offset_of(self, address: int) -> int:
        """File offset of a virtual address, by the loadable segments."""
        for segment in self.segments:
            if segment.type == 1 and segment.address <= address < segment.address + segment.bytes:
                return address - segment.address + segment.offset
        return address

    def _unpack(self, layout: struct.Struct, offset: int, what: str) -> tuple[int, ...]:
        if offset + layout.size > len(self.content):
            raise BrokenElf(f"its {what} lies beyond its end")
        return layout.unpack_from(self.content, offset)


def _notes(content: bytes, alignment: int) -> Iterator[tuple[bytes, int, bytes]]:
    at = 0
    with contextlib.suppress(struct.error):
        while at + 12 <= len(content):
            name_bytes, value_bytes, kind = struct.unpack_from("<III", content, at)
            name = at + 12
            value = name + (name_bytes + 3 & ~3)
            if value + value_bytes > len(content):
                return
            yield content[name : name + name_bytes].rstrip(b"\0"), kind, content[value : value + value_bytes]
            at = value + (value_bytes + alignment - 1 & -alignment)


def _properties(content: bytes, wanted: int) -> Iterator[int]:
    at = 0
    while at + 12 <= len(content):
        kind, size, bits = struct.unpack_from("<III", content, at)
        if kind == wanted:
            yield bits
        at += 8 + (size + 7 & ~7)


def _text(content: bytes | mmap.mmap, start: int) -> str:
    end = content.find(b"\0", start, start + 4096)
    return content[start : end if end >= 0 else start].decode(errors="replace")
