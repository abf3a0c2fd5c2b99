"""A keeper that watches a process which is not its child: its end is seen, its status where it can be had (agent/native/KEEPER.md, `watch`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strobe.errors import Code, StrobeError
from strobe.launch.keeper import Keeper, adopt_keeper, process_start_ticks, watch_process
from strobe.launch.request import Watch
from strobe.launch.status import TargetState
from tests.harness.launching import WAIT_S, Launcher, eventually, launcher

EXITS = (0, 1, 7, 255)
DEADLY = (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)


@pytest.fixture
def keepers(tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path / "keepers") as made:
        yield made


def watch(keepers: Launcher, pid: int) -> Keeper:
    ticks = process_start_ticks(pid)
    assert ticks is not None
    keeper = watch_process(keepers.folder(), Watch(pid, ticks))
    keepers.keepers.append(keeper)
    return keeper


def waiting(script: str) -> subprocess.Popen[bytes]:
    """A shell that does `script` once it is given a line."""
    return subprocess.Popen(["/bin/sh", "-c", f"read line; {script}"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()


@pytest.mark.parametrize("reaped_at_once", [True, False])
def test_how_it_ends_is_known(keepers: Launcher, reaped_at_once: bool) -> None:
    ends = [(f"exit {code}", code, None) for code in EXITS] + [(f"kill -{int(number)} $$", None, number) for number in DEADLY]
    for script, code, number in ends:
        process = waiting(script)
        keeper = watch(keepers, process.pid)
        assert keeper.target_alive() and not keeper.status().ended
        go(process)
        if reaped_at_once:
            process.wait(WAIT_S)
        status = keeper.wait(lambda status: status.ended, WAIT_S)
        assert status.state is TargetState.EXITED
        if not reaped_at_once or _tells_of_reaped():
            assert (status.wait_known, status.exit_code, status.signal) == (1, code, number)
        assert not keeper.target_alive()
        process.wait(WAIT_S)
        eventually(lambda keeper=keeper: not keeper.alive(), "the keeper ends with what it watched")  # type: ignore[misc]


def _tells_of_reaped() -> bool:
    """PIDFD_GET_INFO tells of reaped processes from Linux 6.15 on."""
    major, minor = (int(part) for part in os.uname().release.split(".")[:2])
    return (major, minor) >= (6, 15)


def test_its_streams_are_told_and_ended(keepers: Launcher, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        process = subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE, stdout=file, stderr=subprocess.PIPE)
    status = watch(keepers, process.pid).status()
    facts = (tmp_path / "out").stat()
    assert (status.stream_dev[0], status.stream_ino[0]) == (facts.st_dev, facts.st_ino)
    assert status.stream_ino[1] not in (0, facts.st_ino)
    assert status.stream_ended == (1, 1)
    process.communicate(b"\n")


def test_a_signal_goes_to_the_process_alone(keepers: Launcher) -> None:
    script = f"{sys.executable} -c 'import time; time.sleep(30)' & echo $!; wait"
    process = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    keeper = watch(keepers, process.pid)
    keeper.control.kill_tree(signal.SIGKILL)
    assert keeper.wait(lambda status: status.ended, WAIT_S).signal == signal.SIGKILL
    assert process_start_ticks(child) is not None
    os.kill(child, signal.SIGKILL)
    process.communicate()


def test_let_go_it_ends_at_once_and_the_process_runs_on(keepers: Launcher) -> None:
    process = waiting("exit 3")
    keeper = watch(keepers, process.pid)
    keeper.control.drain()
    eventually(lambda: not keeper.alive(), "the keeper ends")
    go(process)
    assert process.wait(WAIT_S) == 3


def test_another_process_with_that_pid_is_not_watched(keepers: Launcher) -> None:
    process = waiting("exit 0")
    ticks = process_start_ticks(process.pid)
    assert ticks is not None
    with pytest.raises(StrobeError) as wrong:
        watch_process(keepers.folder(), Watch(process.pid, ticks + 1))
    assert wrong.value.code is Code.PROCESS_EXITED
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    for _ in range(2):  # a zombie, then nobody
        with pytest.raises(StrobeError) as gone:
            watch_process(keepers.folder(), Watch(process.pid, ticks))
        assert gone.value.code is Code.PROCESS_EXITED
        process.communicate()


def test_it_survives_and_is_taken_over(keepers: Launcher) -> None:
    process = waiting("exit 5")
    keeper = watch(keepers, process.pid)
    keeper.control.close()
    again = adopt_keeper(keeper.directory)
    assert again.alive() and again.target_alive()
    go(process)
    process.wait(WAIT_S)
    assert again.wait(lambda status: status.ended, WAIT_S).state is TargetState.EXITED
    again.close()


