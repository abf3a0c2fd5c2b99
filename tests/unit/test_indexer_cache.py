"""The indexer's files on disk: what is kept when there are too many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from actors.indexer import cache
from strobe import paths


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path))


def test_what_was_not_used_for_longest_goes_first() -> None:
    stamp = bytes(32)
    for age, name in enumerate(("newest", "middle", "oldest")):
        file = paths.cache_folder() / name / "symbols"
        cache.write(file, stamp, bytes(1000))
        os.utime(file, (1e9 - age, 1e9 - age))
    assert cache.read(paths.cache_folder() / "oldest" / "symbols", stamp) == bytes(1000)  # and now it is the one used last
    size = 1000 + cache.HEADER_BYTES
    assert cache.trim(3 * size) == 0
    assert cache.trim(2 * size) == size
    assert sorted(folder.name for folder in paths.cache_folder().iterdir()) == ["newest", "oldest"]
