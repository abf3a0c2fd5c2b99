"""One core dump, opened: its threads, its memory, what was mapped. What it does not hold of files is read from those, as long as they are the same."""

from __future__ import annotations

import bisect
import errno
import os
import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strobe.core.notes import MappedFile, Notes, Thread
from strobe.errors import Code, StrobeError
from strobe.preflight.elf import BrokenElf, Elf

ET_CORE: Final = 4
EM_X86_64: Final = 62
PT_LOAD: Final = 1
PT_NOTE: Final = 4
NT_GNU_BUILD_ID: Final = 3
AT_PHDR: Final = 3
SEGMENTS_MAX: Final = 1 << 20
NOTES_MAX: Final = 1 << 20
NOTES_BYTES_MAX: Final = 256 << 20  # of 20,000 threads with all their vector registers
PAGE: Final = 4096
PN_XNUM: Final = 0xFFFF
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
# As systemd-coredump and distributions' core_pattern programs leave them: first bytes, who made it, how it is undone
_COMPRESSED: Final = (
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -d"),
    (b"\x1f\x8b", "gzip", "gunzip -k"),
    (b"\xfd7zXZ\0", "xz", "xz -dk"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -d"),
    (b"BZh", "bzip2", "bunzip2 -k"),
)


@dataclass(frozen=True, slots=True)
class _Load:
    start: int
    end: int
    saved: int  # bytes of it that the dump holds
    offset: int
    flags: int


class _File:
    """An open file, by pread(2): a mapping would be a SIGBUS where somebody cuts the file off."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._descriptor).st_size

    def read(self, offset: int, size: int) -> bytes:
        """Less than `size` bytes where it ends. Raises OverflowError for an offset that no file has, OSError."""
        assert self._descriptor is not None, "it is closed"
        return os.pread(self._descriptor, max(0, min(size, self.size - offset)), offset)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@dataclass
class Core:
    """`changed`: files that are not what they were, or are gone, and why, in words."""

    path: Path
    content: _File
    notes: Notes = field(default_factory=Notes)
    loads: list[_Load] = field(default_factory=list)
    changed: dict[str, str] = field(default_factory=dict)
    _starts: list[int] = field(default_factory=list)
    _files: list[MappedFile] = field(default_factory=list)  # by start
    _notes_left: int = NOTES_MAX
    _note_bytes_left: int = NOTES_BYTES_MAX
    _open: dict[str, int] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> Core:
        """Errors: VALIDATION_ERROR when it is no core dump that can be read."""
        if path.exists() and not _is_regular(str(path)):  # opening a pipe would wait for its writer
            raise _refused(path, "it is no regular file")
        try:
            content = _File(path)
        except (OSError, ValueError) as error:
            raise _refused(path, f"it cannot be read ({getattr(error, 'strerror', None) or error})") from None
        core = cls(path, content)
        try:
            core._read()
        except (struct.error, ValueError, OverflowError, OSError) as error:
            content.close()
            raise _refused(path, f"it is broken or cut off ({error})") from None
        except BaseException:
            content.close()
            raise
        return core

    def close(self) -> None:
        self.content.close()
        for file in self._open.values():
            os.close(file)
        self._open.clear()

    @property
    def threads(self) -> list[Thread]:
        return self.notes.threads

    @property
    def pid(self) -> int:
        return self.notes.pid or self.threads[0].tid

    @property
    def signo(self) -> int:
        """The signal that it died of; 0: it was saved while it lived."""
        return self.threads[0].signo or self.notes.signo

    @property
    def program(self) -> str:
        """Path of the executable, as it was mapped."""
        headers = self.notes.auxiliary.get(AT_PHDR, 0)
        found = next((file.path for file in self.notes.files if file.start <= headers < file.end), None)
        return found or next((file.path for file in self.notes.files), self.notes.name)

    def check_files(self) -> None:
        """Compares build-ids: of each mapped ELF file as it was and as it is now. Fills `changed`."""
        seen: set[str] = set()
        for file in self.notes.files:
            if file.offset or file.path in seen or file.path in self.changed or not file.path.startswith("/"):
                continue
            seen.add(file.path)
            was = self._build_id(file.start)
            if not _is_regular(file.path):
                self.changed[file.path] = "there is no such file here"
                continue
            try:
                with Elf.open(Path(file.path)) as elf:
                    now = elf.build_id
            except BrokenElf:
                continue  # it is no ELF file: data
            except OSError as error:
                self.changed[file.path] = f"it cannot be read here ({error.strerror})"
                continue
            if was is not None and now is not None and was != now:
                self.changed[file.path] = f"it is another build now (build-id {now[:12]}, the core's is {was[:12]})"

    def read(self, address: int, size: int) -> bytes:
        """As many of the bytes as are known: none where nothing was saved and no file has them."""
        found = bytearray()
        while len(found) < size:
            piece = self._piece(address + len(found), size - len(found))
            if not piece:
                break
            found += piece
        return bytes(found)

    def stack(self, pointer: int, below: int, size: int) -> tuple[int, bytes]:
        """(address, memory from there on): from `below` bytes below the stack pointer, or, where a stack has overflowed, from where it begins."""
        base = max(0, pointer - below)
        found = self.read(base, size)
        for _ in range(2):  # the page of `base`, and that of the pointer
            if found:
                break
            base = (base | PAGE - 1) + 1
            found = self.read(base, size)
        return base, found

    def maps(self) -> str:
        """Like /proc/PID/maps (proc(5)), as far as a dump tells. Files that have changed are left out."""
        lines = []
        for load in self.loads:
            flags = "".join(letter if load.flags & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1))) + "p"
            file = self._file_at(load.start)
            path = file.path.replace("\n", "\\012") if file is not None and file.path not in self.changed else ""  # as the kernel shows it
            name = f" {path}" if path else ""
            offset = file.offset + load.start - file.start if file is not None else 0
            lines.append(f"{load.start:x}-{load.end:x} {flags} {offset:08x} 00:00 0{name}\n")
        return "".join(lines)

    def _read(self) -> None:
        ident, kind, machine, _, _, table, *_, entry_bytes, count, _, _, _ = _HEADER.unpack(self._header())
        if ident[:6] != b"\x7fELF\x02\x01" or kind != ET_CORE:
            raise _refused(self.path, "it is no core dump of a 64-bit program")
        if machine != EM_X86_64:
            raise _refused(self.path, "it is of another machine")
        if count == PN_XNUM:  # elf(5): then the first section header has the number
            count = struct.unpack("<I", self.content.read(_HEADER.unpack(self._header())[6] + 44, 4))[0]
        if entry_bytes < _SEGMENT.size:
            raise struct.error(f"program headers of {entry_bytes} bytes")
        for number in range(min(count, SEGMENTS_MAX)):
            segment, flags, offset, start, _, saved, size, _ = _SEGMENT.unpack(self.content.read(table + number * entry_bytes, _SEGMENT.size))
            if segment == PT_LOAD and size:
                held = max(0, min(saved, self.content.size - offset))
                self.loads.append(_Load(start, start + size, held, offset, flags))
            elif segment == PT_NOTE:
                self._take_notes(self.content.read(offset, min(saved, self._note_bytes_left)))
        self.loads.sort(key=lambda load: load.start)
        self._starts = [load.start for load in self.loads]
        self._files = sorted(self.notes.files, key=lambda file: file.start)
        if not self.threads:
            raise _refused(self.path, "it holds no thread")

    def _header(self) -> bytes:
        head = self.content.read(0, _HEADER.size)
        for magic, kind, undo in _COMPRESSED:
            if head.startswith(magic):
                raise _refused(self.path, f"it is compressed with {kind}", f"Decompress it first, as with `{undo}`, and give that file.")
        if not head:
            raise _refused(self.path, "it is empty")
        return head

    def _saved(self, offset: int, size: int) -> bytes:
        try:
            return self.content.read(offset, size)
        except (OSError, OverflowError):  # of a broken disk, or an offset that no file has
            return b""

    def _take_notes(self, content: bytes) -> None:
        """As many as there may be in all: what follows is left out."""
        self._note_bytes_left -= len(content)
        at = 0
        while at + 12 <= len(content) and self._notes_left:
            self._notes_left -= 1
            name_bytes, body_bytes, kind = struct.unpack_from("<III", content, at)
            name, body = at + 12, at + 12 + (name_bytes + 3 & ~3)
            self.notes.take(content[name : name + name_bytes].rstrip(b"\0"), kind, content[body : body + body_bytes])
            at = body + (body_bytes + 3 & ~3)

    def _piece(self, address: int, size: int) -> bytes:
        load = self._load_at(address)
        if load is None:
            return b""
        size = min(size, load.end - address)
        within = address - load.start
        if within < load.saved:
            size = min(size, load.saved - within)
            return self._saved(load.offset + within, size)
        return self._of_file(address, size)

    def _of_file(self, address: int, size: int) -> bytes:
        file = self._file_at(address)
        if file is None or file.path in self.changed:
            return b""
        if file.path not in self._open:
            try:
                if not _is_regular(file.path):
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                self._open[file.path] = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                self.changed[file.path] = f"it cannot be read here ({error.strerror})"
                return b""
        try:
            return os.pread(self._open[file.path], min(size, file.end - address), file.offset + address - file.start)
        except (OSError, OverflowError):  # an offset that no file has
            return b""

    def _file_at(self, address: int) -> MappedFile | None:
        index = bisect.bisect_right(self._files, address, key=lambda file: file.start) - 1
        return self._files[index] if index >= 0 and address < self._files[index].end else None

    def _load_at(self, address: int) -> _Load | None:
        index = bisect.bisect_right(self._starts, address) - 1
        return self.loads[index] if index >= 0 and address < self.loads[index].end else None

    def _build_id(self, start: int) -> str | None:
        """Of the ELF image that was mapped at `start`; None where its first page is not saved, or has none."""
        load = self._load_at(start)
        if load is None:
            return None
        within = start - load.start
        head = self._saved(load.offset + within, max(0, min(load.saved - within, PAGE)))
        if len(head) < 64 or head[:4] != b"\x7fELF":
            return None
        table, entry_bytes, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
        for number in range(count if entry_bytes >= _SEGMENT.size else 0):
            if table + (number + 1) * entry_bytes > len(head):
                return None
            kind, _, offset, _, _, size, _, _ = _SEGMENT.unpack_from(head, table + number * entry_bytes)
            found = _gnu_build_id(head[offset : offset + size]) if kind == PT_NOTE else None
            if found is not None:
                return found
        return None


def _is_regular(path: str) -> bool:
    """A dump may name anything: a pipe would be waited for."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 (a path that no Path can be made of is no file)
    except (OSError, ValueError):
        return False


def _gnu_build_id(content: bytes) -> str | None:
    at = 0
    while at + 12 <= len(content):
        name_bytes, body_bytes, kind = struct.unpack_from("<III", content, at)
        body = at + 12 + (name_bytes + 3 & ~3)
        if kind == NT_GNU_BUILD_ID and content[at + 12 : at + 16] == b"GNU\0":
            return content[body : body + body_bytes].hex()
        at = body + (body_bytes + 3 & ~3)
    return None


def _refused(path: Path, why: str, next_step: str = "Give a core file of a 64-bit program.") -> StrobeError:
    return StrobeError(Code.VALIDATION_ERROR, f"{path} cannot be opened as a core dump: {why}.", next_step, value=str(path))
