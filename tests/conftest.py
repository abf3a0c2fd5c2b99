"""What every test gets: a STROBE_HOME of its own, async tests, and the check that the whole run leaves nothing behind."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.leaks import LeakWatch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", type=int, metavar="N", help="run only N tests of the long matrices (marked full), drawn by --seed")
    parser.addoption("--seed", default="1", help="what --sample draws by; any text")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    count: int | None = config.getoption("--sample")
    if count is None:
        return
    long = [item for item in items if item.get_closest_marker("full") and not item.get_closest_marker("alone")]
    chosen = set(random.Random(config.getoption("--seed")).sample(long, min(count, len(long))))
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


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
