"""The plan for a function of unknown types: the six integer argument registers as they are, and rax."""

from __future__ import annotations

import struct
from typing import Final

from strobe.lanes.layout import PLAN_OP_BYTES, PlanOp
from strobe.model.probe import Plan, Value

REGISTERS: Final = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_OP: Final = struct.Struct("<BBBBi")
assert _OP.size == PLAN_OP_BYTES


def pack(op: PlanOp, arg: int = 0, size: int = 0, dst: int = 0, imm: int = 0) -> bytes:
    """One step. `dst` is one byte: payload offsets end at 255."""
    return _OP.pack(op, arg, size, dst, imm)


END: Final = pack(PlanOp.END)


def raw_plan() -> Plan:
    steps = b"".join(pack(PlanOp.GPR, index, 8, 8 * index) for index in range(len(REGISTERS)))
    values = [Value(name=name, type_name="register", scalar="pointer", size=8, source="payload", offset=8 * index) for index, name in enumerate(REGISTERS)]
    return Plan(ops=steps + END + END, typed=False, arguments=values, result=None)
