"""The plan for a function of unknown types: the six integer argument registers as they are, and rax."""

from __future__ import annotations

from typing import Final

from actors.indexer.payload import END, pack
from strobe.lanes.layout import PlanOp
from strobe.model.probe import Plan, Value

REGISTERS: Final = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")


def raw_plan() -> Plan:
    steps = b"".join(pack(PlanOp.GPR, index, 8, 8 * index) for index in range(len(REGISTERS)))
    values = [Value(name=name, type_name="register", scalar="pointer", size=8, source="payload", offset=8 * index) for index, name in enumerate(REGISTERS)]
    return Plan(ops=steps + END + END, typed=False, arguments=values, result=None)
