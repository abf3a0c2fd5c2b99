"""Real programs, built `-O2 -g` from source that a package registry serves: sqlite3's shell (C, from npm), cppcheck and its preprocessor (C++, from Debian's
source packages).

Both are kept outside the repository, in `$XDG_CACHE_HOME/strobe-tests` (default ~/.cache), by version and flags. No address is named: npm and apt know their
own. Debian's source packages are read with a private apt configuration, so nothing of the system changes and no root is needed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.harness.targets import TARGETS, in_ci, require

SQLITE_PACKAGE: Final = "sqlite3@6.0.1"
CPPCHECK_VERSION: Final = "2.10"
FLAGS: Final = "-O2 -g"
FETCH_S: Final = 300
BUILD_S: Final = 1200


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "strobe-tests"


def sqlite3_shell() -> Path:
    """The sqlite3 shell, about 290,000 lines of C in two files. Built in less than a minute."""
    return _built("sqlite3", SQLITE_PACKAGE, "sqlite3", _build_sqlite)


def cppcheck() -> Path:
    """cppcheck in a folder with its cfg/ and samples/: about 111,000 lines of C++. Its build takes 3–6 minutes on 2 cores."""
    return _built("cppcheck", CPPCHECK_VERSION, "cppcheck", _build_cppcheck)


def simplecpp() -> Path:
    """The preprocessor that cppcheck has within it, with a main of our own: 4,000 lines of C++. Built in less than a minute."""
    main = (TARGETS / "indexer" / "simplecpp_main.cpp").read_bytes()
    return _built("simplecpp", f"{CPPCHECK_VERSION} {hashlib.sha256(main).hexdigest()}", "simplecpp", _build_simplecpp)


def source_lines(*patterns: str, under: Path) -> int:
    """Lines of the files below `under` that match one of `patterns`."""
    return sum(path.read_bytes().count(b"\n") for pattern in patterns for path in under.glob(pattern))


def _built(name: str, version: str, binary: str, build: Callable[[Path, Path], None]) -> Path:
    digest = hashlib.sha256(f"{version} {FLAGS}".encode()).hexdigest()[:12]
    folder = cache() / f"{name}-{digest}"
    with _lock(f"{name}.lock"):
        if not (folder / binary).is_file():
            with tempfile.TemporaryDirectory(dir=cache(), prefix=f"{name}-build-") as work:
                build(Path(work), folder)
    return folder / binary


@contextmanager
def _lock(name: str) -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(*command: str, cwd: Path, timeout_s: int, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def _fetched(what: str, *command: str, cwd: Path, env: dict[str, str] | None = None) -> None:
    """Runs a download. A machine that cannot reach the registry skips the test by name; CI fails."""
    try:
        _run(*command, cwd=cwd, timeout_s=FETCH_S, env=env)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        if in_ci():
            raise
        pytest.skip(f"the source of {what} cannot be fetched here: {error}")


def _unpacked(archive: Path, into: Path) -> Path:
    """The one folder that `archive` holds, unpacked in `into`."""
    into.mkdir(exist_ok=True)
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    (folder,) = (path for path in into.iterdir() if path.is_dir())
    return folder


def _build_sqlite(work: Path, folder: Path) -> None:
    npm, gcc = require("npm"), require("gcc")
    _fetched("sqlite3", npm, "pack", SQLITE_PACKAGE, "--silent", cwd=work)
    package = _unpacked(next(work.glob("sqlite3-*.tgz")), work / "package")
    source = _unpacked(next((package / "deps").glob("sqlite-autoconf-*.tar.gz")), work / "source")
    _install(folder, source, ["shell.c", "sqlite3.c", "sqlite3.h", "sqlite3ext.h"])
    # Compiled where the sources stay, so that the debug information names files that exist.
    parts = ["shell.c", "sqlite3.c"]
    jobs = [subprocess.Popen([gcc, *FLAGS.split(), "-c", "-o", f"{part}.o", str(folder / part)], cwd=work, stdin=subprocess.DEVNULL) for part in parts]
    assert [job.wait(BUILD_S) for job in jobs] == [0] * len(jobs)
    _run(gcc, "-o", "sqlite3", *(f"{part}.o" for part in parts), "-lm", "-lpthread", "-ldl", cwd=work, timeout_s=60)
    (work / "sqlite3").rename(folder / "sqlite3")


def _build_cppcheck(work: Path, folder: Path) -> None:
    make = require("make")
    require("g++")
    _debian_source("cppcheck", work)
    source = _unpacked(next(work.glob(f"cppcheck_{CPPCHECK_VERSION}*.orig.tar.gz")), work / "source")
    _install(folder, source, ["Makefile", "lib", "cli", "externals", "cfg", "samples", "platforms", "addons"])
    _run(make, "-j2", f"CXXFLAGS={FLAGS} -w", "SHELL=/bin/sh", "cppcheck", cwd=folder, timeout_s=BUILD_S)
    for item in folder.rglob("*.o"):
        item.unlink()


def _build_simplecpp(work: Path, folder: Path) -> None:
    gxx = require("g++")
    _debian_source("cppcheck", work)
    source = _unpacked(next(work.glob(f"cppcheck_{CPPCHECK_VERSION}*.orig.tar.gz")), work / "source")
    _install(folder, source / "externals" / "simplecpp", ["simplecpp.cpp", "simplecpp.h"])
    shutil.copy(TARGETS / "indexer" / "simplecpp_main.cpp", folder / "main.cpp")
    _run(gxx, *FLAGS.split(), "-w", "-o", str(work / "simplecpp"), "main.cpp", "simplecpp.cpp", cwd=folder, timeout_s=BUILD_S)
    (work / "simplecpp").rename(folder / "simplecpp")


def _install(folder: Path, source: Path, names: list[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in names:
        (source / name).rename(folder / name)


def _debian_source(package: str, work: Path) -> None:
    """Downloads the source package of Debian or Ubuntu, from where this machine gets its binary packages."""
    apt = require("apt-get")
    parts, state, archives = work / "apt" / "sources", work / "apt" / "lists", work / "apt" / "cache"
    for path in (parts, state / "partial", archives / "archives" / "partial"):
        path.mkdir(parents=True)
    for index, text in enumerate(_source_lists()):
        (parts / f"{index}{text[0]}").write_text(text[1])
    config = work / "apt" / "apt.conf"
    config.write_text(
        f'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "{parts}";\nDir::State::Lists "{state}";\nDir::Cache "{archives}";\nAPT::Sandbox::User "";\n'
    )
    env = {"APT_CONFIG": str(config)}
    _fetched(package, apt, "update", "-q", cwd=work, env=env)
    _fetched(package, apt, "source", "-q", "--download-only", package, cwd=work, env=env)


def _source_lists() -> Iterator[tuple[str, str]]:
    """(suffix, text) of the system's own lists of Debian or Ubuntu archives, turned from binary to source packages."""
    for path in (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))):
        if not path.is_file() or not re.search(r"debian|ubuntu", text := path.read_text()):
            continue
        if path.suffix == ".sources":
            yield ".sources", re.sub(r"(?m)^Types:.*$", "Types: deb-src", text)
        elif path.suffix == ".list":
            yield ".list", "".join(re.sub(r"^\s*deb\s", "deb-src ", line) for line in text.splitlines(keepends=True) if re.match(r"\s*deb\s", line))
