"""Which ELF files a target has mapped, and where (proc(5), /proc/PID/maps)."""

from __future__ import annotations

import struct
from pathlib import Path

from strobe.model.probe import Module

PT_LOAD = 1
RECORDER = "strobe-recorder.so"  # Strobe's own code is nobody's to trace
SYSTEM_FOLDERS = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/")


def parse_maps(text: str) -> list[Module]:
    """Modules in address order, from the text of a maps file. Mappings of deleted or special files, and the recorder, are left out."""
    spans: dict[str, tuple[int, int, int]] = {}  # path → start of its first mapping, that mapping's file offset, end of its last
    for line in text.splitlines():
        parts = line.split(maxsplit=5)
        if len(parts) < 6 or not parts[5].startswith("/") or parts[5].endswith(" (deleted)"):
            continue
        start, end = (int(bound, 16) for bound in parts[0].split("-"))
        first = spans.get(parts[5], (start, int(parts[2], 16), end))
        spans[parts[5]] = (first[0], first[1], end)
    modules = []
    for path, (start, file_offset, end) in spans.items():
        link_start = _first_load(path, file_offset)
        if link_start is not None and not path.endswith(f"/{RECORDER}"):
            modules.append(Module(path=path, bias=start - link_start, start=start, end=end))
    return modules


def mapped_modules(pid: int) -> list[Module]:
    return parse_maps(Path(f"/proc/{pid}/maps").read_text())


def is_own(path: str, program: str) -> bool:
    """The program itself and libraries that do not come from the system's folders."""
    return path == program or not path.startswith(SYSTEM_FOLDERS)


def module_at(modules: list[Module], address: int) -> Module | None:
    return next((module for module in modules if module.start <= address < module.end), None)


def _first_load(path: str, file_offset: int) -> int | None:
    """Link-time address of the page that holds `file_offset`, by the program headers (System V gABI, Program Header); None if no ELF64."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(64)
            if head[:5] != b"\x7fELF\x02":
                return None
            table, entry_bytes, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
            file.seek(table)
            headers = file.read(entry_bytes * count)
    except OSError:
        return None  # unlinked or unreadable since it was mapped: not a module anyone can look symbols up in
    for at in range(0, len(headers) - 55, entry_bytes):
        kind, _flags, offset, address, _physical, file_bytes = struct.unpack_from("<IIQQQQ", headers, at)
        if kind == PT_LOAD and offset & ~0xFFF <= file_offset < offset + file_bytes:
            page: int = (address & ~0xFFF) + (file_offset - (offset & ~0xFFF))
            return page
    return None
