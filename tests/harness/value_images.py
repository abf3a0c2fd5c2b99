"""Values of a running program as an event has them: from what walk programs copy, as the recorder's model does it."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from strobe.lanes.layout import WALK_NOTHING, WALK_STEP_BYTES, WalkOp
from strobe.model.type_nodes import TypeId
from strobe.values.memory import Image, Region
from strobe.values.registry import Formatters
from strobe.values.walks import WalkCompiler
from tests.harness.live_values import LiveMemory, Types
from tests.harness.walk_model_steps import perform
from tests.harness.walk_model_walk import Memory, Step, Walk

IMAGE_BYTES = 60_000


@dataclass
class _Whole(Memory):
    """All of a process's memory for the recorder's model."""

    live: LiveMemory | None = None

    def read(self, address: int, size: int) -> bytes:
        assert self.live is not None
        return self.live.prefix(address, size)


def copied(memory: LiveMemory, types: Types, number: TypeId, address: int) -> Image:
    """What the recorder copies of the object at `address`, at its own address."""
    walks = WalkCompiler(types.table, Formatters.built_in(), elements=100, text=1024, codes=types.codes)
    at = walks.at(address, number, depth=3)
    section = walks.section()
    steps = [Step(WalkOp(op), *rest) for op, *rest in (struct.unpack_from("<BBHIIIQQ", section, place) for place in range(0, len(section), WALK_STEP_BYTES))]
    walk = Walk(_Whole(0, b"", b"", memory), steps, IMAGE_BYTES, perform)
    if at != WALK_NOTHING:
        walk.run([(at, 0)], b"")
    return Image(b"", [Region(region.address, region.data, region.state) for region in walk.regions])
