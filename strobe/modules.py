"""Which ELF files a target has mapped, and where (proc(5), /proc/PID/maps)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from strobe.errors import Code, StrobeError
from strobe.model.probe import Module, Place

PT_LOAD = 1
RECORDER = "strobe-recorder.so"  # Strobe's own code is nobody's to trace
SYSTEM_FOLDERS = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/")


@dataclass(frozen=True, slots=True)
class Mapped:
    """One file, mapped at one place: the same again has the same `key`, whatever was there in between."""

    module: Module
    file: str  # which file, in which version

    @property
    def key(self) -> tuple[str, int, str]:
        return self.module.path, self.module.start, self.file


@dataclass(slots=True)
class _Span:
    path: str
    start: int
    offset: int  # of its first mapping in the file
    last: int  # of its latest
    end: int
    file: str


def parse_mapped(text: str) -> list[Mapped]:
    """In address order, from the text of a maps file. Mappings of deleted or special files, and the recorder, are left out. A file that is mapped
    twice (dlmopen(3)) is there twice."""
    spans: list[_Span] = []
    current: dict[str, _Span] = {}
    for line in text.splitlines():
        parts = line.split(maxsplit=5)
        if len(parts) < 6 or not parts[5].startswith("/") or parts[5].endswith(" (deleted)"):
            continue
        path, offset = parts[5], int(parts[2], 16)
        start, end = (int(bound, 16) for bound in parts[0].split("-"))
        span = current.get(path)
        if span is None or offset < span.last:
            span = current[path] = _Span(path, start, offset, offset, end, f"{parts[3]} {parts[4]}")
            spans.append(span)
        span.last, span.end = offset, end
    found = []
    for span in spans:
        first = None if span.path.endswith(f"/{RECORDER}") else _first_load(span.path, span.offset)
        if first is not None:
            link_start, version = first
            module = Module(path=span.path, bias=span.start - link_start, start=span.start, end=span.end)
            found.append(Mapped(module, f"{span.file} {version}"))
    return found


def parse_maps(text: str) -> list[Module]:
    return [mapped.module for mapped in parse_mapped(text)]


def maps_text(pid: int) -> str:
    """Errors: PROCESS_EXITED."""
    try:
        return Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape")
    except (FileNotFoundError, ProcessLookupError):
        raise StrobeError(Code.PROCESS_EXITED, f"Process {pid} has ended.", "Launch it again.", value=pid) from None


def mapped_modules(pid: int) -> list[Module]:
    return parse_maps(maps_text(pid))


def placed(places: Iterable[Place], modules: Iterable[Module]) -> dict[int, Place]:
    """By runtime address."""
    biases: dict[str, list[int]] = {}
    for module in modules:
        biases.setdefault(module.path, []).append(module.bias)
    return {bias + place.offset: place for place in places for bias in biases.get(place.module, ())}


def is_own(path: str, program: str) -> bool:
    """The program itself and libraries that do not come from the system's folders."""
    return path == program or not path.startswith(SYSTEM_FOLDERS)


def module_at(modules: list[Module], address: int) -> Module | None:
    return next((module for module in modules if module.start <= address < module.end), None)


def _first_load(path: str, file_offset: int) -> tuple[int, str] | None:
    """Link-time address of the page that holds `file_offset`, by the program headers (System V gABI, Program Header), and what changes with the file's
    contents; None if no ELF64."""
    try:
        facts = Path(path).stat()
    except OSError:
        return None  # unlinked or unreadable since it was mapped: not a module anyone can look symbols up in
    version = f"{facts.st_size} {facts.st_mtime_ns}"
    page = _page_of(path, f"{facts.st_dev} {facts.st_ino} {version}", file_offset)
    return None if page is None else (page, version)


@lru_cache(maxsize=1024)
def _page_of(path: str, version: str, file_offset: int) -> int | None:
    del version  # tells one file of that path from another
    try:
        with Path(path).open("rb") as file:
            head = file.read(64)
            if head[:5] != b"\x7fELF\x02":
                return None
            table, entry_bytes, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
            file.seek(table)
            headers = file.read(entry_bytes * count)
    except OSError:
        return None
    for at in range(0, len(headers) - 55, entry_bytes):
        kind, _flags, offset, address, _physical, file_bytes = struct.unpack_from("<IIQQQQ", headers, at)
        if kind == PT_LOAD and offset & ~0xFFF <= file_offset < offset + file_bytes:
            page: int = (address & ~0xFFF) + (file_offset - (offset & ~0xFFF))
            return page
    return None
