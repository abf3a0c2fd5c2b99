"""Capture plans taken apart and put together: what watches add to the plan of a function."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from strobe.lanes.layout import PLAN_OP_BYTES, WALK_NOTHING, WALK_STEP_BYTES, PlanOp
from strobe.model.probe import Plan

_STEP: Final = struct.Struct("<BBBBi")
_WALK: Final = struct.Struct("<BBHIIIQQ")
_FIXED_MAX: Final = 248  # payload offsets are one byte; the image's descriptor takes 8
WATCH_BUDGET: Final = 1024  # bytes of image, where the plan has none of its own
assert _STEP.size == PLAN_OP_BYTES and _WALK.size == WALK_STEP_BYTES


@dataclass(frozen=True, slots=True)
class PlanStep:
    op: int
    arg: int
    size: int
    dst: int
    imm: int

    @property
    def end(self) -> int:
        """Where its bytes in the fixed payload end."""
        if self.op in (PlanOp.CSTR, PlanOp.STACK_CSTR, PlanOp.LEA, PlanOp.IMAGE):
            return self.dst + 8
        if self.op == PlanOp.VECTOR and self.size == 32:
            return self.dst + 32
        if self.op in (PlanOp.VECTOR, PlanOp.X87):
            return self.dst + 16
        return self.dst + self.size if self.op in (PlanOp.GPR, PlanOp.XMM, PlanOp.STACK) else 0


@dataclass(frozen=True, slots=True)
class Extra:
    """A program of the added section, to be run on the payload from `dst` on. `entry_only`: what it begins at is not there on exit."""

    program: int
    dst: int = 0
    entry_only: bool = False


def with_walks(plan: Plan, section: bytes, extras: Sequence[Extra]) -> Plan | None:
    """The plan that runs these too, before its own walks. None: its payload has no room for an image."""
    enter, leave, own = split(plan.ops)
    shift = len(own) // WALK_STEP_BYTES
    entered = _with(enter, [_walk(extra, shift) for extra in extras])
    left = _with(leave, [_walk(extra, shift) for extra in extras if not extra.entry_only])
    if entered is None or left is None:
        return None
    ops = _packed(entered) + _packed(left) + own + shifted(section, shift)
    return plan.model_copy(update={"ops": ops, "image": _image_of(entered), "exit_image": _image_of(left)})


def split(ops: bytes) -> tuple[list[PlanStep], list[PlanStep], bytes]:
    """(enter steps, exit steps, walk section). Raises ValueError on what is no plan."""
    lists: list[list[PlanStep]] = [[], []]
    at = 0
    for steps in lists:
        while True:
            if at + PLAN_OP_BYTES > len(ops):
                raise ValueError("a plan without its END")
            step = PlanStep(*_STEP.unpack_from(ops, at))
            at += PLAN_OP_BYTES
            if step.op == PlanOp.END:
                break
            steps.append(step)
    return lists[0], lists[1], ops[at:]


def shifted(section: bytes, by: int) -> bytes:
    """The section as it is behind `by` other steps."""
    steps = []
    for op, flags, limit, offset, size, target, a, b in _WALK.iter_unpack(section):
        steps.append(_WALK.pack(op, flags, limit, offset, size, target if target == WALK_NOTHING else target + by, a, b))
    return b"".join(steps)


def _walk(extra: Extra, shift: int) -> PlanStep:
    return PlanStep(PlanOp.WALK, 0, 0, extra.dst, extra.program + shift)


def _with(steps: list[PlanStep], walks: list[PlanStep]) -> list[PlanStep] | None:
    if not walks:
        return steps
    at = next((number for number, step in enumerate(steps) if step.op == PlanOp.IMAGE), None)
    if at is None:
        room = (max([step.end for step in steps], default=0) + 7) & ~7
        if room + 8 > _FIXED_MAX:
            return None
        return [*steps, PlanStep(PlanOp.IMAGE, 0, 8, room, WATCH_BUDGET), *walks]
    image = replace(steps[at], imm=steps[at].imm + WATCH_BUDGET)
    return [*steps[:at], image, *walks, *steps[at + 1 :]]


def _image_of(steps: list[PlanStep]) -> int | None:
    return next((step.dst for step in steps if step.op == PlanOp.IMAGE), None)


def _packed(steps: list[PlanStep]) -> bytes:
    return b"".join(_STEP.pack(step.op, step.arg, step.size, step.dst, step.imm) for step in steps) + _STEP.pack(PlanOp.END, 0, 0, 0, 0)
