"""Who may be attached to, judged from what /proc tells: each refusal says why, and what leads on. The process is not touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from strobe.errors import Code, StrobeError
from strobe.preflight.loaded import is_loaded, wait_loaded
from strobe.preflight.running import Running, check_attachable, check_permitted, look_at, may_trace_all

ANYONE = Running(
    pid=71, name="server", state="S", start_ticks=5, uids=(1000, 1000, 1000, 1000), program="/opt/server", cwd="/", command=("server",), group=71, threads=1,
    tracer=0, kernel=False, same_namespace=True, ours=False,
)  # fmt: skip


def test_an_ordinary_process_of_ones_own() -> None:
    check_attachable(ANYONE, 1000)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"state": "Z"}, Code.PROCESS_EXITED, "zombie"),
        ({"state": "X"}, Code.PROCESS_EXITED, "71"),
        ({"state": "Z", "threads": 3}, Code.FRIDA_ATTACH_FAILED, "main thread has ended"),
        ({"kernel": True}, Code.FRIDA_ATTACH_FAILED, "kernel"),
        ({"group": 70}, Code.FRIDA_ATTACH_FAILED, "thread of process 70"),
        ({"ours": True}, Code.FRIDA_ATTACH_FAILED, "Strobe's own"),
        ({"uids": (0, 0, 0, 0)}, Code.FRIDA_ATTACH_FAILED, "user 0"),
        ({"uids": (1000, 0, 1000, 0)}, Code.FRIDA_ATTACH_FAILED, "user 0"),  # set-uid
        ({"tracer": 1 << 30}, Code.FRIDA_ATTACH_FAILED, "debugging it already"),
        ({"same_namespace": False}, Code.FRIDA_ATTACH_FAILED, "container"),
        ({"program": "/opt/b\udce4d"}, Code.FRIDA_ATTACH_FAILED, "no UTF-8 text"),
    ],
)
def test_who_may_not_be_attached_to(change: dict[str, Any], code: Code, words: str) -> None:
    with pytest.raises(StrobeError) as refused:
        check_attachable(replace(ANYONE, **change), 1000)
    assert refused.value.code is code
    assert words in refused.value.what
    assert refused.value.next_step


@pytest.mark.parametrize(
    ("scope", "privileged", "names_sysctl"),
    [(None, False, False), (0, False, False), (1, False, True), (2, False, True), (3, False, True), (1, True, False), (2, True, False), (3, True, True)],
)
def test_a_refusal_of_the_kernel_names_the_setting_that_caused_it(scope: int | None, privileged: bool, names_sysctl: bool) -> None:
    error = check_permitted(71, scope, privileged)
    assert error.code is Code.FRIDA_ATTACH_FAILED
    assert (f"kernel.yama.ptrace_scope is {scope}" in error.what) == names_sysctl
    assert ("SYS_PTRACE" in error.what) == (not names_sysctl or scope == 2)


def test_the_capability_is_read_from_status() -> None:
    assert may_trace_all("Name:\tx\nCapEff:\t000001ffffffffff\n")
    assert may_trace_all("CapEff:\t0000000000080000\n")
    assert not may_trace_all("CapEff:\t0000000000040000\nCapBnd:\t000001ffffffffff\n")
    assert not may_trace_all("Name:\tx\n")


def test_a_real_process() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", "a b"], stdin=subprocess.PIPE) as process:
        wait_loaded(process.pid, 20)
        found = look_at(process.pid)
        assert found.program == os.path.realpath(sys.executable)
        assert found.command[-1] == "a b"
        assert found.uids == (os.getuid(), os.geteuid(), os.getuid(), os.geteuid())
        assert (found.kernel, found.same_namespace, found.ours, found.tracer, found.group) == (False, True, False, 0, process.pid)
        assert is_loaded(process.pid)
        process.communicate(b"\n")
    with pytest.raises(StrobeError) as gone:
        look_at(process.pid)
    assert gone.value.code is Code.PROCESS_EXITED


def test_one_that_has_not_begun_is_not_loaded() -> None:
    """Held at its first instruction by ptrace, no library is there yet."""
    script = "import ctypes, os; ctypes.CDLL(None).ptrace(0, 0, None, None); os.execv('/bin/sleep', ['sleep', '30'])"
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert not is_loaded(process.pid)
        with pytest.raises(StrobeError) as late:
            wait_loaded(process.pid, 0.05)
        assert late.value.code is Code.TIMEOUT
    finally:
        os.kill(process.pid, signal.SIGKILL)  # Popen takes a stop under ptrace for the end
        while not os.WIFSIGNALED(os.waitpid(process.pid, 0)[1]):
            pass


def test_this_very_process_is_ours() -> None:
    assert look_at(os.getpid()).ours
