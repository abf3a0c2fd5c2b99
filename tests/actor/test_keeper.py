"""A real keeper with real targets: exit status, streams, pty, stdin, trees, failures, survival (agent/native/KEEPER.md)."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strobe.artifacts import artifact
from strobe.errors import Code, StrobeError
from strobe.launch.control import Control
from strobe.launch.keeper import Keeper, adopt_keeper, process_start_ticks, start_keeper
from strobe.launch.request import Launch
from strobe.launch.status import STATUS, LaunchStage, TargetState
from tests.harness.launching import WAIT_S, Launcher, eventually, launcher, output_of, sh
from tests.harness.targets import program, require


@pytest.fixture
def keepers(tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path / "keepers") as made:
        yield made


def test_its_status_page_lies_as_the_readers_think(tmp_path: Path) -> None:
    names = {"errno": "error"}
    checks = "".join(f'_Static_assert(offsetof(struct keeper_status, {names.get(f.name, f.name)}) == {f.offset}, "{f.name}");\n' for f in STATUS)
    source = tmp_path / "check.c"
    source.write_text(f'#include <stddef.h>\n#include "keeper.h"\n{checks}')
    header = Path(__file__).resolve().parents[2] / "agent" / "native"
    subprocess.run([require("gcc"), "-std=c11", "-fsyntax-only", "-I", str(header), str(source)], check=True, timeout=60)


def test_it_is_static() -> None:
    assert b"INTERP" not in subprocess.run([require("readelf"), "-l", str(artifact("strobe-keeper"))], capture_output=True, check=True, timeout=30).stdout


@pytest.mark.parametrize("stop", [False, True])
def test_the_exit_status_is_exact_every_time(keepers: Launcher, stop: bool) -> None:
    exits = str(program("exits.c"))
    deadly = [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1, signal.SIGINT, signal.SIGALRM]
    wanted: list[tuple[int | None, int | None]] = [(code % 256, None) for code in range(0, 256, 2)] + [(255, None)] + [(None, number) for number in deadly]
    for start in range(0, len(wanted), 15):
        running = []
        for code, number in wanted[start : start + 15]:
            argv = (exits, "signal", str(int(number))) if number else (exits, "_exit", str(code))
            keeper = keepers.start(*argv, stop=stop)
            if stop:
                keeper.continue_target()
            running.append(keeper)
        for keeper, (code, number) in zip(running, wanted[start:], strict=False):
            status = keeper.wait(lambda status: status.ended, WAIT_S)
            assert (status.exit_code, status.signal) == (code, number)
            assert 0 < status.started_ns <= status.exited_ns <= time.monotonic_ns()
            eventually(ended(keeper), "keeper ends")
            assert not (keeper.directory / "control").exists()


def test_a_held_target_stands_at_its_first_instruction(keepers: Launcher) -> None:
    keeper = keepers.start(str(program("exits.c")), "code", "5", stop=True)
    status = keeper.status()
    assert status.state is TargetState.STOPPED and keeper.target_alive()
    facts = Path(f"/proc/{status.pid}/status").read_text()
    assert "State:\tT (stopped)" in facts and "TracerPid:\t0" in facts
    maps = Path(f"/proc/{status.pid}/maps").read_text()
    assert "libc" not in maps and "ld-" in maps
    assert process_start_ticks(status.pid) == status.start_ticks
    keeper.continue_target()
    assert keeper.wait(lambda status: status.ended, WAIT_S).exit_code == 5
    with pytest.raises(StrobeError) as raised:
        keeper.continue_target()
    assert raised.value.code is Code.PROCESS_EXITED


def test_a_held_target_says_when_it_runs_and_can_be_killed_before(keepers: Launcher) -> None:
    running = keepers.start("/bin/sleep", "100", stop=True)
    running.continue_target()
    running.wait(lambda status: status.state is TargetState.RUNNING, WAIT_S)
    held = keepers.start("/bin/sleep", "100", stop=True)
    for keeper in (running, held):
        keeper.control.kill_tree(signal.SIGKILL)
        assert keeper.wait(lambda status: status.ended, WAIT_S).signal == signal.SIGKILL


def test_the_target_finds_the_world_as_without_a_keeper(keepers: Launcher, tmp_path: Path) -> None:
    # The starter ignores and blocks signals and holds files open; none of it may reach the target.
    script = (
        "import os, signal, sys, pathlib\n"
        "for n in (signal.SIGINT, signal.SIGPIPE, signal.SIGCHLD, signal.SIGTERM): signal.signal(n, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGCHLD])\n"
        "os.set_inheritable(os.open('/dev/null', os.O_RDONLY), True)\n"
        "from strobe.launch.keeper import start_keeper\n"
        "from strobe.launch.request import Launch\n"
        'start_keeper(pathlib.Path(sys.argv[1]), Launch(sys.argv[2], ["a name", "", "ü x"], {"A": "b=c", "EMPTY": ""}, sys.argv[3]))\n'
    )
    directory = keepers.folder()
    subprocess.run([sys.executable, "-c", script, str(directory), str(program("strangers.c")), str(tmp_path)], check=True, timeout=60)
    keeper = adopt_keeper(directory)
    keeper.wait(lambda status: status.ended, WAIT_S)
    facts = output_of(keeper)[0].decode().splitlines()
    assert sorted(facts[:3]) == ["file 0", "file 1", "file 2"]
    assert facts[3:] == ["leader 1", "terminal 000", f"cwd {tmp_path}", "arg a name", "arg ", "arg ü x", "env A=b=c", "env EMPTY=", "tracer 0"]


def test_a_starter_that_ignores_sigchld_is_told_the_same(tmp_path: Path) -> None:
    """The kernel then reaps the keeper by itself: often it is gone before its starter looks."""
    script = (
        "import pathlib, signal, sys\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from strobe.errors import StrobeError\n"
        "from strobe.launch.keeper import start_keeper\n"
        "from strobe.launch.request import Launch\n"
        "for number in range(40):\n"
        "    path = pathlib.Path(sys.argv[1], f'k{number}')\n"
        "    path.mkdir(mode=0o700)\n"
        "    keeper = start_keeper(path, Launch('/bin/sh', ['sh', '-c', 'exit 3'], {}, '/'))\n"
        "    assert keeper.wait(lambda status: status.ended, 20).exit_code == 3\n"
        "    while keeper.alive(): pass\n"
        "    keeper.close()\n"
        "    try: start_keeper(path, Launch('/bin/true', ['true'], {}, '/'))\n"
        "    except StrobeError as error: assert 'File exists' in error.what, error\n"
        "    else: sys.exit('a second keeper of a folder')\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)


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


def test_killing_reaches_the_whole_tree_in_all_its_sessions(keepers: Launcher) -> None:
    nest = "setsid sh -c 'setsid sleep 101 & (sleep 102 &) ; trap \"\" TERM HUP; sleep 103; sleep 104' & (setsid sleep 105 &) ; echo ready; sleep 106"
    keeper = keepers.start(*sh(nest))
    eventually(lambda: len(tree(keeper)) >= 7 and output_of(keeper)[0] == b"ready\n", "the tree has grown")
    pids = tree(keeper)
    keeper.control.kill_tree(signal.SIGKILL)
    status = keeper.wait(lambda status: status.ended, WAIT_S)
    assert status.signal == signal.SIGKILL
    eventually(lambda: all(process_start_ticks(pid) is None for pid in pids), "all of the tree is gone")
    eventually(lambda: not keeper.alive(), "keeper ends")


def test_a_fork_chain_cannot_outrun_a_kill(keepers: Launcher) -> None:
    keeper = keepers.start(*sh("f() { (f) & exit 0; }; f"))
    eventually(lambda: keeper.status().reaped > 50, "generations come and go")
    keeper.control.kill_tree(signal.SIGKILL)
    keeper.wait(lambda status: status.ended, WAIT_S)
    eventually(lambda: not keeper.alive(), "keeper ends")


def test_other_signals_come_once(keepers: Launcher) -> None:
    keeper = keepers.start(*sh("trap 'echo got' USR1; echo ready; while :; do sleep 0.01; done"))
    eventually(lambda: output_of(keeper)[0] == b"ready\n", "ready")
    os.kill(keeper.status().pid, 0)
    keeper.control.kill_tree(0)  # asks only whether it could
    keeper.control.kill_tree(signal.SIGTERM)
    assert keeper.wait(lambda status: status.ended, WAIT_S).signal == signal.SIGTERM


def test_a_target_that_cannot_run_says_why(keepers: Launcher, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("just text\n")
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x7fELF" + bytes(60))
    garbage.chmod(0o755)
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    cases = [("/no/such", "missing"), (str(text), "executed"), (str(garbage), "machine"), (str(script), "interpreter"), (str(tmp_path), "executed")]
    for path, words in cases:
        with pytest.raises(StrobeError, match=words) as raised:
            keepers.start(path, stop=True)
        assert raised.value.code is Code.VALIDATION_ERROR and raised.value.value == path
    with pytest.raises(StrobeError, match="working directory") as raised:
        keepers.start("/bin/true", cwd="/no/such/folder")
    assert raised.value.value == "/no/such/folder"
    with pytest.raises(StrobeError, match="too long"):
        keepers.start("/bin/true", "x" * 200_000)
    for bad in ({"path": "relative"}, {"env": {"A=B": "c"}}, {"env": {"A": "b\0c"}}):
        with pytest.raises(StrobeError):
            keepers.start("/bin/true", **bad)


@pytest.mark.parametrize("content", [b"", b"path=/bin/true", b"path=/bin/true\0arg=true\0cwd=/\0stdin=other\0", b"nonsense=1\0", b"arg=x\0cwd=/\0stdin=null\0"])
def test_a_launch_file_it_cannot_read_is_published(keepers: Launcher, content: bytes) -> None:
    directory = keepers.folder()
    (directory / "launch").write_bytes(content)
    assert subprocess.run([artifact("strobe-keeper"), directory], timeout=20).returncode == 1
    status = adopt_keeper(directory).status()
    assert (status.state, status.stage) == (TargetState.FAILED, LaunchStage.READ_LAUNCH) and status.errno != 0 and status.pid == 0


def test_a_second_keeper_of_a_folder_is_refused(keepers: Launcher) -> None:
    keeper = keepers.start("/bin/sleep", "100")
    with pytest.raises(StrobeError, match="File exists"):
        start_keeper(keeper.directory, Launch("/bin/true", ["true"], {}, "/"))
    assert keeper.status().state is TargetState.RUNNING and keeper.alive()


def test_it_and_its_target_survive_everything_else_and_are_taken_over(keepers: Launcher) -> None:
    script = (
        "import os, pathlib, signal, sys\n"
        "from strobe.launch.keeper import start_keeper\n"
        "from strobe.launch.request import Launch\n"
        "start_keeper(pathlib.Path(sys.argv[1]), Launch('/bin/sh', ['sh', '-c', 'read x; echo got $x; exit 41'], {}, '/', stdin='open'))\n"
        "os.killpg(0, signal.SIGKILL)\n"
    )
    directory = keepers.folder()
    run = subprocess.run([sys.executable, "-c", script, str(directory)], start_new_session=True, timeout=60)
    assert run.returncode == -signal.SIGKILL
    keeper = adopt_keeper(directory)
    assert keeper.alive() and keeper.target_alive() and not keeper.lost()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGQUIT):
        os.kill(keeper.status().keeper_pid, number)
    keeper.control.write(b"news\n")
    assert keeper.wait(lambda status: status.ended, WAIT_S).exit_code == 41
    assert output_of(keeper)[0] == b"got news\n"
    eventually(lambda: not keeper.alive(), "keeper ends")
    again = adopt_keeper(directory)
    assert not again.alive() and not again.lost() and again.status().exit_code == 41


def test_a_killed_keeper_is_known_as_lost(keepers: Launcher) -> None:
    keeper = keepers.start("/bin/sleep", "100")
    target = keeper.status().pid
    os.kill(keeper.status().keeper_pid, signal.SIGKILL)
    try:
        eventually(keeper.lost, "lost")
        assert adopt_keeper(keeper.directory).lost()
        with pytest.raises(StrobeError):
            keeper.control.drain()
    finally:
        os.kill(target, signal.SIGKILL)


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


def test_commands_it_does_not_know_and_odd_packets_are_refused(keepers: Launcher) -> None:
    keeper = keepers.start("/bin/sleep", "100")
    control = keeper.control
    for packet in (b"?", b"k", b"k\xff", b"r\1", b"i" + bytes(65537)):
        assert control._ask(packet) != 0
    clients = [Control(keeper.directory, timeout_s=2) for _ in range(20)]
    answered = 0
    for client in clients:
        try:
            answered += client.catch_up()
        except StrobeError:
            continue
    assert answered == 7, "eight connections in all"
    for client in clients:
        client.close()
    eventually(lambda: Control(keeper.directory).catch_up(), "room again")


def test_closing_stdin_twice_is_no_error(keepers: Launcher) -> None:
    keeper = keepers.start("/bin/sleep", "100", stdin="open")
    keeper.control.close_stdin()
    keeper.control.close_stdin()
    with pytest.raises(StrobeError) as raised:
        keeper.control.write(b"x")
    assert raised.value.code is Code.PROCESS_EXITED


def ended(keeper: Keeper) -> Callable[[], bool]:
    return lambda: not keeper.alive()


def tree(keeper: Keeper) -> list[int]:
    """Every descendant of the keeper, by /proc."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(fields[1])
    found = {keeper.status().keeper_pid}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {keeper.status().keeper_pid})
