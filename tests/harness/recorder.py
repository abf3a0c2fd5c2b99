"""Running the recorder's self-test programs (tests/targets/native_selftest) and giving back what they recorded. No Frida, no session."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from strobe.lanes.layout import CHUNK_SLOTS, ChunkState, HookFlag
from strobe.lanes.pool import Pool, create_pool
from tests.harness.recording import ChunkCopy, Recording, copy_chunk, read_recording
from tests.harness.targets import program, require

NATIVE = Path(__file__).resolve().parents[2] / "agent" / "native"
BOTH = HookFlag.ENABLED | HookFlag.WANT_EXIT
DEADLINE_S = 60


@cache
def recorder_library() -> Path:
    """build/strobe-recorder.so, made if it is stale."""
    require("make")
    subprocess.run(["make", "-C", str(NATIVE), "build/strobe-recorder.so"], check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
    return NATIVE / "build" / "strobe-recorder.so"


def with_recorder(source: Path, folder: Path, *flags: str, without: Collection[str] = ()) -> Path:
    """An ordinary program of `source` and the recorder's own sources, but those named: what sanitizers can watch. The recorder's memcpy and memset are
    renamed: a sanitizer has its own."""
    sources = [source, *(path for path in sorted(NATIVE.glob("recorder_*.[cS]")) if path.name not in without)]
    command = [require("gcc"), "-g", "-O1", "-std=gnu11", "-Wall", "-pthread", *flags]

    def compiled(path: Path) -> Path:
        made = folder / f"{path.stem}.o"
        renamed = ["-Dmemcpy=recorder_memcpy", "-Dmemset=recorder_memset"] if path.parent == NATIVE else []
        subprocess.run([*command, *renamed, "-c", "-o", made, path], check=True, stdin=subprocess.DEVNULL, timeout=180)
        return made

    with ThreadPoolExecutor(os.cpu_count()) as compilers:
        objects = list(compilers.map(compiled, sources))
    subprocess.run([*command, "-o", folder / source.stem, *objects], check=True, stdin=subprocess.DEVNULL, timeout=180)
    return folder / source.stem


@dataclass(frozen=True)
class Run:
    """How a self-test program ended, and what it left in the pool. `pool` is unlinked but still mapped."""

    code: int
    stdout: str
    stderr: str
    recording: Recording
    pool: Pool

    def numbers(self) -> dict[str, int]:
        """`name 12 other 3` on stdout as {"name": 12, "other": 3}."""
        words = self.stdout.split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True))


@contextmanager
def temporary_pool(chunks: int, flags: int = BOTH) -> Iterator[tuple[Path, Pool]]:
    with tempfile.TemporaryDirectory(prefix="strobe-recorder-", dir="/dev/shm") as folder:
        path = Path(folder) / "pool"
        pool = create_pool(path, chunks)
        pool.hooks["flags"][:64] = flags
        yield path, pool


def drain(pool: Pool, memory: memoryview) -> list[ChunkCopy]:
    """Takes what is in closed chunks and frees them, as a session does after the store's commit: only those published to their end."""
    taken = []
    for index in range(pool.chunk_count):
        if pool.chunks["state"][index] != ChunkState.CLOSED:
            continue
        copy = copy_chunk(memory, index)
        if copy.end != CHUNK_SLOTS:
            continue
        taken.append(copy)
        pool.chunks["state"][index] = ChunkState.FREE
        pool.add_free(1)
    return taken


def run_selftest(
    source: str, scenario: str, argument: int = 1, *, chunks: int = 128, flags: int = BOTH, drained: bool = False, prepare: Mapping[str, int] | None = None,
    build: tuple[str, ...] = ("-O2",), environment: Mapping[str, str] | None = None, mark_streams: bool = False, whole: bool = True,
    compiler: str | None = None,
) -> Run:  # fmt: skip
    """Runs `scenario` of a program to its end. `drained`: closed chunks are taken while it runs. `prepare`: pool header fields to set first.
    `mark_streams`: the pool knows the program's stdout and stderr. `whole`: False when calls may have been cut short within the recorder.
    AssertionError when the program does not end within DEADLINE_S.
    """
    binary = program(f"native_selftest/{source}", *build, compiler=compiler)
    with temporary_pool(chunks, flags) as (path, pool), tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        for name, value in (prepare or {}).items():
            pool.header[name] = value
        if mark_streams:
            files = [os.fstat(out.fileno()), os.fstat(err.fileno())]
            pool.set_streams((files[0].st_dev, files[1].st_dev), (files[0].st_ino, files[1].st_ino))
        command = [str(binary), str(recorder_library()), str(path), scenario, str(argument)]
        return _finish(command, path, pool, out.fileno(), err.fileno(), drained, {**os.environ, **(environment or {})}, whole)


def run_preloaded(binary: Path, arguments: list[str], functions: str, *, chunks: int = 64, environment: Mapping[str, str] | None = None) -> Run:
    """Runs any program with `functions` of it traced from its start (native_selftest/preload.c)."""
    preload = program("native_selftest/preload.c", "-O2", "-shared", "-fPIC", name="preload.so")
    with temporary_pool(chunks) as (path, pool), tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        ours = {"LD_PRELOAD": str(preload), "SELFTEST_RECORDER": str(recorder_library()), "SELFTEST_POOL": str(path), "SELFTEST_FUNCTIONS": functions}
        return _finish([str(binary), *arguments], path, pool, out.fileno(), err.fileno(), False, {**os.environ, **(environment or {}), **ours})


def _finish(command: list[str], path: Path, pool: Pool, out: int, err: int, drained: bool, environment: Mapping[str, str], whole: bool = True) -> Run:
    taken: list[ChunkCopy] = []
    memory = memoryview(pool.chunks.base) if drained else memoryview(b"")  # type: ignore[arg-type]  # an array that owns no memory has a base
    deadline = time.monotonic() + DEADLINE_S
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
    try:
        while process.poll() is None:
            assert time.monotonic() < deadline, f"{command[3:]} did not end within {DEADLINE_S} s"
            if drained:
                taken += drain(pool, memory)
            try:
                process.wait(0.001 if drained else 0.05)
            except subprocess.TimeoutExpired:
                continue
    finally:
        process.kill()
        process.wait()
    texts = [os.pread(file, 1 << 20, 0).decode() for file in (out, err)]
    return Run(process.returncode, texts[0], texts[1], read_recording(path, taken, whole=whole), pool)
