"""`strobe demo`, as a newcomer runs it: it finds the bug, says what is missing, and leaves nothing behind."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.harness.targets import require

ROOT = Path(__file__).resolve().parents[2]
DEMO_S = 120
NR_PTRACE = 101  # x86_64, asm/unistd_64.h


def demo(tmp_path: Path, *arguments: str, before: Callable[[], None] | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), **variables}
    command = [sys.executable, "-m", "strobe.cli", "demo", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=DEMO_S, check=False, preexec_fn=before, stdin=subprocess.DEVNULL)


def left_in(folder: Path) -> list[str]:
    return [str(path) for path in folder.iterdir()]


def test_the_bug_is_found(tmp_path: Path) -> None:
    """In a folder whose path is too long for sockets: those are in another one."""
    require("gcc")
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    with tempfile.TemporaryDirectory(prefix="runtime-") as runtime:
        run = demo(folder, XDG_RUNTIME_DIR=runtime)
        assert left_in(Path(runtime)) == []
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.sub(r"\s+", " ", run.stdout)
    assert "Found: it dies in charge_fee" in found
    assert "next_slot(11) returned 12" in found
    assert "-> debug_trace" in found
    assert "\x1b[" not in run.stdout
    assert "Traceback" not in run.stdout + run.stderr
    assert left_in(folder) == []


def test_without_a_compiler_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    run = demo(tmp_path, PATH=str(tmp_path / "bin"))
    assert run.returncode == 3
    assert "no C compiler" in run.stdout
    assert "apt-get install" in run.stdout


def test_where_nothing_can_be_traced_it_shows_what_works(tmp_path: Path) -> None:
    """ptrace is refused by a seccomp filter, as in a container without SYS_PTRACE."""
    require("gcc")
    run = demo(tmp_path, before=forbid_ptrace)
    assert run.returncode == 3, run.stdout + run.stderr
    assert "payment 1: 8.15 to shop" in run.stdout
    assert "does not let a process trace another" in run.stdout
    assert run.stdout.count("What would help:") == 1
    assert "Traceback" not in run.stdout + run.stderr
    assert left_in(tmp_path) == []


def test_arguments_are_refused(tmp_path: Path) -> None:
    run = demo(tmp_path, "--fast")
    assert run.returncode == 2
    assert "--fast" in run.stderr


def forbid_ptrace() -> None:
    """seccomp(2): ptrace answers EPERM in this process and all its children (struct sock_filter: code, jt, jf, k)."""
    load_number, jump_if_equal, answer = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EPERM
    program = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in ((load_number, 0, 0, 0), (jump_if_equal, 0, 1, NR_PTRACE), (answer, 0, 0, refuse), (answer, 0, 0, allow))
    )
    buffer = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(filters, len(filters))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(holder), 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP with a filter
        os._exit(ctypes.get_errno())
