"""Proof that a test run leaves nothing of Strobe's behind: no process, socket, held lock, shared memory or temporary folder.

Processes are known by a mark in their environment, files by the STROBE_HOMEs that lie under the run's own temporary folder. In CI, where nobody else
uses the machine, any new file of Strobe's or Frida's counts, whoever made it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from strobe import paths
from tests.harness.node import environment
from tests.harness.targets import in_ci

MARK: Final = "STROBE_TEST_RUN"
SETTLE_S: Final = 10.0
SHARED_MEMORY: Final = Path("/dev/shm")
_FOREIGN: Final = (SHARED_MEMORY, "strobe-*"), (Path(tempfile.gettempdir()), "strobe-*"), (Path(tempfile.gettempdir()), "frida-*")


class LeakWatch:
    """Made before the first test; `leaks` after the last."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._mark = uuid.uuid4().hex
        self._before = set(_everywhere())
        os.environ[MARK] = self._mark

    def leaks(self) -> list[str]:
        """One line for each thing left, after giving the last processes SETTLE_S to go."""
        checks: tuple[Callable[[], list[str]], ...] = (self._processes, self._files, self._foreign_files)
        deadline = time.monotonic() + SETTLE_S
        while (left := [line for check in checks for line in check()]) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left

    def _processes(self) -> list[str]:
        needle = f"{MARK}={self._mark}".encode()
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) == os.getpid():
                continue
            try:
                if needle in (folder / "environ").read_bytes():
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append(f"process {folder.name}: {command or '(zombie)'}")
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                continue  # it ended meanwhile, or is another user's
        return found

    def _files(self) -> list[str]:
        return [line for home in homes_under(self._base) for line in left_in(home)]

    def _foreign_files(self) -> list[str]:
        return [f"file: {path}" for path in sorted(set(_everywhere()) - self._before)] if in_ci() else []


def homes_under(base: Path) -> Iterator[Path]:
    """Every folder at most six levels below `base` that was a STROBE_HOME: a node writes `logs` and `catalog.duckdb` or `run` there."""
    for folder, names, _ in os.walk(base):
        path = Path(folder)
        if "logs" in names and ({"run", "sessions", "targets"} & set(names)):
            yield path
            names.clear()
        elif len(path.relative_to(base).parts) >= 6:
            names.clear()


def left_in(home: Path) -> list[str]:
    """Sockets, a held lock and pools of the node that used `home`."""
    with environment(home, None, {}):
        run = paths.run_folder(home)
        pools = list(SHARED_MEMORY.glob(f"{paths.pool_path('x').name[:-1]}*"))
    left = [f"socket: {path}" for path in run.iterdir() if path.is_socket()]
    left += [f"shared memory: {path}" for path in pools]
    lock = run / "lock"
    if lock.exists() and _is_held(lock):
        left.append(f"held lock: {lock}")
    if not left and run.parent != home:
        _remove_empty_run(run)
    return left


def _remove_empty_run(run: Path) -> None:
    """The run folder outside a long home keeps its lock file, as it must while homes are used again; a test's home is not."""
    for path in run.iterdir():
        path.unlink()
    run.rmdir()


def _is_held(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _everywhere() -> Iterator[str]:
    for folder, pattern in _FOREIGN:
        yield from (str(path) for path in folder.glob(pattern))
