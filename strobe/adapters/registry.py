"""All test adapters. Detection asks each; `framework` of debug_test names one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strobe.adapters.adapter import Adapter, Project
from strobe.adapters.bun_test import BunTest
from strobe.adapters.cargo_test import CargoTest
from strobe.adapters.catch2 import Catch2
from strobe.adapters.ctest import CTest
from strobe.adapters.deno_test import DenoTest
from strobe.adapters.generic import Generic
from strobe.adapters.go_test import GoTest
from strobe.adapters.googletest import GoogleTest
from strobe.adapters.jest import Jest
from strobe.adapters.mocha import Mocha
from strobe.adapters.nextest import Nextest
from strobe.adapters.node_test import NodeTest
from strobe.adapters.playwright import Playwright
from strobe.adapters.pytest import Pytest
from strobe.adapters.unittest import Unittest
from strobe.adapters.vitest import Vitest
from strobe.errors import Code, StrobeError
from strobe.model.testing import Candidate

ADAPTERS: Final[tuple[Adapter, ...]] = (
    Pytest(),
    CargoTest(),
    Nextest(),
    GoogleTest(),
    Catch2(),
    CTest(),
    Unittest(),
    GoTest(),
    Vitest(),
    Jest(),
    NodeTest(),
    Mocha(),
    Playwright(),
    BunTest(),
    DenoTest(),
    Generic(),
)


def adapter(framework: str) -> Adapter:
    """Errors: VALIDATION_ERROR with the names there are."""
    for one in ADAPTERS:
        if one.name == framework:
            return one
    known = ", ".join(one.name for one in ADAPTERS)
    raise StrobeError(Code.VALIDATION_ERROR, f"framework {framework!r} is not known.", f"Give one of {known}, or leave it out.", value=framework)


def detect(project: Project) -> Sequence[Candidate]:
    """Every candidate of every adapter, the likeliest first."""
    found = [candidate for one in ADAPTERS for candidate in one.detect(project)]
    return sorted(found, key=lambda candidate: (-candidate.confidence, candidate.folder.count("/"), candidate.folder, candidate.framework))
