"""`.eh_frame` of one file: which rules hold at an address (LSB 5.0 §10.6; DWARF 5 §6.4.2)."""

from __future__ import annotations

import bisect
import struct
from dataclasses import dataclass
from typing import Final

import numpy

from actors.indexer.elf import PT_GNU_EH_FRAME, ElfFile
from actors.indexer.leb import signed, unsigned

_OMIT: Final = 0xFF
_FORMATS: Final = {0x00: "<Q", 0x02: "<H", 0x03: "<I", 0x04: "<Q", 0x0A: "<h", 0x0B: "<i", 0x0C: "<q"}
_ENTRIES_MAX: Final = 5_000_000


class CfiError(Exception):
    """Frame information is malformed, or there is none for the address."""


@dataclass(frozen=True, slots=True)
class Cie:
    code_align: int
    data_align: int
    return_register: int
    pointer_encoding: int
    augmented: bool
    signal_frame: bool
    program: bytes


@dataclass(frozen=True, slots=True)
class Fde:
    cie: Cie
    start: int  # link-time address
    size: int
    program: bytes


class FrameTable:
    """Finds the FDE of an address: by the sorted table in `.eh_frame_hdr`, or by reading all of `.eh_frame` once."""

    def __init__(self, elf: ElfFile) -> None:
        self._elf = elf
        self._cies: dict[int, Cie] = {}
        self._starts: list[int] = []
        self._fdes: list[int] = []  # link-time addresses of the FDEs
        if not self._read_header():
            self._read_all()

    def find(self, address: int) -> Fde | None:
        """The FDE that covers `address` (link-time). Raises CfiError when it is malformed."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        fde = self._fde(self._fdes[index])
        return fde if fde is not None and fde.start <= address < fde.start + fde.size else None

    def _read_header(self) -> bool:
        """`.eh_frame_hdr` with the usual encodings: datarel sdata4 pairs."""
        segment = next((one for one in self._elf.segments if one.type == PT_GNU_EH_FRAME), None)
        offset = self._elf.file_offset(segment.address) if segment is not None else None
        data = self._elf.data
        if segment is None or offset is None or offset + 12 > len(data) or data[offset] != 1 or data[offset + 3] != 0x3B:
            return False
        pointer = {0x0B: 4, 0x03: 4, 0x0C: 8, 0x04: 8}.get(data[offset + 1] & 0x0F)
        if pointer is None or data[offset + 2] != 0x03:
            return False
        (count,) = struct.unpack_from("<I", data, offset + 4 + pointer)
        table = offset + 8 + pointer
        if count > _ENTRIES_MAX or table + 8 * count > len(data):
            return False
        pairs = numpy.frombuffer(data[table : table + 8 * count], dtype="<i4").reshape(-1, 2).astype(numpy.int64) + segment.address
        self._starts, self._fdes = pairs[:, 0].tolist(), pairs[:, 1].tolist()
        return bool(self._starts)

    def _read_all(self) -> None:
        section = self._elf.section(".eh_frame")
        if section is None or not self._elf.raw(section):
            return
        at, end = section.address, section.address + section.size
        found: list[tuple[int, int]] = []
        while at + 8 <= end and len(found) < _ENTRIES_MAX:
            offset = self._elf.file_offset(at)
            if offset is None:
                break
            length, link = struct.unpack_from("<II", self._elf.data, offset)
            if length in (0, 0xFFFFFFFF):
                break
            if link:
                try:
                    fde = self._fde(at)
                except CfiError:
                    fde = None
                if fde is not None:
                    found.append((fde.start, at))
            at += 4 + length
        found.sort()
        self._starts, self._fdes = [start for start, _ in found], [where for _, where in found]

    def _fde(self, at: int) -> Fde | None:
        try:
            data, offset, end = self._entry(at)
            (back,) = struct.unpack_from("<I", data, offset)
            if back == 0:
                return None
            cie = self._cie(at + 4 - back)
            start, next_at = self._pointer(data, offset + 4, cie.pointer_encoding, at + 8)
            size, next_at = self._pointer(data, next_at, cie.pointer_encoding & 0x0F, 0)
            if cie.augmented:
                length, next_at = unsigned(data, next_at)
                next_at += length
            return Fde(cie, start, size, data[next_at:end])
        except (struct.error, IndexError, ValueError) as error:
            raise CfiError(f"malformed FDE at {at:#x} in {self._elf.path}") from error

    def _entry(self, at: int) -> tuple[bytes, int, int]:
        """(bytes of the entry, position after its length, its end)."""
        offset = self._elf.file_offset(at)
        if offset is None:
            raise CfiError(f"frame entry at {at:#x} is outside {self._elf.path}")
        (length,) = struct.unpack_from("<I", self._elf.data, offset)
        if not 4 <= length <= 1 << 20:
            raise CfiError(f"frame entry at {at:#x} has length {length}")
        return self._elf.data[offset : offset + 4 + length], 4, 4 + length

    def _cie(self, at: int) -> Cie:
        known = self._cies.get(at)
        if known is not None:
            return known
        data, offset, end = self._entry(at)
        if data[offset : offset + 4] != b"\0\0\0\0":
            raise CfiError(f"no CIE at {at:#x}")
        version = data[offset + 4]
        mark = data.index(0, offset + 5)
        letters = data[offset + 5 : mark].decode("ascii", "replace")
        next_at = mark + 1 + (2 if version >= 4 else 0)  # address and segment sizes
        code_align, next_at = unsigned(data, next_at)
        data_align, next_at = signed(data, next_at)
        return_register, next_at = (data[next_at], next_at + 1) if version == 1 else unsigned(data, next_at)
        encoding, next_at = self._augmentation(data, next_at, letters)
        cie = Cie(code_align, data_align, return_register, encoding, letters.startswith("z"), "S" in letters, data[next_at:end])
        self._cies[at] = cie
        return cie

    def _augmentation(self, data: bytes, at: int, letters: str) -> tuple[int, int]:
        """(pointer encoding of the FDEs, position of the program)."""
        if not letters.startswith("z"):
            if letters:
                raise CfiError(f"augmentation {letters!r} is unknown")
            return 0, at
        length, at = unsigned(data, at)
        end, encoding = at + length, 0
        for letter in letters[1:]:
            if letter == "R":
                encoding, at = data[at], at + 1
            elif letter == "L":
                at += 1
            elif letter == "P":
                kind, at = data[at], at + 1
                _, at = self._pointer(data, at, kind & 0x0F, 0)
            elif letter not in "SB":
                break
        return encoding, end

    def _pointer(self, data: bytes, at: int, encoding: int, here: int) -> tuple[int, int]:
        """An encoded pointer (LSB §10.5.1). `here`: link-time address of the field, for pc-relative ones."""
        form = encoding & 0x0F
        if encoding == _OMIT:
            return 0, at
        if form == 0x01:
            value, at = unsigned(data, at)
        elif form == 0x09:
            value, at = signed(data, at)
        elif form in _FORMATS:
            (value,) = struct.unpack_from(_FORMATS[form], data, at)
            at += struct.calcsize(_FORMATS[form])
        else:
            raise CfiError(f"pointer encoding {encoding:#x} is unknown")
        relation = encoding & 0x70
        if relation == 0x10:
            value += here
        elif relation:
            raise CfiError(f"pointer encoding {encoding:#x} is not used on x86-64")
        return value & (1 << 64) - 1, at

