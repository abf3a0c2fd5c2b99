"""Stopping a real target, writing to it, calling in it, and letting it go as if nothing had been."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actors.session.ptrace import attempts, world
from actors.session.ptrace.call import CallFailed, call
from actors.session.ptrace.memory import Memory
from actors.session.ptrace.patching import install, restore, take_over
from actors.session.ptrace.threads import thread_ids, thread_state, tracer_of
from actors.session.ptrace.world import NotStopped, StoppedWorld
from actors.stuck_detector.look import see
from strobe import ptrace as calls
from strobe.errors import Code, StrobeError
from strobe.protocol.spawner import Patch, Write
from strobe.ptrace import run_as_tracer
from tests.harness.targets import program

WAIT_S = 20.0
ROOT = Path(__file__).resolve().parents[2]


class Target:
    """A mode of tests/targets/stopping.c that has said it is ready."""

    def __init__(self, *arguments: str) -> None:
        built = program("stopping.c", "-O1", str(ROOT / "agent/native/recorder_return.S"))
        self.process = subprocess.Popen([str(built), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.words = self.line().split()[1:]

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ask(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.line()

    def end(self) -> str:
        """What it found, having been told to end; its exit status is 0."""
        out, _ = self.process.communicate("\n", timeout=WAIT_S)
        assert self.process.returncode == 0, (self.process.returncode, out)
        return out.strip()


@contextmanager
def target(*arguments: str) -> Iterator[Target]:
    made = Target(*arguments)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def stopped(pid: int, work: Callable[[StoppedWorld], object] = lambda world: None, tries: int = 100) -> StoppedWorld:
    """Does `work` in a stopped world, trying again where a thread was not to be stopped in time."""

    def once() -> StoppedWorld:
        with StoppedWorld(pid) as world:
            work(world)
        return world

    for _ in range(tries):
        try:
            return run_as_tracer(once)
        except NotStopped:
            time.sleep(0.005)
    raise AssertionError(f"process {pid} could not be stopped in {tries} tries")


def eventually(check: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not check():
        assert time.monotonic() < deadline, f"not within {WAIT_S} s: {what}"
        time.sleep(0.002)


@pytest.mark.parametrize("threads", [1, 10, 200])
def test_all_threads_stand_still_and_go_on(threads: int, record_property: Callable[[str, object], None]) -> None:
    with target("many", str(threads)) as it:
        states: list[str] = []
        world = stopped(it.pid, lambda world: states.extend(thread_state(it.pid, tid) for tid in thread_ids(it.pid)))
        assert states == ["t"] * threads and world.threads == threads
        times = sorted(stopped(it.pid).stopped_s for _ in range(10))
        record_property("stopped_ms", times[5] * 1000)
        eventually(lambda: all(thread_state(it.pid, tid) in "RS" for tid in thread_ids(it.pid)), "all threads run again")
        assert all(tracer_of(it.pid, tid) == 0 for tid in thread_ids(it.pid))
        assert it.end() == "ended"


def test_blocking_calls_are_not_interrupted() -> None:
    """epoll_wait and recv with a time limit end with EINTR when their thread is merely stopped; nanosleep must sleep its whole time."""
    with target("waits") as it:
        for _ in range(60):
            stopped(it.pid)
            time.sleep(0.003)
        os.kill(it.pid, signal.SIGUSR1)
        eventually(lambda: not pending(it.pid), "the signal is delivered")
        assert it.end() == "interrupted 0 handled 1 by_signal 1"


def test_nor_are_they_by_the_looks_of_the_stuck_detector() -> None:
    with target("waits") as it:
        for _ in range(60):
            for tid in thread_ids(it.pid):
                assert run_as_tracer(lambda tid=tid: see(it.pid, tid)).stack  # type: ignore[misc]
        os.kill(it.pid, signal.SIGUSR1)
        eventually(lambda: not pending(it.pid), "the signal is delivered")
        assert it.end() == "interrupted 0 handled 1 by_signal 1"


@pytest.mark.parametrize("rounds", [1, world.ROUNDS])
def test_threads_that_stop_late_are_not_interrupted_either(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a thread gets no processor to stop on in time: it has been interrupted all the same."""
    monkeypatch.setattr(world, "ROUNDS", rounds)

    def once() -> None:
        with StoppedWorld(it.pid, bound_s=0) as stopped_late:
            assert len(stopped_late.tracees) == 4

    with target("waits") as it:
        given_up = 0
        for _ in range(60):
            try:
                run_as_tracer(once)
            except NotStopped:
                given_up += 1
            time.sleep(0.003)
        assert given_up or rounds > 1
        assert all(tracer_of(it.pid, tid) == 0 for tid in thread_ids(it.pid))
        assert it.end() == "interrupted 0 handled 0 by_signal 0"


def pending(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return any(int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd")))


def test_signals_that_arrive_meanwhile_are_all_delivered() -> None:
    """Queued signals keep their order and values; ignored SIGSEGV and SIGTRAP stay ignored through stops and calls."""
    libc = ctypes.CDLL(None, use_errno=True)
    with target("queued") as it:
        real_time = signal.SIGRTMIN + 1
        sent: list[int] = []

        def while_stopped(world: StoppedWorld) -> None:
            for _ in range(10):
                assert libc.sigqueue(it.pid, real_time, ctypes.c_void_p(len(sent))) == 0
                sent.append(1)

        for _ in range(10):
            stopped(it.pid, while_stopped)
            assert libc.sigqueue(it.pid, real_time, ctypes.c_void_p(len(sent))) == 0
            sent.append(1)
        eventually(lambda: not pending(it.pid), "all signals are delivered")
        assert it.end() == "handled 110 in_order 1 ignored 1"


def test_a_group_stop_stays_one_unless_it_is_ended() -> None:
    with target("many", "3") as it:
        os.kill(it.pid, signal.SIGSTOP)
        eventually(lambda: all(thread_state(it.pid, tid) == "T" for tid in thread_ids(it.pid)), "stopped")
        install(it.pid, (), ())
        eventually(lambda: all(thread_state(it.pid, tid) == "T" for tid in thread_ids(it.pid)), "stopped again")
        take_over(it.pid, (), (), None)
        eventually(lambda: all(thread_state(it.pid, tid) in "RS" for tid in thread_ids(it.pid)), "running")
        assert it.end() == "ended"


def test_threads_that_come_and_go() -> None:
    with target("churn") as it:
        for _ in range(60):
            stopped(it.pid)
        assert it.end() == "ended"


def test_a_process_whose_main_thread_has_ended() -> None:
    with target("leaderless") as it:
        eventually(lambda: thread_state(it.pid, it.pid) == "Z", "main thread ended")
        assert stopped(it.pid).threads == 1
        assert install(it.pid, (), ()).threads == 1
        assert it.end() == "ended"


def test_a_thread_in_vfork_cannot_be_stopped_but_lives() -> None:
    with target("vforked") as it:
        outcomes = [install(it.pid, (), ()) for _ in range(5)]
        assert all(outcome.attempts >= 1 for outcome in outcomes)
        assert it.line() == "ended\n"
        assert it.process.wait(WAIT_S) == 0


def test_a_process_that_is_gone() -> None:
    with target("many", "1") as it:
        it.end()
        with pytest.raises(StrobeError) as raised:
            install(it.pid, (), ())
        assert raised.value.code is Code.PROCESS_EXITED


def test_another_tracer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "RETRY_S", 0.1)
    with target("many", "2") as it:
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            calls.ptrace(calls.SEIZE, it.pid)
            held.set()
            let_go.wait(WAIT_S)

        holder = threading.Thread(target=hold)
        holder.start()
        try:
            assert held.wait(WAIT_S)
            with pytest.raises(StrobeError) as raised:
                install(it.pid, (), ())
            assert raised.value.code is Code.TIMEOUT and "traced by" in raised.value.what
        finally:
            let_go.set()
            holder.join()
        assert it.end() == "ended"


def test_a_call_returns_and_leaves_no_trace() -> None:
    with target("windows") as it, Memory(it.pid) as memory:
        answer, fault = (int(word, 16) for word in it.words[2:4])
        results: list[int] = []
        for _ in range(20):
            stopped(it.pid, lambda world: results.append(call(world, memory, answer)))
        assert [result & 0xFFFFFFFF for result in results] == [(1 << 32) - 42] * 20  # an int in eax
        with pytest.raises(CallFailed, match="SIGSEGV"):
            stopped(it.pid, lambda world: call(world, memory, fault))
        assert it.end() == "called 1 elsewhere 0"


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.full)])
def test_a_caller_may_be_killed_in_the_middle_of_a_call(kills: int) -> None:
    """The thread that it had borrowed finds its way back by itself, with its registers, its signal mask and the system call that it was in."""
    script = (
        "import sys\n"
        "from actors.session.ptrace.call import call\n"
        "from actors.session.ptrace.memory import Memory\n"
        "from tests.actor.test_ptrace import stopped\n"
        "pid, function = int(sys.argv[1]), int(sys.argv[2], 16)\n"
        "with Memory(pid) as memory:\n"
        "    while True:\n"
        "        results = []\n"
        "        stopped(pid, lambda world: results.append(call(world, memory, function, 5)))\n"
        "        assert results == [3000005], results\n"
        "        print('called', flush=True)\n"
    )
    instants = random.Random(kills)
    with target("borrowed") as it:
        for _ in range(kills):
            caller = subprocess.Popen([sys.executable, "-c", script, str(it.pid), it.words[0]], stdout=subprocess.PIPE, text=True, cwd=ROOT)
            assert caller.stdout is not None
            assert caller.stdout.readline() == "called\n"
            time.sleep(instants.random() * 0.03)  # some instant: most of them are in a call, which takes 5 ms
            caller.kill()
            caller.communicate()
            assert it.process.poll() is None
        assert it.end() == "rounds 1 wrong 0"


def test_a_call_in_a_blocked_thread_and_with_ignored_signals() -> None:
    """The main thread sits in a read or in epoll_wait; SIGSEGV and SIGTRAP are ignored. Neither changes by a call that ends there."""
    with target("queued") as it, Memory(it.pid) as memory:
        data = Path(f"/proc/{it.pid}/maps").read_text()
        text = next(int(line.split("-")[0], 16) for line in data.splitlines() if "r-xp" in line and "stopping" in line)
        spot = Patch(hook=0, address=text, data=b"\xb8\xf9\xff\xff\xff\xc3", original=bytes(memory.read(text, 6)))  # mov eax, -7; ret
        install(it.pid, (), [spot])
        assert [take_over(it.pid, (), (), text).armed for _ in range(10)] == [-7] * 10
        restore(it.pid, [spot])
        os.kill(it.pid, signal.SIGRTMIN + 1)  # its value is 0, as the handler expects: no signal was left blocked
        eventually(lambda: not pending(it.pid), "the signal is delivered")
        assert it.end() == "handled 1 in_order 1 ignored 1"


def test_threads_inside_a_window_are_moved_to_the_thunk() -> None:
    with target("windows") as it, Memory(it.pid) as memory:
        window, thunk = (int(word, 16) for word in it.words[:2])
        jump = b"\xe9" + (thunk - window - 5).to_bytes(4, "little", signed=True)
        patch = Patch(hook=1, address=window, data=jump, original=b"\x90" * 5, thunk=thunk - 16, entries=bytes((16, 17, 18, 19, 20)))
        for _ in range(100):
            assert not install(it.pid, (), [patch]).skipped
            assert memory.read(window, 5) == jump
            assert not restore(it.pid, [patch]).skipped
            assert memory.read(window, 5) == b"\x90" * 5
        assert it.end() == "called 1 elsewhere 1"


def test_a_handler_that_returns_into_a_window_is_waited_for() -> None:
    with target("handler") as it:
        window, thunk = (int(word, 16) for word in it.words)
        assert it.line().startswith("ready")  # in its handler
        jump = b"\xe9" + (thunk - window - 5).to_bytes(4, "little", signed=True)
        patch = Patch(hook=1, address=window, data=jump, original=b"\xcc\x90\x90\x90\x90", thunk=thunk, entries=bytes((1, 1, 1, 1, 1)))
        outcome = install(it.pid, (), [patch])
        assert outcome.attempts > 1 and not outcome.skipped
        assert it.end() == "handled 1"


def test_other_bytes_are_left_alone_and_reported() -> None:
    with target("windows") as it, Memory(it.pid) as memory:
        code = int(it.words[4], 16)
        good = Patch(hook=1, address=code, data=b"abcde", original=bytes(5))
        bad = Patch(hook=2, address=code + 16, data=b"abcde", original=b"other")
        unmapped = Patch(hook=3, address=64 << 10, data=b"abcde", original=bytes(5))
        assert install(it.pid, (), [good, bad, unmapped]).skipped == [unmapped, bad]
        assert memory.read(code, 21) == b"abcde" + bytes(16)
        assert install(it.pid, (), [good]).skipped == []  # there already
        assert it.end() == "called 1 elsewhere 0"


def test_ten_thousand_patches_in_one_short_stop(record_property: Callable[[str, object], None]) -> None:
    """4 MiB of code, 10,000 patches: the bound holds on an idle machine; here only its order of magnitude is checked."""
    with target("windows") as it, Memory(it.pid) as memory:
        code = int(it.words[4], 16)
        patches = [Patch(hook=n, address=code + n * 400, data=n.to_bytes(5, "little"), original=bytes(5)) for n in range(1, 10_001)]
        first = install(it.pid, [Write(address=code + 4 * 400 + 100, data=b"thunk")], patches)
        times = sorted([restore(it.pid, patches).stopped_s, install(it.pid, (), patches).stopped_s, restore(it.pid, patches).stopped_s])
        record_property("first_stop_ms", first.stopped_s * 1000)
        record_property("median_stop_ms", times[1] * 1000)
        assert times[0] < 0.1
        assert memory.read(code, 4 << 20).count(0) == (4 << 20) - 5
        assert it.end() == "called 1 elsewhere 0"
