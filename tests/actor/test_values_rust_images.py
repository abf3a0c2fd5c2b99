"""Rust values as an event has them: what walk programs copy of a running program's values, as the recorder's model does it, shows all of them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from strobe.lanes.layout import WALK_NOTHING, WALK_STEP_BYTES, WalkOp
from strobe.model.type_nodes import TypeId
from strobe.values.memory import PAYLOAD_BASE, Image, Region
from strobe.values.reader import Reader
from strobe.values.registry import Formatters
from strobe.values.walks import WalkCompiler
from tests.harness.live_values import Live, LiveMemory, Types, running, types_of
from tests.harness.targets import program
from tests.harness.value_checks import same
from tests.harness.walk_model_steps import perform
from tests.harness.walk_model_walk import Memory, Step, Walk

BUILDS = [pytest.param((), id="debug"), pytest.param(("-O",), id="-O", marks=pytest.mark.full)]
IMAGE_BYTES = 60_000
VALUES = 300


@dataclass
class Whole(Memory):
    """All of a process's memory for the recorder's model."""

    live: LiveMemory | None = None

    def read(self, address: int, size: int) -> bytes:
        assert self.live is not None
        return self.live.prefix(address, size)


@pytest.fixture(scope="module", params=BUILDS)
def live(request: pytest.FixtureRequest) -> Iterator[tuple[Live, Types]]:
    with running(program("values/rust.rs", *request.param)) as found:
        yield found, types_of(found)


def test_what_is_copied_shows_the_same(live: tuple[Live, Types]) -> None:
    found, types = live
    right, missed = 0, []
    for group, record in zip(found.groups, types.numbers, strict=True):
        for name, said in group.expected.items():
            member = types.table.member(record, name)
            assert member is not None
            image = _image(found, types, member.type, group.address + member.offset)
            shown = Reader(types.table, image, Formatters.built_in(), symbols=types.symbols).at(member.type, PAYLOAD_BASE)
            if same(shown, json.loads(said)):
                right += 1
            else:
                kind = types.table[member.type].name
                missed.append(f"{group.type}.{name}: {kind}\n  program {said[:600]}\n  image   {json.dumps(shown, ensure_ascii=False)[:600]}")
    assert not missed, f"{len(missed)} are not copied whole:\n" + "\n".join(missed)
    assert right >= VALUES


def _image(live: Live, types: Types, number: TypeId, address: int) -> Image:
    """What the recorder copies of the object at `address`."""
    payload = live.memory.prefix(address, types.table.size(number) or 0)
    walks = WalkCompiler(types.table, Formatters.built_in(), elements=100, text=1024, codes=types.codes)
    at = walks.program(number, depth=3)
    section = walks.section()
    steps = [Step(WalkOp(op), *rest) for op, *rest in (struct.unpack_from("<BBHIIIQQ", section, place) for place in range(0, len(section), WALK_STEP_BYTES))]
    walk = Walk(Whole(0, b"", b"", live.memory), steps, IMAGE_BYTES, perform)
    if at != WALK_NOTHING:
        walk.run([(at, 0)], payload)
    return Image(payload, [Region(region.address, region.data, region.state) for region in walk.regions])
