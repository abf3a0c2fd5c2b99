"""What lies at an address: a global by its symbol (ELF .symtab, .dynsym), a thread's stack, or the heap."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from actors.stuck_detector.sample import Thread
from strobe.model.probe import Module
from strobe.modules import module_at

SYMBOLS_MAX: Final = 400_000
FILE_MAX: Final = 256 << 20
_STACK_MAX: Final = 8 << 20
_SYMTAB, _DYNSYM, _OBJECT = 2, 11, 1


def name_of(address: int, modules: Sequence[Module], threads: Sequence[Thread], stacks: Mapping[int, bytes]) -> str:
    """`lock_a`, `table+0x10 (libdb.so)`, `on the stack of worker (4711)`, `0x… on the heap`."""
    module = module_at(list(modules), address)
    if module is None:  # .bss goes on in memory of no file, behind what is mapped of its own
        before = max((one for one in modules if one.end <= address), key=lambda one: one.end, default=None)
        if before is not None and (found := _object_at(before, address - before.bias)):
            return found
    else:
        found = _object_at(module, address - module.bias)
        return found or f"{Path(module.path).name}+{address - module.bias:#x}"
    for thread in threads:
        if thread.sp <= address < thread.sp + max(len(stacks.get(thread.tid, b"")), 4096):
            return f"{address:#x}, on the stack of {thread.name} ({thread.tid})"
    return f"{address:#x}"


def _object_at(module: Module, link_address: int) -> str:
    try:
        facts = Path(module.path).stat()
        starts, symbols = _objects(module.path, facts.st_mtime_ns, facts.st_size)
    except (OSError, struct.error, ValueError):
        return ""
    at = bisect_right(starts, link_address) - 1
    if at < 0:
        return ""
    size, name = symbols[at]
    offset = link_address - starts[at]
    return "" if offset >= max(size, 1) else name + (f"+{offset:#x}" if offset else "")


@lru_cache(maxsize=32)
def _objects(path: str, mtime_ns: int, size: int) -> tuple[list[int], list[tuple[int, str]]]:
    """Data symbols by address (System V gABI, Symbol Table)."""
    del mtime_ns
    if size > FILE_MAX:
        return [], []
    content = Path(path).read_bytes()
    table, entry_bytes, count = struct.unpack_from("<Q", content, 40)[0], *struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, table + number * entry_bytes) for number in range(count)]
    found: dict[int, tuple[int, str]] = {}
    for section in sections:
        if section[1] not in (_SYMTAB, _DYNSYM):
            continue
        offset, length, names = section[4], section[5], sections[section[6]][4]
        for at in range(offset, offset + min(length, 24 * SYMBOLS_MAX), 24):
            name, info, _other, index, value, bytes_ = struct.unpack_from("<IBBHQQ", content, at)
            if info & 15 == _OBJECT and index and bytes_:
                found.setdefault(value, (bytes_, content[names + name : content.index(b"\0", names + name)].decode(errors="replace")))
    ordered = sorted(found)
    return ordered, [found[start] for start in ordered]
