"""The parts that follow children, alone: what is judged, what is remembered, gates, ends."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from actors.session.children.exits import in_words, open_process, wait_status
from actors.session.children.gate import Gate, Left
from actors.session.children.image import ENTRY_AT, entry_code
from actors.session.children.lingering import holders, start_ticks, still
from actors.session.children.policy import Policy
from actors.session.children.processes import KEPT_MAX, SHOWN_MAX, Processes
from actors.session.ptrace.remote import Order
from strobe.artifacts import artifact
from strobe.lanes.layout import GATE_COUNT, GateReason, GateState
from strobe.lanes.machine import Machine, machine
from strobe.lanes.pool import LEAST_CHUNKS, Pool, create_pool


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return create_pool(tmp_path / "pool", LEAST_CHUNKS)


@pytest.fixture
def code() -> Machine:
    found = machine()
    if found is None:
        pytest.skip("no machine code may be made here")
    return found


def asks(pool: Pool, index: int, *, ticket: int = 5, reason: GateReason = GateReason.EXEC) -> None:
    row = pool.gates[index]
    row["ticket"], row["pid"], row["tid"], row["reason"], row["path"], row["folder"] = ticket, os.getpid(), os.getpid(), reason, 4096, -100
    row["state"] = GateState.ASKS


def test_gates_lie_within_the_first_page(pool: Pool) -> None:
    assert pool.gates.size == GATE_COUNT
    assert pool.gate_word(0, "state") == pool.word("magic") + 2048
    assert not pool.gates["state"].any()


def test_a_gate_is_looked_at_and_opened(pool: Pool, code: Machine) -> None:
    assert Gate.look(pool, code, 3) is None
    asks(pool, 3)
    gate = Gate.look(pool, code, 3)
    assert gate is not None and (gate.pid, gate.folder, gate.path, gate.reason) == (os.getpid(), -100, 4096, GateReason.EXEC)
    gate.hold()
    assert gate.state is GateState.HELD
    assert gate.let_go()
    assert int(pool.gates[3]["state"]) == GateState.GO
    assert not gate.let_go()


def test_who_has_left_is_left_alone(pool: Pool, code: Machine) -> None:
    """The gate may be another's by now: nothing is changed there."""
    asks(pool, 3)
    gate = Gate.look(pool, code, 3)
    assert gate is not None
    asks(pool, 3, ticket=6)
    assert gate.state is None and not gate.let_go()
    with pytest.raises(Left):
        gate.hold()
    with pytest.raises(Left):
        gate.order(Order.SLAB, 1, 2)
    assert int(pool.gates[3]["state"]) == GateState.ASKS and int(pool.gates[3]["first"]) == 0


def test_orders_are_answered(pool: Pool, code: Machine) -> None:
    asks(pool, 0)
    gate = Gate.look(pool, code, 0)
    assert gate is not None

    def obey() -> None:
        row = pool.gates[0]
        deadline = time.monotonic() + 10
        while int(row["state"]) != GateState.ORDER and time.monotonic() < deadline:
            time.sleep(0.001)
        row["answer"] = int(row["order"]) * 1000 + int(row["first"]) + int(row["second"])
        row["state"] = GateState.DONE

    thread = threading.Thread(target=obey)
    thread.start()
    assert gate.order(Order.REGISTER, 5, 6) == 4011
    thread.join()
    gate.hold()
    assert gate.let_go()


def test_swap(code: Machine, pool: Pool) -> None:
    place = pool.word("follower")
    assert code.swap(place, 0, 7) == 0 and int(pool.header["follower"]) == 7
    assert code.swap(place, 0, 8) == 7 and int(pool.header["follower"]) == 7


def test_what_is_judged(tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    policy = Policy(trace_shells=False)
    assert policy.judge(shell).shell and not Policy(trace_shells=True).judge(shell).shell
    assert policy.judge(sys.executable).why_not is None
    script = tmp_path / "script"
    script.write_text(f"#!{shell}\n")
    script.chmod(0o755)
    assert policy.judge(str(script)).shell
    text = tmp_path / "text"
    text.write_text("nothing to run")
    text.chmod(0o755)
    assert "neither an ELF program" in (policy.judge(str(text)).why_not or "")
    with pytest.raises(OSError):
        policy.judge(str(tmp_path / "missing"))
    shutil.copy(sys.executable, script)  # the same path is another file now
    assert policy.judge(str(script)) == policy.judge(sys.executable)


def test_what_is_remembered_of_processes() -> None:
    known = Processes(1)
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        known.exec(child.pid, "/bin/first", None)
        known.entered(child.pid, 3)
        [one] = known.shown()
        assert one == {"pid": child.pid, "parent": os.getpid(), "command": "/bin/first", "followed": True, "hooks": 3, "alive": True}
        known.exec(child.pid, "/bin/second", "it is linked statically")
        [one] = known.shown()
        assert (one["command"], one["followed"], one["whyNot"]) == ("/bin/second", False, "it is linked statically")
        child.communicate(b"\n")
    for number in range(3):
        known.exec(1 << 30 | number, "/bin/third", "it is a Go program")
    assert known.told() == ["/bin/third was not followed (3 times): it is a Go program.", "/bin/second was not followed: it is linked statically."]
    for number in range(KEPT_MAX + 10):
        known.exec(1 << 30 | number, "/bin/fourth", None)
    assert len(known.shown()) == SHOWN_MAX and not known.shown()[-1]["alive"]
    assert "could not be loaded" in known.shown()[-1]["whyNot"]
    known.close()


def test_how_a_process_ended() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input(); raise SystemExit(5)"], stdin=subprocess.PIPE) as child:
        pidfd = open_process(child.pid)
        assert pidfd is not None and wait_status(pidfd) is None
        child.communicate(b"\n")
    status = wait_status(pidfd)
    os.close(pidfd)
    if tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (6, 15):
        assert status is not None and in_words(status) == "with code 5"
    assert in_words(9) == "by signal 9"
    assert open_process(1 << 30) is None


def test_who_has_a_file_mapped(tmp_path: Path) -> None:
    file = tmp_path / "pool"
    file.write_bytes(bytes(4096))
    code = "import mmap, sys\nwith open(sys.argv[1], 'r+b') as file, mmap.mmap(file.fileno(), 4096): print(flush=True); input()"
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 4096):  # who looks has it mapped too: a session that was started anew
        assert holders(file, 0) == {}
        with subprocess.Popen([sys.executable, "-S", "-c", code, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            ticks = start_ticks(other.pid)
            assert ticks is not None
            found = holders(file, ticks)
            assert found == {other.pid: ticks} and still(found)
            assert holders(file, ticks + 1) == {}
            other.communicate(b"\n")
    assert not still(found)
    assert start_ticks(1 << 30) is None


def test_the_way_in_needs_nothing_of_its_library() -> None:
    """The code is copied to another place: the word that it finds its struct by lies where it is filled in, and is empty."""
    found = entry_code(artifact("strobe-recorder.so"))
    assert found[:2] == b"\x52\x53"  # push rdx, push rbx: it begins at its beginning
    assert found[ENTRY_AT : ENTRY_AT + 8] == bytes(8)
    assert 256 < len(found) < 8192
