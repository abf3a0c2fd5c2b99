"""JavaScript's test frameworks, installed once for all test runs: ~/.cache/strobe-tests/<hash of the lock>/node_modules."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.harness.targets import in_ci

LOCKED: Final = Path(__file__).resolve().parents[1] / "targets" / "frameworks" / "npm"
INSTALL_S: Final = 600


@functools.cache
def node_modules() -> Path:
    """Skips the test where npm or its registry can't be had; in CI it fails."""
    lock = (LOCKED / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strobe-tests"
    place = cache / f"npm-{hashlib.sha256(lock).hexdigest()[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "npm.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (place / "whole").exists():
            _install(place)
    return place / "node_modules"


def _install(place: Path) -> None:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        _missing("node or npm is not installed")
        return
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LOCKED / name, place / name)
    # Not `npm ci`: a lock written where a registry serves one platform only does not list the programs of the others.
    command = [npm, "install", "--no-save", "--no-fund", "--no-audit", "--prefer-offline"]
    done = subprocess.run(command, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if done.returncode != 0:
        _missing(f"npm install failed: {done.stderr[-1000:]}")
        return
    (place / "whole").touch()


def _missing(why: str) -> None:
    if in_ci():
        pytest.fail(why)
    pytest.skip(why)


def program(name: str) -> str:
    """Folder of a program that comes from npm (bun, deno), for a PATH."""
    folder = node_modules() / ".bin"
    if not (folder / name).exists():
        _missing(f"npm's package of {name} has no program for this machine")
    return str(folder)
