"""A keeper that watches a process which is not its child: its end is seen, its status where it can be had (agent/native/KEEPER.md, `watch`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strobe.errors import Code, StrobeError
from strobe.launch.keeper import Keeper, adopt_keeper, process_start_ticks, watch_process
from strobe.launch.request import Watch
from strobe.launch.status import TargetState
from tests.harness.launching import WAIT_S, Launcher, eventually, launcher
from tests.harness.targets import require

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


def as_ordinary_user(work: Callable[[], None]) -> int:
    """Exit code of a child that does it: 0, or 1 with its traceback printed. Root is nobody there, for whom all would be permitted."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            work()
            code = 0
        except BaseException:  # noqa: BLE001 (told by the exit code)
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _becomes_another_user() -> None:
    with tempfile.TemporaryDirectory() as folder, launcher(Path(folder) / "keepers") as keepers:
        process = waiting(f"exec {require('su')} -c true no-such-user 2>/dev/null")
        keeper = watch(keepers, process.pid)
        go(process)
        status = keeper.wait(lambda status: status.ended, WAIT_S)
        code = process.wait(WAIT_S)
        assert code != 0, "su has nobody of that name to become"
        assert status.exit_code == (code if status.wait_known else None), f"the keeper says {status.exit_code}, it was {code}"


def test_the_status_of_one_that_became_another_user_is_not_guessed() -> None:
    """The kernel hides the exit code of a process that we may not trace, by 0."""
    assert as_ordinary_user(_becomes_another_user) == 0


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
