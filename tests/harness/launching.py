"""Launching under a real keeper in tests: launches that are always cleaned up, and what their output files hold."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from strobe.errors import StrobeError
from strobe.launch.keeper import Keeper, adopt_keeper, start_keeper
from strobe.launch.output import STDERR, STDOUT, parse_output
from strobe.launch.request import Launch

WAIT_S = 20.0


def eventually(check: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
    """Waits until `check` holds; fails with `what` after the deadline."""
    deadline = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.002)


def _ended(keeper: Keeper) -> Callable[[], bool]:
    return lambda: not keeper.alive()


class Launcher:
    """Starts keepers in numbered folders of `base`; `close` leaves no process behind."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.keepers: list[Keeper] = []

    def start(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
        stdin: Literal["null", "open"] | bytes = "null",
        pty: bool = False,
        stop: bool = False,
        path: str | None = None,
    ) -> Keeper:
        keeper = start_keeper(self.folder(), Launch(path or argv[0], argv, dict(os.environ) if env is None else env, cwd, stdin, pty, stop))
        self.keepers.append(keeper)
        return keeper

    def folder(self) -> Path:
        directory = self.base / f"k{len(list(self.base.glob('k*')))}"
        directory.mkdir(mode=0o700, parents=True)
        return directory

    def run(self, *argv: str, **options: object) -> Keeper:
        """Starts, and waits until all is over."""
        keeper = self.start(*argv, **options)  # type: ignore[arg-type]  # passed on as they are
        keeper.wait(lambda status: status.ended, WAIT_S)
        return keeper

    def close(self) -> None:
        for directory in sorted(self.base.glob("k*")):
            with contextlib.suppress(StrobeError):
                keeper = adopt_keeper(directory)
                if keeper.alive():
                    keeper.control.kill_tree(signal.SIGKILL)
                    keeper.control.drain()
                    eventually(_ended(keeper), "keeper ends after its tree")
                keeper.close()
        for keeper in self.keepers:
            eventually(_ended(keeper), "keeper reaped")
            keeper.close()


@contextlib.contextmanager
def launcher(base: Path) -> Iterator[Launcher]:
    made = Launcher(base)
    try:
        yield made
    finally:
        made.close()


def output_of(keeper: Keeper) -> tuple[bytes, bytes]:
    """What is in the output file for stdout and stderr, having checked that its records fit together."""
    streams: dict[int, list[bytes]] = {STDOUT: [], STDERR: []}
    sizes = {STDOUT: 0, STDERR: 0}
    content = memoryview(keeper.output_path.read_bytes())[: keeper.status().output_bytes]
    arrived = end = 0
    for record in parse_output(content):
        assert record.start == end and record.offset == sizes[record.stream] and record.arrival_ns >= arrived
        assert len(record.data) > 0 or record.last
        sizes[record.stream] += len(record.data)
        streams[record.stream].append(bytes(record.data))
        end, arrived = record.end, record.arrival_ns
    assert end == len(content)
    return b"".join(streams[STDOUT]), b"".join(streams[STDERR])


def sh(script: str) -> Sequence[str]:
    return ("/bin/sh", "-c", script)
