"""What every test gets: a STROBE_HOME of its own, async tests, and the check that the whole run leaves nothing behind."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest

from tests.harness.leaks import LeakWatch

collect_ignore = ["targets"]  # tests of other frameworks, which the adapters' tests run


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


WATCH: Final = pytest.StashKey[LeakWatch]()
LEFT: Final = pytest.StashKey[list[str]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # with pytest-xdist: the one process that outlives the workers
        factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]  # as xdist gets at it
        session.config.stash[WATCH] = LeakWatch(factory.getbasetemp())


@pytest.hookimpl(trylast=True)  # the workers have ended
def pytest_sessionfinish(session: pytest.Session) -> None:
    watch = session.config.stash.get(WATCH, None)
    if watch is None or session.config.option.collectonly:
        return
    session.config.stash[LEFT] = left = watch.leaks()
    if left and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left := config.stash.get(LEFT, []):
        terminalreporter.section("left behind by this test run", red=True)
        for line in left:
            terminalreporter.line(line)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A STROBE_HOME that nobody else uses; the node makes it."""
    return tmp_path / "home"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
