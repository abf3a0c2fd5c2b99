"""C++ values of a running program as they are shown, with libstdc++ and libc++, against what the program itself says that they should be."""

from __future__ import annotations

import pytest

from tests.harness.live_values import running
from tests.harness.targets import program
from tests.harness.value_checks import compare, described
from tests.harness.value_symbols import typed

_QUICK = {("g++", "-O0", "-gdwarf-5", ""), ("clang++", "-O2", "-gdwarf-4", "-stdlib=libc++")}
BUILDS = [
    pytest.param(
        (compiler, level, version, extra), id="".join([compiler, level, version, extra]),
        marks=[] if (compiler, level, version, extra) in _QUICK else [pytest.mark.full],
    )
    for compiler, extras in (("g++", ("",)), ("clang++", ("-fstandalone-debug", "-stdlib=libc++", "")))
    for level in ("-O0", "-O2")
    for version in ("-gdwarf-4", "-gdwarf-5")
    for extra in extras
]  # fmt: skip
VALUES, CLASSES, DECLARED = 145, 40, 7


def _compared(source: str, build: tuple[str, str, str, str], *, from_image: bool = False) -> int:
    compiler, level, version, extra = build
    with running(program(f"values/{source}", level, version, *([extra] if extra else []), compiler=compiler)) as live:
        right, wrong = compare(live, typed(live), from_image=from_image)
    assert not wrong, described(right, wrong)
    return right


@pytest.mark.parametrize("build", BUILDS)
def test_values_of_the_library_are_what_the_program_says(build: tuple[str, str, str, str]) -> None:
    assert _compared("library.cpp", build) >= VALUES


@pytest.mark.parametrize("build", BUILDS)
def test_values_of_classes_are_what_the_program_says(build: tuple[str, str, str, str]) -> None:
    assert _compared("classes.cpp", build) >= CLASSES


@pytest.mark.parametrize("build", [*BUILDS, ("clang++", "-O0", "-gdwarf-5", "")])
def test_texts_whose_class_is_only_declared(build: tuple[str, str, str, str]) -> None:
    assert _compared("declared.cpp", build) >= DECLARED


@pytest.mark.parametrize("build", BUILDS)
def test_what_the_recorder_copies_shows_the_same(build: tuple[str, str, str, str]) -> None:
    assert _compared("library.cpp", build, from_image=True) >= VALUES
    assert _compared("classes.cpp", build, from_image=True) >= CLASSES
    assert _compared("declared.cpp", build, from_image=True) >= DECLARED
