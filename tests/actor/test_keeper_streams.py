"""A target's streams under a real keeper: output, stdin, pty (agent/native/KEEPER.md)."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strobe.errors import Code, StrobeError
from strobe.launch.control import Control
from strobe.launch.keeper import adopt_keeper
from strobe.launch.status import TargetState
from tests.harness.launching import WAIT_S, Launcher, eventually, launcher, output_of, sh


@pytest.fixture
def keepers(tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path / "keepers") as made:
        yield made


def test_every_byte_of_both_streams_is_kept_apart_and_in_order(keepers: Launcher) -> None:
    script = "i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; exec head -c 40000000 /dev/zero"
    keeper = keepers.run(*sh(script))
    out, err = output_of(keeper)
    assert err == b"".join(b"err %d\n" % i for i in range(300))
    assert out == b"".join(b"out %d\n" % i for i in range(300)) + bytes(40_000_000)
    status = keeper.status()
    assert status.stream_bytes == (len(out), len(err)) and status.stream_ended == (1, 1)


def test_the_page_names_the_pipes_that_the_target_writes_to(keepers: Launcher) -> None:
    keeper = keepers.start("/bin/sleep", "100", stop=True)
    status = keeper.status()
    for number, (device, inode) in enumerate(zip(status.stream_dev, status.stream_ino, strict=True), start=1):
        facts = Path(f"/proc/{status.pid}/fd/{number}").stat()
        assert (facts.st_dev, facts.st_ino) == (device, inode)


def test_output_of_a_daemon_is_kept_after_its_parent_ended(keepers: Launcher, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    keeper = keepers.start(*sh(f"(setsid sh -c 'while [ ! -e {gate} ]; do sleep 0.01; done; echo late; exit 9' &) ; echo early; exit 3"))
    status = keeper.wait(lambda status: status.state is TargetState.EXITED, WAIT_S)
    assert status.exit_code == 3 and not status.ended
    gate.touch()
    status = keeper.wait(lambda status: status.ended, WAIT_S)
    assert output_of(keeper)[0] == b"early\nlate\n"
    eventually(lambda: not keeper.alive(), "the keeper ends with the last writer")
    assert keeper.status().exit_code == 3


@pytest.mark.parametrize("pty", [False, True])
def test_open_stdin_is_fed_and_closed(keepers: Launcher, pty: bool) -> None:
    keeper = keepers.start("/bin/cat", stdin="open", pty=pty)
    keeper.control.write(b"first\n")
    eventually(lambda: output_of(keeper)[0] == b"first\n", "the echo")
    text = b"".join(b"line %d\n" % i for i in range(2000 if pty else 400_000))
    keeper.control.write(text)
    keeper.control.close_stdin()
    assert keeper.wait(lambda status: status.ended, WAIT_S).exit_code == 0
    assert output_of(keeper)[0] == b"first\n" + text


def test_input_that_nobody_reads_is_refused_beyond_the_queue(keepers: Launcher) -> None:
    keeper = keepers.start("/bin/sleep", "100", stdin="open")
    control = Control(keeper.directory, timeout_s=0.3)
    with pytest.raises(StrobeError) as raised:
        control.write(bytes(4 << 20))
    assert raised.value.code is Code.TIMEOUT and 1 << 20 <= raised.value.value < 2 << 20
    control.close()
    keeper.control.kill_tree(signal.SIGKILL)
    keeper.wait(lambda status: status.ended, WAIT_S)


def test_stdin_that_the_target_closed_is_told(keepers: Launcher) -> None:
    keeper = keepers.start(*sh("exec <&-; echo closed; sleep 100"), stdin="open")
    eventually(lambda: output_of(keeper)[0] == b"closed\n", "the target closed its stdin")
    before = Path(f"/proc/{keeper.status().keeper_pid}/stat").read_text().split()[13:15]
    with pytest.raises(StrobeError) as raised:
        for _ in range(3):
            keeper.control.write(b"x")
    assert raised.value.code is Code.PROCESS_EXITED
    after = Path(f"/proc/{keeper.status().keeper_pid}/stat").read_text().split()[13:15]
    assert [int(b) - int(a) for a, b in zip(before, after, strict=True)] <= [2, 2], "the keeper spins"


def test_stdin_from_text_and_from_nothing(keepers: Launcher) -> None:
    text = os.urandom(3_000_000)
    assert output_of(keepers.run("/bin/cat", stdin=text))[0] == text
    assert output_of(keepers.run("/bin/cat"))[0] == b""


def test_a_pty_merges_the_streams_and_changes_no_byte(keepers: Launcher) -> None:
    keeper = keepers.run(*sh("echo out; echo err >&2; printf 'tab\\t\\r\\n'; stty size; cat; test -t 0 && exit 4"), pty=True)
    assert output_of(keeper) == (b"out\nerr\ntab\t\r\n24 80\n", b"")
    assert keeper.status().exit_code == 4
    assert output_of(keepers.run(*sh("test -t 0 || cat"), pty=True, stdin=b"text\n"))[0] == b"text\n"
    keeper = keepers.start(*sh("read x; stty size; tty -s && echo terminal"), pty=True, stdin="open")
    keeper.control.resize(50, 132)
    keeper.control.write(b"go\n")
    keeper.wait(lambda status: status.ended, WAIT_S)
    assert output_of(keeper)[0] == b"50 132\nterminal\n"


def test_a_pty_loses_nothing_and_hangs_nobody_up(keepers: Launcher) -> None:
    for _ in range(25):
        keeper = keepers.run(*sh("head -c 300000 /dev/zero; exec >&- 2>&- <&-; sleep 0.01; exit 7"), pty=True, stdin="open")
        assert keeper.status().exit_code == 7
        assert output_of(keeper)[0] == bytes(300_000)


def test_a_pty_that_was_let_go_can_be_opened_again(keepers: Launcher, tmp_path: Path) -> None:
    keeper = keepers.start(*sh(f"exec >&- 2>&- <&-; while [ ! -e {tmp_path}/gate ]; do sleep 0.01; done; echo again >/dev/tty; exit 8"), pty=True)
    (tmp_path / "gate").touch()
    assert keeper.wait(lambda status: status.ended, WAIT_S).exit_code == 8
    assert output_of(keeper)[0] == b"again\n"


def test_only_a_pty_can_be_resized(keepers: Launcher) -> None:
    with pytest.raises(StrobeError, match="resize"):
        keepers.start("/bin/sleep", "100").control.resize(10, 10)


def test_a_full_disk_makes_the_target_wait_and_loses_nothing(keepers: Launcher) -> None:
    # A file size limit stands in for the full disk: the keeper sees the same failing write, and it can be lifted.
    script = (
        "import pathlib, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))\n"
        "from strobe.launch.keeper import start_keeper\n"
        "from strobe.launch.request import Launch\n"
        "start_keeper(pathlib.Path(sys.argv[1]), Launch('/bin/sh', ['sh', '-c', 'seq 1 2000000; exit 6'], {'PATH': '/usr/bin:/bin'}, '/'))\n"
    )
    directory = keepers.folder()
    subprocess.run([sys.executable, "-c", script, str(directory)], check=True, timeout=60)
    keeper = adopt_keeper(directory)
    status = keeper.wait(lambda status: status.disk_full_ns != 0, WAIT_S)
    assert status.output_bytes <= 1 << 20 and status.state is TargetState.RUNNING
    assert not keeper.control.catch_up()
    resource.prlimit(status.keeper_pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    status = keeper.wait(lambda status: status.ended, WAIT_S)
    assert status.exit_code == 6 and status.disk_full_ns == 0
    assert output_of(keeper)[0] == b"".join(b"%d\n" % i for i in range(1, 2_000_001))


def test_drained_output_is_thrown_away_and_the_keeper_ends_with_the_target(keepers: Launcher, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    keeper = keepers.start(
        *sh(f"echo kept; while [ ! -e {gate} ]; do sleep 0.01; done; head -c 5000000 /dev/zero; sleep 100 & echo $! >{tmp_path}/pid; exit 2")
    )
    eventually(lambda: output_of(keeper)[0] == b"kept\n", "first line")
    keeper.control.drain()
    gate.touch()
    eventually(lambda: not keeper.alive(), "the keeper ends with the root, though a child holds its pipes")
    assert keeper.status().exit_code == 2 and output_of(keeper)[0] == b"kept\n"
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_catching_up_takes_in_all_that_was_written_before(keepers: Launcher, tmp_path: Path) -> None:
    for number in range(30):
        done = tmp_path / f"done{number}"
        keeper = keepers.start(*sh(f"head -c 700000 /dev/zero; touch {done}; sleep 100"))
        eventually(done.exists, "written")
        assert keeper.control.catch_up()
        assert keeper.status().stream_bytes[0] == 700_000
        keeper.control.kill_tree(signal.SIGKILL)


def test_closing_stdin_twice_is_no_error(keepers: Launcher) -> None:
    keeper = keepers.start("/bin/sleep", "100", stdin="open")
    keeper.control.close_stdin()
    keeper.control.close_stdin()
    with pytest.raises(StrobeError) as raised:
        keeper.control.write(b"x")
    assert raised.value.code is Code.PROCESS_EXITED
