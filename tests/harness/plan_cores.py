"""What a plan's entries hold of a call whose registers and memory gdb recorded (tests/targets/indexer/record_cores.py), and what they show."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from strobe.lanes.layout import PLAN_OP_BYTES, WALK_STEP_BYTES, PlanOp, WalkOp
from strobe.model.probe import Plan, Value
from strobe.model.type_nodes import TypeId
from strobe.values.bundle import Bundle
from strobe.values.memory import PAYLOAD_BASE, Image, Region
from strobe.values.reader import Limits, Reader
from strobe.values.registry import Formatters
from tests.harness.plan_values import Entered, enter_steps, exit_steps, fixed_payload
from tests.harness.walk_model_steps import perform
from tests.harness.walk_model_walk import Memory, Step, Walk

_PT_LOAD: Final = 1


class Core(Memory):
    """The memory in a core file, and what it leaves out of the program's own: bytes of PT_LOAD segments."""

    def __init__(self, path: Path, program: Path, bias: int) -> None:
        super().__init__(0, b"", b"")
        self._segments = [*_segments(path, 0), *_segments(program, bias)]

    def read(self, address: int, size: int) -> bytes:
        """As many of the bytes as there are; segments that touch are one."""
        found = b""
        while len(found) < size:
            here = address + len(found)
            start, data = next(((start, data) for start, data in self._segments if start <= here < start + len(data)), (0, b""))
            if not data:
                break
            found += data[here - start : here - start + size - len(found)]
        return found


def _segments(path: Path, bias: int) -> Iterator[tuple[int, bytes]]:
    raw = path.read_bytes()
    at, size, count = struct.unpack_from("<Q", raw, 32)[0], *struct.unpack_from("<HH", raw, 54)
    for index in range(count):
        kind, _, offset, address, _, stored, _, _ = struct.unpack_from("<IIQQQQQQ", raw, at + index * size)
        if kind == _PT_LOAD and stored:
            yield bias + address, raw[offset : offset + stored]


@dataclass(frozen=True, slots=True)
class Codes:
    """`Symbols` of a program at its addresses."""

    types: dict[int, TypeId]

    def function(self, address: int, /) -> str | None:
        return None

    def dynamic(self, address: int, /) -> TypeId | None:
        return self.types.get(address)


def shown(plan: Plan, bundle: Bundle, call: dict[str, Any], core: Core) -> dict[str, Any]:
    """Name → what the event shows, of the values that the plan can show whole; of the result only at the return."""
    leaving = call["at"] == "leave"
    vectors = [bytes.fromhex(one) for one in call["xmm"]]
    low = [int.from_bytes(one[:8], "little") for one in vectors]
    stack_at = call["registers"][6]
    integers = [*call["registers"][:6], call["rax"], call["rdx"]]
    state = Entered(integers, low, core.read(stack_at, 256), stack_at, vectors, [bytes.fromhex(one) for one in call["st"]])
    steps = exit_steps(plan) if leaving else enter_steps(plan)
    image = _image(plan, steps, state, core)
    codes = Codes({code.address + call["bias"]: code.type for code in bundle.codes})
    reader = Reader(bundle.table, image, Formatters.built_in(), Limits(depth=plan.depth), codes)
    values = [plan.result] if leaving and plan.result is not None else [] if leaving else plan.arguments
    return {value.name: _shown(value, reader, image) for value in values if value.type is not None and value.source == "payload"}


def _shown(value: Value, reader: Reader, image: Image) -> Any:
    assert value.type is not None
    at = PAYLOAD_BASE + value.offset
    if value.home == "payload":
        return reader.at(value.type, at)
    address = image.read(at, 8)
    assert isinstance(address, bytes)
    return reader.at(value.type, int.from_bytes(address, "little"))


def _image(plan: Plan, steps: list[tuple[PlanOp, int, int, int, int]], state: Entered, core: Core) -> Image:
    payload = fixed_payload(steps, state)
    walks = [(imm, dst) for op, _, _, dst, imm in steps if op == PlanOp.WALK]
    if not walks:
        return Image(payload)
    budget = next(imm for op, _, _, _, imm in steps if op == PlanOp.IMAGE)
    before = (len(enter_steps(plan)) + len(exit_steps(plan)) + 2) * PLAN_OP_BYTES
    section = plan.ops[before:]
    rows = (struct.unpack_from("<BBHIIIQQ", section, at) for at in range(0, len(section), WALK_STEP_BYTES))
    walk = Walk(core, [Step(WalkOp(op), *rest) for op, *rest in rows], budget, perform)
    walk.run(walks, payload)
    return Image(payload, [Region(region.address, region.data, region.state) for region in walk.regions])
