"""What the recorder would capture: a plan's steps applied to registers and stack, and the bytes decoded. Independent of the recorder."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strobe.lanes.layout import PLAN_OP_BYTES, PlanOp
from strobe.model.probe import Plan, Value


@dataclass(frozen=True, slots=True)
class Entered:
    """Registers at a function's first instruction. `stack` begins with the return address."""

    integers: Sequence[int]  # rdi rsi rdx rcx r8 r9
    xmm: Sequence[int]  # low 8 bytes
    stack: bytes


def enter_steps(plan: Plan) -> list[tuple[PlanOp, int, int, int, int]]:
    return _steps(plan)[0]


def exit_steps(plan: Plan) -> list[tuple[PlanOp, int, int, int, int]]:
    return _steps(plan)[1]


def _steps(plan: Plan) -> list[list[tuple[PlanOp, int, int, int, int]]]:
    lists: list[list[tuple[PlanOp, int, int, int, int]]] = [[]]
    assert len(plan.ops) % PLAN_OP_BYTES == 0
    for op, arg, size, dst, imm in struct.iter_unpack("<BBBBi", plan.ops):
        if op == PlanOp.END:
            lists.append([])
        else:
            lists[-1].append((PlanOp(op), arg, size, dst, imm))
    assert len(lists) == 3 and not lists[2], "enter steps, END, exit steps, END"
    return lists[:2]


def captured(plan: Plan, call: Entered) -> dict[str, int | float]:
    """Name → number, for the arguments that the plan captures; the pointer itself for C strings."""
    payload = bytearray(512)
    for op, arg, size, dst, imm in enter_steps(plan):
        payload[dst : dst + size] = _taken(op, arg, imm, call)[:size]
    found = {}
    for value in plan.arguments:
        if value.source == "payload":
            found[value.name] = decode(value, bytes(payload[value.offset : value.offset + value.size]))
    return found


def _taken(op: PlanOp, arg: int, imm: int, call: Entered) -> bytes:
    sources: dict[PlanOp, Callable[[], bytes]] = {
        PlanOp.GPR: lambda: call.integers[arg].to_bytes(8, "little"),
        PlanOp.CSTR: lambda: call.integers[arg].to_bytes(8, "little"),
        PlanOp.XMM: lambda: call.xmm[arg].to_bytes(8, "little"),
        PlanOp.STACK: lambda: call.stack[8 + imm : 16 + imm],
        PlanOp.STACK_CSTR: lambda: call.stack[8 + (imm >> 12) : 16 + (imm >> 12)],
    }
    return sources[op]()


def decode(value: Value, raw: bytes) -> int | float:
    if value.scalar == "float":
        number: float = struct.unpack("<f" if value.size == 4 else "<d", raw)[0]
        return number
    return int.from_bytes(raw, "little", signed=value.scalar in ("int", "enum", "char"))
