"""C values of a running program as they are shown, against what the program itself says that they should be."""

from __future__ import annotations

import pytest

from tests.harness.live_values import running, types_of
from tests.harness.targets import program
from tests.harness.value_checks import compare, described

_QUICK = {("gcc", "-O0", "-gdwarf-5"), ("clang", "-O2", "-gdwarf-4")}
BUILDS = [
    pytest.param(compiler, level, version, id=f"{compiler}{level}{version}", marks=[] if (compiler, level, version) in _QUICK else [pytest.mark.full])
    for compiler in ("gcc", "clang")
    for level in ("-O0", "-O2")
    for version in ("-gdwarf-4", "-gdwarf-5")
]
VALUES = 115  # clang lacks five of the types


@pytest.mark.parametrize("from_image", [False, True], ids=["live", "image"])
@pytest.mark.parametrize(("compiler", "level", "version"), BUILDS)
def test_values_are_what_the_program_says(compiler: str, level: str, version: str, from_image: bool) -> None:
    """Also from what the recorder copies of them."""
    with running(program("values/values.c", level, version, compiler=compiler)) as live:
        right, wrong = compare(live, types_of(live), from_image=from_image)
    assert not wrong, described(right, wrong)
    assert right >= VALUES
