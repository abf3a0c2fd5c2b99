"""Hooks as the agent's prepare.c takes them, and its answer as writes and patches. Layout of `Item` and `Slab`: agent/frida/src/prepare.c."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from strobe.protocol.spawner import HookSpec, Internal, Patch, Slab, Write

JUMP_BYTES: Final = 5
ITEM: Final = np.dtype(
    [
        ("address", "<u8"), ("size", "<u4"), ("id", "<u4"), ("padded", "<u4"), ("plan_offset", "<u4"), ("plan_bytes", "<u4"), ("reason", "<u4"),
        ("window", "<u8"), ("detail", "<u8"), ("patch", "V8"), ("original", "V8"), ("thunk", "<u8"), ("entries", "V8"),
        ("window_bytes", "<u4"), ("source", "<u4"), ("hook", "<u8"), ("entry", "<u8"),
    ]
)  # fmt: skip
SLAB: Final = np.dtype([("address", "<u8"), ("offset", "<u4"), ("bytes", "<u4")])

# By prepare.c's numbers. {at} is the offset in the function that it found the obstacle at, {size} the function's bytes.
REASONS: Final = (
    "",
    "its code is {size} bytes long, a jump needs 5",
    "a branch at +{at} leads into its first bytes, which the jump would replace",
    "a branch at +{at} leads back to its first instruction, which would count as a call",
    "the instruction at +{at} is not one the disassembler knows",
    "an instruction in its first bytes refers to an address that is out of reach of the thunk",
    "it ends within its first 5 bytes, at +{at}",
    "a call at +{at} would return into the bytes that the jump replaces",
    "a system call or trap at +{at} lies in the bytes that the jump replaces",
    "a counted jump (jrcxz, loop) at +{at} lies in the bytes that the jump replaces, and cannot be moved",
    "the same code is hooked already (identical functions are one after linking)",
    "there is no free memory within reach of its code",
    "the recorder has no room for more hooks",
    "its first bytes are not those of its file: something else has patched it",
)
ALREADY: Final = 10
NO_HOOK: Final = 12
FOREIGN: Final = 13


@dataclass(frozen=True, slots=True)
class Wanted:
    """A hook of the user's (`hook`), or one of the recorder's own (`internal`).

    `source`: the function's bytes: in its file, for one that Frida itself may have patched for the length of its visit; always where it is prepared
    apart. `padded`: `size` reaches over the padding behind a function that is a return and nothing else.
    """

    address: int
    size: int
    hook: HookSpec | None = None
    internal: Internal | None = None
    source: bytes = b""
    padded: bool = False

    @property
    def words(self) -> tuple[int, int]:
        """Of its thunk: hook and entry; 0 where the recorder is yet to register it."""
        given = self.internal or self.hook
        return (given.hook, given.entry) if given is not None else (0, 0)


@dataclass(frozen=True, slots=True)
class Prepared:
    writes: list[Write]
    patches: list[tuple[Wanted, Patch]]
    refused: list[tuple[Wanted, int, str]]  # reason number and words


def pack(wanted: list[Wanted], slabs: Sequence[Slab] = ()) -> bytes:
    """Items, then their capture plans (each different plan once) and sources, then `slabs`. `wanted` is in address order."""
    extra = bytearray()
    places: dict[bytes, int] = {}
    sources = [0] * len(wanted)
    plans = [one.hook.plan if one.hook is not None else b"" for one in wanted]
    for n, one in enumerate(wanted):
        if one.source:
            sources[n] = 1 + len(extra)
            extra += one.source
    for plan in dict.fromkeys(plans):
        extra += bytes(-len(extra) % 8)
        places[plan] = len(extra)
        extra += plan
    items = np.zeros(len(wanted), ITEM)
    items["address"] = [one.address for one in wanted]
    items["size"] = [min(one.size, len(one.source) or 0xFFFFFFFF) for one in wanted]
    items["id"] = [one.hook.id if one.hook is not None else 0 for one in wanted]
    items["padded"] = [one.padded for one in wanted]
    items["hook"], items["entry"] = zip(*(one.words for one in wanted), strict=True) if wanted else ((), ())
    items["plan_offset"] = [places[plan] for plan in plans]
    items["plan_bytes"] = [len(plan) for plan in plans]
    items["source"] = sources
    extra += bytes(-len(extra) % 8)
    given = np.array([(slab.address, 0, slab.bytes) for slab in slabs], SLAB)
    return items.tobytes() + bytes(extra) + given.tobytes()


def unpack(wanted: list[Wanted], meta: dict[str, Any], block: bytes) -> Prepared:
    """The agent's answer to `pack(wanted)`. Only the 5 bytes of a jump are patched: what follows in a window is never run again."""
    items: NDArray[np.void] = np.frombuffer(block, ITEM, len(wanted))
    slabs = np.frombuffer(block, SLAB, meta["slabs"], meta["slabsOffset"])
    code = memoryview(block)[meta["codeOffset"] :]
    writes = [Write(address=int(slab["address"]), data=bytes(code[slab["offset"] : slab["offset"] + slab["bytes"]])) for slab in slabs if slab["bytes"]]
    patches: list[tuple[Wanted, Patch]] = []
    refused: list[tuple[Wanted, int, str]] = []
    columns = (items[name].tolist() for name in ("reason", "detail", "window", "patch", "original", "thunk", "entries"))
    for one, reason, detail, window, *code_of in zip(wanted, *columns, strict=True):
        if reason:
            refused.append((one, reason, REASONS[reason].format(at=detail, size=one.size)))
        else:
            patches.append((one, _patch(one, window, *code_of)))
    return Prepared(writes, patches, refused)


def _patch(one: Wanted, window: int, data: bytes, original: bytes, thunk: int, entries: bytes) -> Patch:
    id_ = one.hook.id if one.hook is not None else 0
    return Patch(hook=id_, address=window, data=data[:JUMP_BYTES], original=original[:JUMP_BYTES], thunk=thunk, entries=entries[:JUMP_BYTES])
