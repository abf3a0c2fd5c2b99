"""Processes that nobody of Strobe's has started: to attach to. What they print is read all the time, so that they never wait for their reader."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from tests.harness.targets import without_inherited_signals

WAIT_S: Final = 20.0


class Foreign:
    """A child of the test's with its stdin, stdout and stderr in pipes."""

    def __init__(self, argv: tuple[str, ...], options: dict[str, Any]) -> None:
        pipe = subprocess.PIPE
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, preexec_fn=without_inherited_signals, **options
        )
        self.pid = self.process.pid
        self.out, self.err = bytearray(), bytearray()
        self._readers = [threading.Thread(target=_read, args=pair) for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        for reader in self._readers:
            reader.start()

    def say(self, text: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)

    def until_said(self, text: bytes) -> None:
        """AssertionError when it does not print that on stdout."""
        deadline = time.monotonic() + WAIT_S
        while text not in self.out:
            assert time.monotonic() < deadline and (self.process.poll() is None or text in self.out), f"{text!r} not in {bytes(self.out[-2000:])!r}"
            time.sleep(0.002)

    @property
    def state(self) -> str:
        """R, S, T …"""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def until_state(self, wanted: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while self.state != wanted:
            assert time.monotonic() < deadline, f"{self.state}, not {wanted}"
            time.sleep(0.002)

    def end(self, signo: int | None = signal.SIGUSR1) -> tuple[str, str, int]:
        """(stdout, stderr, return code), once it has ended by the signal or of itself."""
        if signo is not None:
            os.kill(self.pid, signo)
        self.process.wait(WAIT_S)
        for reader in self._readers:
            reader.join(WAIT_S)
        return self.out.decode(), self.err.decode(), self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.wait(WAIT_S)
        for reader in self._readers:
            reader.join(WAIT_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


def _read(pipe: IO[bytes], into: bytearray) -> None:
    while data := os.read(pipe.fileno(), 1 << 16):
        into += data


@contextmanager
def foreign(*argv: str, **options: Any) -> Iterator[Foreign]:
    """`options` are Popen's. It is gone at the end."""
    made = Foreign(argv, options)
    try:
        yield made
    finally:
        made.close()
