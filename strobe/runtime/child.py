"""A child process that was forked, with what of subprocess.Popen its owner needs."""

from __future__ import annotations

import os
import select
import signal
import subprocess


class Child:
    """`pid` is a child of this process and is not reaped before `wait` says so."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._process = os.pidfd_open(pid)

    def wait(self, timeout: float | None = None) -> int:
        """As subprocess.Popen.wait: negative for a signal, 0 for one that somebody else has reaped. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._process], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0.0)
            try:
                self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            except ChildProcessError:
                self.returncode = 0
            os.close(self._process)
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            signal.pidfd_send_signal(self._process, signal.SIGKILL)
