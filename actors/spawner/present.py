"""The recorder that an earlier session left in a process: found from outside, without entering it."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from actors.spawner.elf import STT_FUNC, STT_OBJECT, read_image
from actors.spawner.items import JUMP_BYTES
from actors.spawner.process import Mapping, TargetProcess, gone
from actors.spawner.sources import is_thunk_head
from actors.spawner.symbols import LOADING, find_internals
from strobe.preflight.elf import BrokenElf, Elf
from strobe.protocol.spawner import Internal, RecorderReply

DELETED: Final = " (deleted)"
_ELEMENT: Final = struct.Struct("<QQII")  # struct strobe_internal
_INTERNALS_MAX: Final = 256
_NAME_BYTES: Final = 64
_NAMES: Final = ("strobe_arm", "strobe_remote", "strobe_internals", "strobe_internals_count")


def find_recorder(pid: int, recorder: Path) -> RecorderReply:
    """`recorder`: the file of ours. Errors: PROCESS_EXITED."""
    mappings = TargetProcess(pid).mappings()
    mine = [one for one in mappings if Path(one.path.removesuffix(DELETED)).name == recorder.name]
    if not mine:
        return RecorderReply(state="none")
    pool = next((one for one in mappings if "/strobe-" in one.path and one.path.startswith("/dev/shm/")), None)
    path = mine[0].path
    if pool is None or path.endswith(DELETED) or _build_id(path) != _build_id(str(recorder)):
        return RecorderReply(state="other")
    return _describe(pid, mine[0], mappings, pool)


def _describe(pid: int, first: Mapping, mappings: Sequence[Mapping], pool: Mapping) -> RecorderReply:
    image = read_image(first.path, _NAMES, (STT_FUNC, STT_OBJECT))
    start = image.link_address(first.offset) if image else None
    at = {one.name: first.start - start + one.value for one in image.functions} if image and start is not None else {}
    if set(at) != set(_NAMES):
        return RecorderReply(state="other")
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise gone(pid) from None
    try:
        internals = _internals(memory, at)
        loading = [one for one in internals if one.symbol == LOADING]
        sees = any(_is_hooked(memory, one.address) for one in find_internals(loading, mappings, first.path))
    except OSError:  # its memory went with it
        raise gone(pid) from None
    finally:
        os.close(memory)
    last = max(one.end for one in mappings if one.path == first.path)
    return RecorderReply(
        state="ours",
        arm_address=at["strobe_arm"],
        remote_address=at["strobe_remote"],
        internals=internals,
        sees_loading=sees,
        start=first.start,
        end=last,
        pool_path=pool.path,
        pool_bytes=_reserved(pool, mappings),
    )


def _reserved(pool: Mapping, mappings: Sequence[Mapping]) -> int:
    """The pool's mapping, and what was kept free behind it when a smaller one took its place."""
    end = pool.end
    for one in mappings:
        if one.start == end and (one.path == pool.path or (not one.path and one.permissions.startswith("---"))):
            end = one.end
    return end - pool.start


def _internals(memory: int, at: dict[str, int]) -> list[Internal]:
    count = int.from_bytes(os.pread(memory, 4, at["strobe_internals_count"]), "little")
    table = os.pread(memory, _ELEMENT.size * min(count, _INTERNALS_MAX), at["strobe_internals"])
    found = []
    for number, (name, entry, everywhere, _) in enumerate(_ELEMENT.iter_unpack(table)):
        symbol = os.pread(memory, _NAME_BYTES, name).split(b"\0")[0].decode()
        found.append(Internal(symbol=symbol, every_module=bool(everywhere), hook=at["strobe_internals"] + number * _ELEMENT.size, entry=entry))
    return found


def _is_hooked(memory: int, address: int) -> bool:
    """Whether a jump to a thunk of the recorder's stands at a function's beginning, which may be an endbr64."""
    for start in (address, address + 4):
        code = os.pread(memory, JUMP_BYTES, start)
        if code[:1] == b"\xe9":
            return is_thunk_head(os.pread(memory, 18, start + JUMP_BYTES + int.from_bytes(code[1:], "little", signed=True)))
    return False


def _build_id(path: str) -> str | None:
    try:
        with Elf.open(Path(path)) as elf:
            return elf.build_id
    except (OSError, BrokenElf):
        return None
