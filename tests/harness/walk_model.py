"""What a capture plan with walk programs copies, worked out from strobe/lanes/layout.py alone: a model to hold the recorder's copier against.

Slow and plain: regions are objects in a list, errands a queue. It knows only valid plans.
"""

from __future__ import annotations

import struct

from strobe.lanes.layout import PLAN_OP_BYTES, REGION_BYTES, WALK_STEP_BYTES, PlanOp, StringState, WalkOp
from tests.harness.walk_model_steps import perform
from tests.harness.walk_model_walk import Memory, Step, Walk

REGISTER = (0, 1, 2, 3, 4, 5, 6, 2)


def image(walk: Walk) -> bytes:
    made = b""
    for region in walk.regions:
        made += struct.pack("<QII", region.address, len(region.data), region.state) + region.data.ljust(region.room - REGION_BYTES, b"\0")
    return made


def captured(plan: bytes, registers: list[int], room: int, memory: Memory) -> tuple[bytes, bool] | None:
    """The payload of an enter list, and whether it was cut. None: it has other steps than GPR, CSTR, IMAGE and WALK."""
    steps = [struct.unpack_from("<BBBBi", plan, at) for at in range(0, len(plan) - PLAN_OP_BYTES + 1, PLAN_OP_BYTES)]
    ends = [at for at, step in enumerate(steps) if step[0] == PlanOp.END]
    section = plan[(ends[1] + 1) * PLAN_OP_BYTES :]
    programs = [Step(WalkOp(op), *rest) for op, *rest in (struct.unpack_from("<BBHIIIQQ", section, at) for at in range(0, len(section), WALK_STEP_BYTES))]
    enter = [(PlanOp(op), arg, size, dst, imm) for op, arg, size, dst, imm in steps[: ends[0]]]
    if not {op for op, *_ in enter} <= {PlanOp.GPR, PlanOp.CSTR, PlanOp.IMAGE, PlanOp.WALK}:
        return None
    sizes = {PlanOp.CSTR: 8, PlanOp.IMAGE: 8}
    fixed = max((dst + sizes.get(op, size) + 7) // 8 * 8 for op, _, size, dst, _ in enter if op != PlanOp.WALK)
    payload, tail, cut = bytearray(fixed), b"", False
    for op, arg, size, dst, imm in enter:
        word = registers[REGISTER[arg & 7]]
        if op == PlanOp.GPR:
            payload[dst : dst + size] = word.to_bytes(8, "little")[:size]
        elif op == PlanOp.CSTR:
            text, state = _string(memory, word, min(imm, room - fixed - len(tail)))
            payload[dst : dst + 8] = struct.pack("<HHBxxx", fixed + len(tail), len(text), state)
            tail += text
            cut |= state == StringState.TRUNCATED
    begin = (fixed + len(tail) + 7) // 8 * 8
    for op, _, _, dst, imm in enter:
        if op == PlanOp.IMAGE:
            walk = Walk(memory, programs, min(room // 8 * 8 - begin, imm // 8 * 8), perform)
            walk.run([(at, where) for one, _, _, where, at in enter if one == PlanOp.WALK], bytes(payload))
            made = image(walk)
            payload[dst : dst + 8] = struct.pack("<HHBxxx", begin, len(made), StringState.OK)
            tail = tail.ljust(begin - fixed, b"\0") + made if made else tail
            cut |= walk.stopped
    return bytes(payload) + tail, cut


def _string(memory: Memory, address: int, limit: int) -> tuple[bytes, StringState]:
    if not address:
        return b"", StringState.NULL
    data = memory.read(address, limit + 1)
    if b"\0" in data:
        return data[: data.index(b"\0")], StringState.OK
    if len(data) < limit:
        return data, StringState.UNREADABLE
    return data[:limit], StringState.TRUNCATED
