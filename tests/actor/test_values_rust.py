"""Rust values of a running program as they are shown, against what the program itself says that they should be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.live_values import Live, Types, running, types_of
from tests.harness.targets import program
from tests.harness.value_checks import compare

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


def test_values_are_what_the_program_says(live: tuple[Live, Types]) -> None:
    right, wrong = compare(*live)
    assert not wrong, f"{len(wrong)} of {right + len(wrong)} are not as the program says:\n" + "\n".join(wrong)
    assert right >= VALUES
