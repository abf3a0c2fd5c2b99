"""Where a thread's own copy of a thread-local variable is (Drepper, "ELF Handling For Thread-Local Storage", variant II on x86-64).

The program's own block ends at the thread pointer. A library's is found as debuggers find it: through the loader's list of modules and the thread's
table of blocks, whose layout libc tells in its `_thread_db_` symbols (glibc's nptl_db). Thread pointers are taken in one short stop and kept.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from actors.session.memory.live import LiveMemory
from actors.session.ptrace.threads import thread_ids
from actors.session.ptrace.world import NotStopped, StoppedWorld
from strobe.expression import Unavailable
from strobe.model.probe import Module
from strobe.ptrace import run_as_tracer
from strobe.values.memory import Missing

PT_DYNAMIC: Final = 2
PT_PHDR: Final = 6
PT_TLS: Final = 7
DT_DEBUG: Final = 21
AT_PHDR: Final = 3
AT_PHNUM: Final = 5
_MODULES_MAX: Final = 4096
_DYNAMIC_MAX: Final = 512
_UNALLOCATED: Final = (1 << 64) - 1
_NO_STATIC_OFFSETS: Final = (0, _UNALLOCATED, _UNALLOCATED - 1)
# Each is three 32-bit numbers: bits of the field, how many, its offset.
DESCRIPTORS: Final = ("_thread_db_link_map_l_tls_modid", "_thread_db_link_map_l_tls_offset", "_thread_db_pthread_dtvp", "_thread_db_dtv_t_pointer_val")


@dataclass(frozen=True, slots=True)
class Segment:
    type: int
    address: int
    memory_size: int
    alignment: int


def program_headers(raw: bytes) -> list[Segment]:
    """Of ELF64 (System V gABI, Program Header)."""
    found = []
    for at in range(0, len(raw) - 55, 56):
        kind, _flags, _offset, address, _physical, _file, memory, alignment = struct.unpack_from("<IIQQQQQQ", raw, at)
        found.append(Segment(kind, address, memory, alignment))
    return found


def static_offset(tls: Segment) -> int:
    """How far below the thread pointer the program's own block begins."""
    alignment = max(1, tls.alignment)
    return tls.memory_size + (-tls.memory_size - tls.address) % alignment


class ThreadLocals:
    """Of one process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pointers: dict[int, int] = {}  # of threads, by id
        self._image = b""

    def renewed(self) -> None:
        """Nothing is left of what was known before an exec."""
        try:
            image = Path(f"/proc/{self.pid}/auxv").read_bytes()  # has addresses that are another each time
        except (FileNotFoundError, ProcessLookupError):
            return
        if image != self._image:
            self._image = image
            self._pointers = {}

    def forget_ended(self) -> None:
        """Ids come again."""
        alive = set(thread_ids(self.pid))
        self._pointers = {tid: pointer for tid, pointer in self._pointers.items() if tid in alive}

    def pointer(self, tid: int) -> int | Unavailable:
        """Blocks, for the milliseconds of a stop, where it is not known yet."""
        self.forget_ended()
        if tid not in self._pointers:
            if tid not in thread_ids(self.pid):
                return Unavailable(f"there is no thread {tid} in process {self.pid}")
            try:
                self._pointers |= run_as_tracer(self._all_pointers)
            except (NotStopped, ProcessLookupError) as error:
                return Unavailable(f"its threads could not be looked at: {error}")
        found = self._pointers.get(tid)
        return Unavailable(f"thread {tid} has ended") if found is None else found

    def address(self, memory: LiveMemory, module: Module, is_program: bool, offset: int, tid: int, layout: Mapping[str, int]) -> int | Unavailable:
        """Of what is `offset` bytes into the module's block. `layout`: addresses of DESCRIPTORS in the process, where it has them."""
        pointer = self.pointer(tid)
        if isinstance(pointer, Unavailable):
            return pointer
        if is_program:
            tls = _tls_of_file(module.path)
            return Unavailable(f"{module.path} has no thread-local block") if tls is None else pointer - static_offset(tls) + offset
        block = _block(memory, module, pointer, layout, tid)
        return block if isinstance(block, Unavailable) else block + offset

    def _all_pointers(self) -> dict[int, int]:
        with StoppedWorld(self.pid) as world:
            return {tid: tracee.registers.fs_base for tid, tracee in world.tracees.items()}


def _tls_of_file(path: str) -> Segment | None:
    try:
        with Path(path).open("rb") as file:
            head = file.read(64)
            if head[:5] != b"\x7fELF\x02":
                return None
            (table,), (entry_bytes, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
            file.seek(table)
            headers = program_headers(file.read(entry_bytes * count))
    except OSError:
        return None
    return next((one for one in headers if one.type == PT_TLS), None)


def _block(memory: LiveMemory, module: Module, pointer: int, layout: Mapping[str, int], tid: int) -> int | Unavailable:
    fields = _fields(memory, layout)
    if fields is None:
        return Unavailable("where the thread-local variables of libraries are can only be told in programs that use glibc")
    entry = _link_map(memory, module.bias)
    if entry is None:
        return Unavailable(f"the loader does not list {module.path}")
    number, offset = _word(memory, entry + fields["modid"]), _word(memory, entry + fields["offset"])
    table = _word(memory, pointer + fields["dtvp"])
    if number is None or offset is None or table is None or number == 0:
        return Unavailable(f"{module.path} has no thread-local block")
    capacity = _word(memory, table - 16) or 0
    block = _word(memory, table + 16 * number + fields["value"]) if number <= capacity else _UNALLOCATED
    if block not in (None, 0, _UNALLOCATED):
        return block if block is not None else 0
    if offset not in _NO_STATIC_OFFSETS:
        return pointer - offset
    return Unavailable(f"thread {tid} has not used the thread-local variables of {module.path} yet, so it has no copy of them")


def _fields(memory: LiveMemory, layout: Mapping[str, int]) -> dict[str, int] | None:
    """Offsets in link_map, in the thread's descriptor, and in an entry of its table."""
    if any(name not in layout for name in DESCRIPTORS):
        return None
    found: dict[str, int] = {}
    for key, name in zip(("modid", "offset", "dtvp", "value"), DESCRIPTORS, strict=True):
        raw = memory.read(layout[name], 12)
        if isinstance(raw, Missing):
            return None
        found[key] = int.from_bytes(raw[8:], "little")
    return found


def _link_map(memory: LiveMemory, bias: int) -> int | None:
    """The loader's entry of the module at that bias, found from the program's headers on (r_debug and link_map of <link.h>)."""
    debug = _debug_address(memory)
    entry = None if debug is None else _word(memory, debug + 8)
    for _ in range(_MODULES_MAX):
        if not entry:
            return None
        if _word(memory, entry) == bias:
            return entry
        entry = _word(memory, entry + 24)
    return None


def _debug_address(memory: LiveMemory) -> int | None:
    auxiliary = dict(struct.iter_unpack("<QQ", Path(f"/proc/{memory.pid}/auxv").read_bytes()))
    start, count = auxiliary.get(AT_PHDR), auxiliary.get(AT_PHNUM)
    raw = memory.read(start, 56 * count) if start and count else None
    if raw is None or isinstance(raw, Missing) or start is None:
        return None
    headers = program_headers(raw)
    bias = next((start - one.address for one in headers if one.type == PT_PHDR), 0)
    dynamic = next((one.address + bias for one in headers if one.type == PT_DYNAMIC), None)
    for index in range(_DYNAMIC_MAX) if dynamic is not None else ():
        pair = memory.read((dynamic or 0) + 16 * index, 16)
        if isinstance(pair, Missing):
            return None
        tag, value = struct.unpack("<QQ", pair)
        if tag == DT_DEBUG:
            return int(value) or None
        if tag == 0:
            return None
    return None


def _word(memory: LiveMemory, address: int) -> int | None:
    raw = memory.read(address, 8)
    return None if isinstance(raw, Missing) else int.from_bytes(raw, "little")
