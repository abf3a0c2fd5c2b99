"""Fixtures that several files of tests share: launches that are cleaned up, a pool, a collector's bench."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from strobe.lanes.pool import Pool, create_pool
from tests.harness.collecting import Bench, benched
from tests.harness.launching import Launcher, launcher


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    made = create_pool(Path("/dev/shm") / f"strobe-test-{os.getpid()}-{tmp_path.name}", 64)
    try:
        yield made
    finally:
        made.unlink()


@pytest.fixture
def launches(tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path) as made:
        yield made


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benched(tmp_path) as made:
        yield made
