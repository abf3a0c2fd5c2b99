"""What the recorder would capture: a plan's steps applied to registers and stack, and the bytes decoded. Independent of the recorder."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strobe.lanes.layout import PLAN_OP_BYTES, WALK_STEP_BYTES, PlanOp
from strobe.model.probe import Plan, Value


@dataclass(frozen=True, slots=True)
class Entered:
    """Registers at a function's first instruction. `stack` begins with the return address, at `stack_at`; `vectors` are the whole xmm registers.
    At its return: integers 6 and 7 are rax and rdx, `x87` st(0) and st(1)."""

    integers: Sequence[int]  # rdi rsi rdx rcx r8 r9
    xmm: Sequence[int]  # low 8 bytes
    stack: bytes
    stack_at: int = 0
    vectors: Sequence[bytes] = ()
    x87: Sequence[bytes] = ()


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
        if len(lists) == 3:
            break
    steps = sum(map(len, lists)) + 2
    assert len(lists) == 3 and (len(plan.ops) - steps * PLAN_OP_BYTES) % WALK_STEP_BYTES == 0, "enter steps, END, exit steps, END, walk section"
    return lists[:2]


def captured(plan: Plan, call: Entered) -> dict[str, int | float]:
    """Name → number, for the arguments that the plan captures as numbers; the pointer itself for C strings."""
    payload = fixed_payload(enter_steps(plan), call)
    found = {}
    for value in plan.arguments:
        if value.source == "payload" and value.scalar != "opaque":
            found[value.name] = decode(value, payload[value.offset : value.offset + value.size])
    return found


def fixed_payload(steps: list[tuple[PlanOp, int, int, int, int]], call: Entered) -> bytes:
    """What an entry's moves put in its payload; nothing of images and texts."""
    payload = bytearray(512)
    for op, arg, size, dst, imm in steps:
        if op not in (PlanOp.IMAGE, PlanOp.WALK, PlanOp.WORD_XMM):
            payload[dst : dst + size] = _taken(op, arg, imm, call)[:size].ljust(size, b"\0")
    return bytes(payload)


def _taken(op: PlanOp, arg: int, imm: int, call: Entered) -> bytes:
    sources: dict[PlanOp, Callable[[], bytes]] = {
        PlanOp.GPR: lambda: call.integers[arg].to_bytes(8, "little"),
        PlanOp.CSTR: lambda: call.integers[arg].to_bytes(8, "little"),
        PlanOp.XMM: lambda: call.xmm[arg].to_bytes(8, "little"),
        PlanOp.STACK: lambda: call.stack[8 + imm : 16 + imm],
        PlanOp.STACK_CSTR: lambda: call.stack[8 + (imm >> 12) : 16 + (imm >> 12)],
        PlanOp.LEA: lambda: (call.stack_at + 8 + imm).to_bytes(8, "little"),
        PlanOp.VECTOR: lambda: call.vectors[arg],
        PlanOp.X87: lambda: call.x87[arg],
    }
    return sources[op]()


def decode(value: Value, raw: bytes) -> int | float:
    if value.scalar == "float":
        number: float = struct.unpack("<f" if value.size == 4 else "<d", raw)[0]
        return number
    return int.from_bytes(raw, "little", signed=value.scalar in ("int", "enum", "char"))
