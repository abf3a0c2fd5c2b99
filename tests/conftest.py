"""What every test gets: a STROBE_HOME of its own, async tests, and the check that the whole run leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.leaks import LeakWatch


@pytest.fixture(scope="session", autouse=True)
def _nothing_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    watch = LeakWatch(tmp_path_factory.getbasetemp())
    yield
    left = watch.leaks()
    assert not left, "left behind by this test run:\n" + "\n".join(left)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A STROBE_HOME that nobody else uses; the node makes it."""
    return tmp_path / "home"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
