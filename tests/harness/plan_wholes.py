"""Values that are no numbers, of calls recorded by gdb (tests/targets/indexer/record_calls.py): their bytes as a plan has them, and as gdb has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from strobe.model.probe import Plan, Value
from strobe.model.type_nodes import Array, Complex, Float, Record, TypeId
from strobe.model.types import TypeTable
from tests.harness.plan_values import Entered, enter_steps, exit_steps, fixed_payload

Call = dict[str, Any]


def entered(call: Call) -> Entered:
    return Entered(call["registers"], call["xmm"], bytes.fromhex(call["stack"]), call["registers"][6], [bytes.fromhex(one) for one in call["vectors"]])


def left(call: Call) -> Entered:
    leave = call["leave"]
    vectors = [bytes.fromhex(one) for one in leave["vectors"]]
    low = [int.from_bytes(one[:8], "little") for one in vectors]
    return Entered([0] * 6 + [call["rax"], leave["rdx"]], low, b"", 0, vectors, [bytes.fromhex(one) for one in leave["st"]])


def arguments(plan: Plan, call: Call, table: TypeTable) -> Iterator[tuple[str, bytes, bytes]]:
    """(name, our bytes, gdb's) of those that both have; only bytes that count."""
    call_state = entered(call)
    payload = fixed_payload(enter_steps(plan), call_state)
    near = {address: call["pointed"][str(one)] for one, address in enumerate(call["registers"][:6])}
    for value in plan.arguments:
        theirs = call.get("bytes", {}).get(value.name)
        if value.type is None or value.scalar != "opaque" or theirs is None:
            continue
        size = min(table.size(value.type) or 0, len(bytes.fromhex(theirs)))
        ours = _bytes(value, payload, size, call_state, near)
        if ours is not None:
            bits = [(at, mask) for at, mask in sorted(meant(table, value.type).items()) if at < size]
            yield value.name, bytes(ours[at] & mask for at, mask in bits), bytes(bytes.fromhex(theirs)[at] & mask for at, mask in bits)


def result(plan: Plan, call: Call, table: TypeTable) -> list[tuple[int, bytes, bytes]]:
    """(offset in it, our bytes, gdb's) of the numbers in a result that is none itself."""
    value = plan.result
    if value is None or value.type is None or value.scalar != "opaque" or not call.get("parts"):
        return []
    state = left(call)
    payload = fixed_payload(exit_steps(plan), state)
    ours = _bytes(value, payload, min(table.size(value.type) or 0, 128), state, {call["rax"]: call["leave"]["pointed"]})
    assert ours is not None, f"{call['function']}: nothing where rax points"
    return [(offset, ours[offset : offset + len(raw) // 2], bytes.fromhex(raw)) for offset, raw in call["parts"]]


def meant(table: TypeTable, number: TypeId, at: int = 0) -> dict[int, int]:
    """The bits that count in a value, as masks by offset: padding may hold anything."""
    node = table.stripped(number)
    found: dict[int, int] = {}

    def add(more: dict[int, int]) -> None:
        for offset, mask in more.items():
            found[offset] = found.get(offset, 0) | mask

    if isinstance(node, Record):
        for member in node.members:
            if member.bit_size is None:
                add(meant(table, member.type, at + member.offset))
            else:
                bits = ((1 << member.bit_size) - 1) << member.bit_offset
                add(dict(enumerate(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), at + member.offset)))
        for base in node.bases:
            if base.offset is not None:
                add(meant(table, base.type, at + base.offset))
    elif isinstance(node, Array):
        size = table.size(node.element) or 0
        for offset in range(0, node.size or 0, size or 1):
            add(meant(table, node.element, at + offset))
    elif isinstance(node, Float | Complex) and node.format == "x87":
        add({at + one: 0xFF for one in range(node.size) if one % 16 < 10})
    else:
        add(dict.fromkeys(range(at, at + (table.size(number) or 0)), 0xFF))
    return found


def _bytes(value: Value, payload: bytes, size: int, call: Entered, near: dict[int, str | None]) -> bytes | None:
    held = payload[value.offset :]
    if value.home == "payload":
        return held[:size]
    address = int.from_bytes(held[:8], "little")
    raw = near.get(address)
    if raw is not None:
        return bytes.fromhex(raw)[:size]
    inside = address - call.stack_at
    return call.stack[inside : inside + size] if 0 <= inside <= len(call.stack) - size else None
