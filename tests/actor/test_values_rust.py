"""Rust values of a running program as they are shown, against what the program itself says that they should be."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

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
RUSTUP_S = 30


@pytest.fixture(scope="module", params=BUILDS)
def live(request: pytest.FixtureRequest) -> Iterator[tuple[Live, Types]]:
    with running(program("values/rust.rs", *request.param)) as found:
        yield found, types_of(found)


def test_values_are_what_the_program_says(live: tuple[Live, Types]) -> None:
    right, wrong = compare(*live)
    assert not wrong, f"{len(wrong)} of {right + len(wrong)} are not as the program says:\n" + "\n".join(wrong)
    assert right >= VALUES


@pytest.mark.full
@pytest.mark.parametrize("flags", [(), ("-O",)], ids=["debug", "-O"])
def test_another_version_of_the_library(flags: tuple[str, ...]) -> None:
    with running(program("values/rust.rs", *flags, compiler=_nightly())) as found:
        right, wrong = compare(found, types_of(found))
    assert not wrong, "\n".join(wrong)
    assert right >= VALUES


def _nightly() -> str:
    """Its library has other layouts than the stable one's."""
    if shutil.which("rustup") is None:
        pytest.skip("rustup is not installed")
    asked = subprocess.run(["rustup", "which", "--toolchain", "nightly", "rustc"], capture_output=True, text=True, timeout=RUSTUP_S, check=False)
    if asked.returncode:
        pytest.skip("no nightly Rust toolchain is installed")
    return asked.stdout.strip()
