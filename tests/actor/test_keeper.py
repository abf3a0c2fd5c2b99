"""A real keeper with real targets: exit status, trees, failures, survival (agent/native/KEEPER.md)."""

from __future__ import annotations

import os
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


def test_a_target_that_nobody_will_let_go_is_killed(keepers: Launcher) -> None:
    """Its session and node died in the middle of the launch: it is not left standing. While somebody is there it waits."""
    keeper = start_keeper(keepers.folder(), Launch("/bin/sleep", ["/bin/sleep", "100"], {}, "/", stop=True, alone_s=1))
    keepers.keepers.append(keeper)
    started = keeper.status().started_ns
    eventually(lambda: time.monotonic_ns() - started > 2.5e9, "it is over time")
    assert keeper.status().state is TargetState.STOPPED and keeper.target_alive()
    keeper.control.close()
    eventually(lambda: not keeper.alive(), "the keeper gives it up")
    assert keeper.status().signal == signal.SIGKILL
    going = start_keeper(keepers.folder(), Launch("/bin/sleep", ["/bin/sleep", "3"], {}, "/", stop=True, alone_s=1))
    keepers.keepers.append(going)
    going.continue_target()
    going.control.close()
    assert going.wait(lambda status: status.ended, WAIT_S).exit_code == 0


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
