"""Test programs, compiled on demand: `program("exceptions.cpp", "-O2")` is the path of the built file.

Builds are kept in tests/targets/build/<stem>-<digest>/<stem>, where the digest covers source, files `<stem>_*` next to it, shared headers, flags and the
compiler's version, so a change of any of them builds anew. A missing compiler skips the test with the compiler's name as the reason; with CI set it fails.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

import pytest

TARGETS: Final = Path(__file__).resolve().parent.parent / "targets"
BUILD: Final = TARGETS / "build"
COMPILE_S: Final = 180
_COMPILERS: Final = {".c": "gcc", ".cpp": "g++", ".rs": "rustc"}
_ALWAYS: Final = {
    "gcc": ("-g", "-std=gnu11", "-Wall", "-pthread"),
    "g++": ("-g", "-std=c++20", "-Wall", "-pthread"),
    "rustc": ("-g", "--edition=2021"),
}
_FAMILY: Final = {"clang": "gcc", "clang++": "g++", "musl-gcc": "gcc"}


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def require(tool: str) -> str:
    """Absolute path of `tool`; else skips with its name as the reason, or fails in CI, where everything must be there."""
    path = shutil.which(tool)
    if path is None:
        message = f"{tool} is not installed"
        if in_ci():
            pytest.fail(f"{message}, and CI must have it")
        pytest.skip(message)
    return path


@cache
def compiler_version(path: str) -> str:
    flag = "-V" if path.endswith("rustc") else "--version"
    return subprocess.run([path, flag], capture_output=True, text=True, check=True, timeout=30, stdin=subprocess.DEVNULL).stdout


def without_inherited_signals() -> None:
    """`preexec_fn` of a run to compare with one under the keeper, which starts targets like this: no signal ignored (nohup) or blocked."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def program(source: str, *flags: str, compiler: str | None = None, name: str | None = None) -> Path:
    """Path of tests/targets/`source` built with `flags` after the language's usual ones; `name` is the file's, the source's stem by default."""
    path = TARGETS / source
    kind = compiler or _COMPILERS[path.suffix]
    tool = require(kind)
    family = Path(kind).name  # another toolchain's compiler is given by its path
    command = [tool, *_ALWAYS[_FAMILY.get(family, family)], *flags]
    digest = hashlib.sha256(repr((command, compiler_version(tool))).encode())
    for item in (path, *sorted({*TARGETS.glob("*.h"), *path.parent.glob("*.h"), *path.parent.glob(f"{path.stem}_*{path.suffix}")})):
        digest.update(item.read_bytes())
    built = BUILD / f"{path.stem}-{digest.hexdigest()[:12]}" / (name or path.stem)
    if not built.exists():
        _compile(command, path, built)
    return built


def _compile(command: list[str], source: Path, built: Path) -> None:
    """Builds into a temporary folder and renames, under a lock: several test runs may want the same program at once."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if built.exists():
            return
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            output = Path(folder) / "out" / built.name
            output.parent.mkdir()
            libraries = [] if source.suffix == ".rs" else ["-lm", "-ldl"]
            run = subprocess.run(
                [*command, "-o", str(output), str(source), *libraries],
                capture_output=True, text=True, timeout=COMPILE_S, stdin=subprocess.DEVNULL, check=False, cwd=folder,
            )  # fmt: skip
            if run.returncode:
                pytest.fail(f"{' '.join(run.args)}\n{run.stdout}{run.stderr}")
            if not built.parent.exists():
                output.parent.rename(built.parent)
            else:
                output.rename(built)
