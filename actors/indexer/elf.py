"""An ELF file, mapped read-only: header, sections, segments, notes. 64-bit little-endian x86-64 only (System V gABI, chapter 4).

Everything read from the file is bounds-checked. What does not fit gives `StrobeError` (the file as a whole) or an empty section (a part of it).
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from actors.indexer.compressed import inflate
from strobe.errors import Code, StrobeError

PT_LOAD: Final = 1
PT_NOTE: Final = 4
PT_GNU_EH_FRAME: Final = 0x6474E550
SHT_NOTE: Final = 7
SHT_NOBITS: Final = 8
SHF_COMPRESSED: Final = 0x800
_EM_X86_64: Final = 62
_NT_GNU_BUILD_ID: Final = 3
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_MACHINES: Final = {3: "i386", 40: "arm", 183: "aarch64", 243: "riscv", 21: "ppc64", 22: "s390x", 8: "mips"}
_TABLE_MAX: Final = 65535 * 16  # sections or segments; far beyond any real file


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    entry_size: int


@dataclass(frozen=True, slots=True)
class Segment:
    type: int
    flags: int
    offset: int
    address: int
    file_size: int
    memory_size: int


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells one content of a path from another without reading it."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, path: str) -> FileStamp:
        try:
            facts = Path(path).stat()
        except OSError as error:
            raise StrobeError(Code.VALIDATION_ERROR, f"{path} cannot be read: {error.strerror}.", "Check the path and its permissions.", value=path) from error
        return cls(path, facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)


@dataclass(slots=True)
class ElfFile:
    """One mapped file. `data` is the whole file; `problems` tells what was unreadable and left out."""

    stamp: FileStamp
    data: mmap.mmap
    type: int
    sections: list[Section]
    segments: list[Segment]
    build_id: str | None
    problems: list[str] = field(default_factory=list)
    _cache: dict[str, bytes] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.stamp.path

    @classmethod
    def open(cls, path: str) -> ElfFile:
        """Errors: VALIDATION_ERROR when the file is missing, no ELF, 32-bit, of another machine, or cut short in its header."""
        stamp = FileStamp.of(path)
        data = _map(path)
        header = _header(path, data)
        problems: list[str] = []
        segments = _segments(data, header, problems)
        sections = _sections(data, header, problems)
        return cls(stamp, data, header[1], sections, segments, _build_id(data, sections, segments), problems)

    def section(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)

    def has(self, name: str) -> bool:
        section = self.section(name)
        return section is not None and section.type != SHT_NOBITS and section.size > 0

    def bytes_of(self, name: str) -> bytes:
        """A section's bytes, decompressed (SHF_COMPRESSED or the old `.zdebug_` form); b"" when there is none. Cached."""
        if name not in self._cache:
            self._cache[name] = self._read(name)
        return self._cache[name]

    def raw(self, section: Section) -> bytes:
        end = section.offset + section.size
        if section.type == SHT_NOBITS or end > len(self.data):
            return b""
        return self.data[section.offset : end]

    def _read(self, name: str) -> bytes:
        section = self.section(name)
        if section is None and name.startswith(".debug_"):
            section = self.section(".z" + name[1:])
        if section is None:
            return b""
        raw = self.raw(section)
        try:
            return inflate(raw, flagged=bool(section.flags & SHF_COMPRESSED))
        except ValueError as error:
            self.problems.append(f"{name}: {error}")
            return b""

    def file_offset(self, address: int) -> int | None:
        """File offset of a link-time address, or None where the file holds no bytes for it."""
        for segment in self.segments:
            if segment.type == PT_LOAD and segment.address <= address < segment.address + segment.file_size:
                offset = address - segment.address + segment.offset
                return offset if offset < len(self.data) else None
        return None

    def close(self) -> None:
        self._cache.clear()
        self.data.close()


def _map(path: str) -> mmap.mmap:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} cannot be opened: {error.strerror}.", "Check the path and its permissions.", value=path) from error
    try:
        return mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    except (ValueError, OSError) as error:
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} is not an ELF file (empty, or no regular file).", "Name a program or library.", value=path) from error
    finally:
        os.close(descriptor)


def _header(path: str, data: mmap.mmap) -> tuple[int, ...]:
    """The header's fields in file order (gABI, ELF Header), e_ident replaced by 0."""
    if data[:4] != b"\x7fELF":
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} is not an ELF file.", "Name the compiled program or library itself.", value=path)
    if len(data) < _HEADER.size:
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} is cut short inside its ELF header.", "Build or copy it again.", value=path)
    if data[4] != 2 or data[5] != 1:
        kind = "a 32-bit" if data[4] == 1 else "a big-endian or malformed"
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} is {kind} ELF file.", "Build it for 64-bit x86-64 (drop -m32).", value=path)
    header = _HEADER.unpack_from(data, 0)
    if header[2] != _EM_X86_64:
        machine = _MACHINES.get(header[2], f"machine {header[2]}")
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} is built for {machine}; only x86-64 is supported here yet.", "Build it for x86-64.", value=path)
    return (0, *header[1:])


def _segments(data: mmap.mmap, header: tuple[int, ...], problems: list[str]) -> list[Segment]:
    offset, size, count = header[5], header[9], header[10]
    if size != _SEGMENT.size or offset + size * count > len(data):
        if count:
            problems.append("program header table is outside the file")
        return []
    found = []
    for index in range(count):
        kind, flags, where, address, _, file_size, memory_size, _ = _SEGMENT.unpack_from(data, offset + index * size)
        found.append(Segment(kind, flags, where, address, file_size, memory_size))
    return found


def _sections(data: mmap.mmap, header: tuple[int, ...], problems: list[str]) -> list[Section]:
    offset, size, count, names_index = header[6], header[11], header[12], header[13]
    if offset == 0:
        return []
    if size != _SECTION.size or offset + size > len(data):
        problems.append("section header table is outside the file")
        return []
    first = _SECTION.unpack_from(data, offset)
    count = count or first[5]  # gABI: e_shnum 0 means the count is in sh_size of section 0
    names_index = first[6] if names_index == 0xFFFF else names_index
    if count > _TABLE_MAX or offset + size * count > len(data) or names_index >= count:
        problems.append("section header table is outside the file")
        return []
    rows = [_SECTION.unpack_from(data, offset + index * size) for index in range(count)]
    names_offset, names_size = rows[names_index][4], rows[names_index][5]
    names = data[names_offset : names_offset + names_size]
    found = []
    for name, kind, flags, address, where, length, link, _, _, entry_size in rows:
        text = names[name : names.find(b"\0", name)].decode("ascii", "replace") if name < len(names) else ""
        if kind != SHT_NOBITS and where + length > len(data):
            problems.append(f"section {text or '?'} ends outside the file")
        found.append(Section(text, kind, flags, address, where, length, link, entry_size))
    return found


def _build_id(data: mmap.mmap, sections: list[Section], segments: list[Segment]) -> str | None:
    spans = [(s.offset, s.size) for s in sections if s.type == SHT_NOTE] + [(p.offset, p.file_size) for p in segments if p.type == PT_NOTE]
    for offset, size in spans:
        end = min(offset + size, len(data))
        while offset + 12 <= end:
            name_size, value_size, kind = struct.unpack_from("<III", data, offset)
            value = offset + 12 + (name_size + 3 & ~3)
            if value + value_size > end:
                break
            if kind == _NT_GNU_BUILD_ID and data[offset + 12 : offset + 16] == b"GNU\0" and 2 <= value_size <= 64:
                return data[value : value + value_size].hex()
            offset = value + (value_size + 3 & ~3)
    return None
