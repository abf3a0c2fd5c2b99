"""Rust values of a running program as they are shown, against what the program itself says that they should be."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strobe.model.type_nodes import Record
from strobe.values.reader import Reader
from strobe.values.registry import Formatters
from tests.harness.live_values import Live, Types, running, types_of
from tests.harness.targets import program

BUILDS = [
    pytest.param(flags, id=" ".join(flags) or "debug", marks=marks)
    for flags, marks in (
        ((), []),
        (("-O",), []),
        (("-C", "dwarf-version=5"), [pytest.mark.full]),
        (("-O", "-C", "dwarf-version=5"), [pytest.mark.full]),
    )
]
VALUES = 300


def _built(flags: tuple[str, ...]) -> Path:
    return program("values/rust.rs", *flags)


@pytest.fixture(scope="module", params=BUILDS)
def live(request: pytest.FixtureRequest) -> Iterator[tuple[Live, Types]]:
    with running(_built(request.param)) as found:
        yield found, types_of(found)


def _same(ours: Any, theirs: Any) -> bool:
    """`true` is not 1; a float may be rounded as its own type's shortest digits."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(_same(value, theirs[name]) for name, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if type(ours) is float and type(theirs) is float:
        return ours == theirs or math.isclose(ours, theirs, rel_tol=1e-7)
    return type(ours) is type(theirs) and ours == theirs


def test_values_are_what_the_program_says(live: tuple[Live, Types]) -> None:
    found, types = live
    reader = Reader(types.table, found.memory, Formatters.built_in(), symbols=types.symbols)
    right, wrong = 0, []
    for group, number in zip(found.groups, types.numbers, strict=True):
        record = types.table[number]
        assert isinstance(record, Record)
        members = {member.name: member for member in record.members}
        for name, shown in group.expected.items():
            member = members[name]
            ours = reader.at(member.type, group.address + member.offset)
            if _same(ours, json.loads(shown)):
                right += 1
            else:
                wrong.append(
                    f"{group.type}.{name}: {types.table[member.type].name}\n  program {shown[:300]}\n  reader  {json.dumps(ours, ensure_ascii=False)[:300]}"
                )
    assert not wrong, f"{len(wrong)} of {right + len(wrong)} are not as the program says:\n" + "\n".join(wrong)
    assert right >= VALUES
