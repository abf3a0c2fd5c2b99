"""Starting a keeper, or taking over one that an earlier process started; and the handle on it. Blocking, with timeouts everywhere."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from strobe.artifacts import artifact
from strobe.errors import Code, StrobeError
from strobe.launch.control import Control
from strobe.launch.failure import launch_error, watch_error
from strobe.launch.page import KeeperStatus, StatusPage
from strobe.launch.request import Launch, Watch, write_launch, write_watch
from strobe.launch.status import TargetState

_POLL_S: Final = (0.0005, 0.02)  # first and longest pause between two looks at the page
_STANDARD_SIGNALS: Final = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]


class Keeper:
    """A keeper and its target. It holds no state of its own that dies with this process: all is in the directory."""

    def __init__(self, directory: Path, page: StatusPage, keeper: int | None, *, ours: int = 0) -> None:
        self.directory = directory
        self.page = page
        self.control = Control(directory)
        self._keeper = keeper  # pidfd; None: it had ended already
        self._ours = ours  # the keeper's pid while it is our child and not reaped

    @property
    def output_path(self) -> Path:
        return self.directory / "output"

    def status(self) -> KeeperStatus:
        return self.page.read()

    def alive(self) -> bool:
        """Whether the keeper runs. A child of ours that ended is reaped on the way."""
        if not _has_ended(self._keeper):
            return True
        if self._ours:
            _reap(self._ours)
            self._ours = 0
        return False

    def lost(self) -> bool:
        """The keeper was killed before it saw its target end: no exit status will come."""
        return not self.alive() and self.status().state not in (TargetState.EXITED, TargetState.FAILED)

    def target_alive(self) -> bool:
        """Whether the target itself runs: not another process that got its pid."""
        status = self.status()
        return status.state in (TargetState.STOPPED, TargetState.RUNNING) and process_start_ticks(status.pid) == status.start_ticks

    def continue_target(self) -> None:
        """Lets a target go that waits at its first instruction. PROCESS_EXITED when it is gone."""
        status = self.status()
        if not self.target_alive():
            raise StrobeError(Code.PROCESS_EXITED, f"Process {status.pid} has ended.", "Query its output.", value=status.pid)
        os.kill(status.pid, signal.SIGCONT)

    def wait(self, until: Callable[[KeeperStatus], bool], timeout_s: float) -> KeeperStatus:
        """The first status for which `until` holds; TIMEOUT, or PROCESS_EXITED when the keeper ended without it."""
        deadline = time.monotonic() + timeout_s
        pause = _POLL_S[0]
        while True:
            alive = self.alive()
            status = self.status()
            if until(status):
                return status
            if not alive:
                raise StrobeError(
                    Code.PROCESS_EXITED, f"The keeper of {self.directory.name} has ended ({status.state.name}).", "Launch again.", value=status.pid
                )
            if time.monotonic() > deadline:
                what = f"Target {status.pid} is {status.state.name.lower()}; waited {timeout_s} s for a change."
                raise StrobeError(Code.TIMEOUT, what, "Wait longer, or stop the session.", value=status.pid)
            time.sleep(pause)
            pause = min(pause * 1.5, _POLL_S[1])

    def close(self) -> None:
        """Lets go of the keeper; it and its target live on."""
        self.control.close()
        if self._keeper is not None:
            self.alive()
            os.close(self._keeper)
            self._keeper = None


def start_keeper(directory: Path, launch: Launch, *, timeout_s: float = 10.0) -> Keeper:
    """Starts `launch` under a new keeper in `directory` (which exists, 0700) and waits until the target runs, or stands at its first instruction.

    StrobeError with the cause when it never ran. The target may have ended already when this returns.
    """
    write_launch(directory, launch)
    return _started(directory, lambda status: launch_error(launch, status), timeout_s)


def watch_process(directory: Path, watch: Watch, *, timeout_s: float = 10.0) -> Keeper:
    """Starts a keeper in `directory` that watches a process which runs already. PROCESS_EXITED when it does not any more."""
    write_watch(directory, watch)
    return _started(directory, lambda status: watch_error(watch, status), timeout_s)


def _started(directory: Path, failure: Callable[[KeeperStatus], StrobeError], timeout_s: float) -> Keeper:
    binary = str(artifact("strobe-keeper"))
    complaints, told = os.pipe()
    try:
        pid = os.posix_spawn(
            binary,
            [binary, str(directory)],
            {},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, told, 2),
            ],
            setsigmask=[],
            setsigdef=_STANDARD_SIGNALS,
        )
    finally:
        os.close(told)
    process = _open_process(pid)
    try:
        keeper = Keeper(directory, _first_page(directory, pid, process, complaints, timeout_s), process, ours=pid)
    except BaseException:
        if process is not None:
            os.close(process)
        raise
    finally:
        os.close(complaints)
    status = keeper.wait(lambda status: status.state is not TargetState.STARTING, timeout_s)
    if status.state is TargetState.FAILED:
        keeper.wait(lambda _: not keeper.alive(), timeout_s)
        keeper.close()
        raise failure(status)
    _attend(keeper)
    return keeper


def adopt_keeper(directory: Path) -> Keeper:
    """The keeper of a directory that an earlier process filled, alive or ended; StrobeError PROCESS_EXITED when there never was one."""
    page = StatusPage(directory)
    pid = page.read().keeper_pid
    control = Control(directory)
    try:
        # Only the keeper itself can answer there, so a process that merely got its pid is not mistaken for it.
        descriptor = _open_process(pid) if control.peer_pid() == pid else None
    except StrobeError:
        descriptor = None
    finally:
        control.close()
    keeper = Keeper(directory, page, descriptor)
    _attend(keeper)
    return keeper


def _attend(keeper: Keeper) -> None:
    """A target that waits at its first instruction is killed by its keeper when nobody is there to let it go."""
    if keeper.status().state is TargetState.STOPPED:
        with contextlib.suppress(StrobeError):  # it has ended, which the next look at it tells
            keeper.control.peer_pid()


def process_start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat: when the process started, in clock ticks since boot. None when there is no such process, or only its zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _open_process(pid: int) -> int | None:
    """A pidfd. None: it has ended and been reaped, by the kernel where this process ignores SIGCHLD."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def _has_ended(process: int | None) -> bool:
    return process is None or bool(select.select([process], [], [], 0)[0])


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):  # the kernel did, or somebody else in this process
        os.waitpid(pid, 0)


def _first_page(directory: Path, pid: int, process: int | None, complaints: int, timeout_s: float) -> StatusPage:
    deadline = time.monotonic() + timeout_s
    while True:
        ended = _has_ended(process)  # first: it may write its page and end before the next line
        with contextlib.suppress(StrobeError):  # not there yet, or not complete
            page = StatusPage(directory)
            if page.read().keeper_pid == pid:
                return page
        if ended:
            words = os.read(complaints, 4096).decode(errors="replace").strip()
            _reap(pid)
            raise StrobeError(Code.VALIDATION_ERROR, f"The keeper could not start: {words}.", "Give it a fresh directory.", value=str(directory))
        if time.monotonic() > deadline:
            assert process is not None
            signal.pidfd_send_signal(process, signal.SIGKILL)
            _reap(pid)
            raise StrobeError(Code.TIMEOUT, f"The keeper did not start within {timeout_s} s.", "Launch again.", value=str(directory))
        time.sleep(_POLL_S[0])
