"""debug_memory's write: one value of a basic type, where that can be right; the reason where it cannot."""

from __future__ import annotations

from typing import Any

from actors.session.memory.live import LiveMemory
from actors.session.memory.looking import Look
from actors.session.memory.mappings import Mappings
from actors.session.memory.request import BYTES_MAX, Wanted
from actors.session.memory.showing import Result, Shower, failure, share
from strobe.errors import Code, StrobeError
from strobe.expression import Scalar, Unavailable
from strobe.model.type_nodes import VOID, Array, Qualified, Typedef, TypeId
from strobe.values.encoding import encoded, encoded_bytes
from strobe.values.typed import TypedValue
from strobe.values.typed_world import World

_PREVIEW = 32


def write_all(look: Look, pool: str, tokens: int) -> list[Result]:
    """In their order; what fails leaves the others as they are."""
    shower = look.shower()
    each = share(tokens, 2 * len(look.request.wanted))
    return [_write_one(look, shower, wanted, pool, each) for wanted in look.request.wanted]


def _write_one(look: Look, shower: Shower, wanted: Wanted, pool: str, tokens: int) -> Result:
    outcome = look.outcome(wanted)
    if isinstance(outcome, Unavailable):
        return failure(wanted.label, outcome.reason, wanted.next_step)
    if isinstance(outcome, Scalar) or not isinstance(outcome, TypedValue):
        return failure(wanted.label, "it is calculated, not a place in memory", "Write the variable that it is calculated from.")
    if outcome.at is None:
        return failure(wanted.label, "its value is built into the code: no memory holds it", "Change the source, or write what is read from memory.")
    if wanted.target.type in ("bytes", "string") or (wanted.target.address is not None and wanted.target.type is None):
        return _write_raw(look, wanted, outcome, pool)
    if outcome.type == VOID:
        return failure(wanted.label, f"debug info says nothing of the type of `{wanted.label}`. Give `type`")
    return _write_typed(look, shower, wanted, outcome, pool, tokens)


def _write_typed(look: Look, shower: Shower, wanted: Wanted, value: TypedValue, pool: str, tokens: int) -> Result:
    inner = value.inner()
    place = inner if isinstance(inner, TypedValue) and inner.at is not None else value
    data = encoded(value.world, place.type, wanted.target.value, place.bits)
    if isinstance(data, Unavailable):
        return failure(wanted.label, data.reason)
    assert place.at is not None
    notes = ["Declared const: code that was compiled with the old value keeps it"] if _is_const(value.world, value.type) else []
    previous, _ = shower.fitted(value, tokens)
    if place.bits is not None:
        notes.append("A bitfield: the bytes around it were read and written back, which is not atomic")
    problem = _put(look.memory, place, data, pool)
    if problem is not None:
        return failure(wanted.label, problem)
    look.again()
    new, _ = shower.fitted(value, tokens)
    result: Result = {"target": wanted.label, "type": value.type_name, "address": f"{value.at:#x}", "previousValue": previous, "newValue": new}
    return result | ({"note": "; ".join(notes)} if notes else {})


def _put(memory: LiveMemory, place: TypedValue, data: bytes, pool: str) -> str | None:
    """Why it could not be written."""
    assert place.at is not None
    if place.bits is None:
        return _put_bytes(memory, place.at, data, pool)
    size, offset = place.bits
    memory.forget()
    whole = place.world.read(place.at, (size + offset + 7) // 8)
    if isinstance(whole, Unavailable):
        return whole.reason
    mask = ((1 << size) - 1) << offset
    number = int.from_bytes(whole, "little") & ~mask | (int.from_bytes(data, "little") << offset) & mask
    return _put_bytes(memory, place.at, number.to_bytes(len(whole), "little"), pool)


def _put_bytes(memory: LiveMemory, address: int, data: bytes, pool: str) -> str | None:
    try:
        refusal = Mappings.of(memory.pid).refusal(address, len(data), pool)
    except (FileNotFoundError, ProcessLookupError):
        raise StrobeError(Code.PROCESS_EXITED, f"Process {memory.pid} has ended.", "Launch it again.", value=memory.pid) from None
    if refusal is not None:
        return refusal
    try:
        memory.write(address, data)
    except OSError as error:
        return f"the kernel refused to write at {address:#x}: {error.strerror}"
    return None


def _write_raw(look: Look, wanted: Wanted, value: TypedValue, pool: str) -> Result:
    """Bytes, or a text and the 0 behind it, at the address."""
    given: Any = wanted.target.value
    kind = wanted.target.type or "bytes"
    node = value.world.table.stripped(value.type)
    room = wanted.target.size or (value.size() if wanted.target.variable is not None and (kind == "string" or value.type != VOID) else None)
    if kind == "bytes":
        data = encoded_bytes(given, wanted.target.size)
        if not isinstance(data, Unavailable) and room is not None and len(data) > room:
            data = Unavailable(f"{len(data):,} bytes are out of range: `{wanted.label}` has {room:,}")
    else:
        data = _text_bytes(given, room if wanted.target.size or isinstance(node, Array) else None)
    if isinstance(data, Unavailable):
        return failure(wanted.label, data.reason)
    assert value.at is not None
    if len(data) > BYTES_MAX:
        return failure(wanted.label, f"{len(data):,} bytes are out of range: at most {BYTES_MAX:,}", "Write them in parts.")
    before = look.memory.prefix(value.at, len(data))
    problem = _put_bytes(look.memory, value.at, data, pool)
    if problem is not None:
        return failure(wanted.label, problem)
    after = look.memory.prefix(value.at, len(data))
    result: Result = {"target": wanted.label, "type": kind, "address": f"{value.at:#x}", "size": len(data)}
    return result | {"previousValue": _said(before, kind), "newValue": _said(after, kind)}


def _text_bytes(given: Any, room: int | None) -> bytes | Unavailable:
    if not isinstance(given, str):
        return Unavailable(f"a string is written as a text, not {given!r:.60}")
    if room is None:
        return Unavailable("how much room there is for the text is not known: give `size`, or write a char array")
    data = given.encode("utf-8", "surrogatepass") + b"\0"
    return Unavailable(f"the text takes {len(data):,} bytes with its 0, and there is room for {room:,}") if len(data) > room else data


def _said(data: bytes, kind: str) -> str:
    if kind == "string":
        return data.partition(b"\0")[0].decode("utf-8", "replace")
    return data[:_PREVIEW].hex() + ("…" if len(data) > _PREVIEW else "")


def _is_const(world: World, number: TypeId) -> bool:
    node = world.table[number]
    while isinstance(node, Typedef | Qualified):
        if isinstance(node, Qualified) and node.qualifier == "const":
            return True
        node = world.table[node.target]
    return False
