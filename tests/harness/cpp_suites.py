"""Builds the C++ projects of the conformance tests: with CMake where there is a CMakeLists.txt, else one program a source, compiled once for all test runs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

BUILD_S = 300


def built(*libraries: str, main: str | None = None) -> Callable[[Path, Path], None]:
    """`main`: a source that holds the program's main, compiled once by itself."""

    def prepare(place: Path, root: Path) -> None:
        del root
        if (place / "CMakeLists.txt").exists():
            _run(["cmake", "-S", str(place), "-B", str(place / "build"), "-DCMAKE_BUILD_TYPE=Debug"], place)
            return
        (place / "build").mkdir()
        for source in sorted(place.glob("*.cpp")):
            if source.name != main:
                shutil.copy(_program(source, libraries, place / main if main is not None else None), place / "build" / f"{source.stem}_test")

    return prepare


def _program(source: Path, libraries: tuple[str, ...], main: Path | None) -> Path:
    parts = [source.read_bytes(), " ".join(libraries).encode(), main.read_bytes() if main is not None else b""]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strobe-tests"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "cpp-suites.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        objects = [_object(cache, main)] if main is not None else []
        program = cache / f"{source.stem}-{hashlib.sha256(b'/'.join(parts)).hexdigest()[:16]}"
        if not program.exists():
            _run(["g++", "-std=c++17", "-g", source.name, *objects, *libraries, "-pthread", "-o", f"{program}.part"], source.parent)
            Path(f"{program}.part").rename(program)
    return program


def _object(cache: Path, main: Path) -> str:
    path = cache / f"{main.stem}-{hashlib.sha256(main.read_bytes()).hexdigest()[:16]}.o"
    if not path.exists():
        _run(["g++", "-std=c++17", "-g", "-c", main.name, "-o", f"{path}.part"], main.parent)
        Path(f"{path}.part").rename(path)
    return str(path)


def _run(argv: list[str], cwd: Path) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=BUILD_S)
    assert done.returncode == 0, f"{argv}: {done.stdout}\n{done.stderr}"
