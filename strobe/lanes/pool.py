"""The pool file (strobe.lanes.layout): making it, opening one that exists, and its tables as numpy views of the shared memory."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from strobe.errors import Code, StrobeError
from strobe.lanes.clock import choose_clock
from strobe.lanes.dtype import CHUNK_DTYPE, CRASH_DTYPE, GATE_DTYPE, HOOK_DTYPE, POOL_DTYPE
from strobe.lanes.layout import (
    CHUNK_BYTES,
    CHUNK_MAP_OFFSET,
    CHUNK_SLOTS,
    CHUNK_SLOTS_OFFSET,
    CHUNKS_OFFSET,
    CRASH_BYTES,
    CRASH_COUNT,
    CRASH_OFFSET,
    GATE_BYTES,
    GATE_COUNT,
    GATES_OFFSET,
    HEADER_BYTES,
    HOOK_CAPACITY,
    HOOKS_OFFSET,
    LAYOUT_VERSION,
    POOL_MAGIC,
    SLOT_BYTES,
    Clock,
)
from strobe.lanes.machine import machine

DEFAULT_CHUNKS: Final = 128  # 32 MiB
MOST_CHUNKS: Final = 1024  # 256 MiB: what a pool may grow to
LEAST_CHUNKS: Final = 8
GROW_AGAIN_S: Final = 1.0  # after there was no room to grow
_KEEP_SIZE_PUNCH_HOLE: Final = 3  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, <linux/falloc.h>
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_CHUNKS_FREE_OFFSET: Final = POOL_DTYPE.fields["chunks_free"][1] if POOL_DTYPE.fields else 0


@dataclass(eq=False)
class Pool:
    """A mapped pool. The arrays are views: reading one reads what the target's threads just wrote, writing one writes to them.

    `header` and the tables are structured arrays with the layout's names; `maps` is (chunks, CHUNK_SLOTS) u8 and `slots`
    (chunks, CHUNK_SLOTS × 32) u8; `heads` is the first 32 bytes of every chunk as (chunks, 8) u32, for one cheap look at all of them.

    The file is mapped whole; its end, from `chunk_count` on, is a hole that `grow` fills. `maps` and `slots` reach over it, but nobody may
    look there: on a full disk that is SIGBUS.
    """

    path: Path
    header: NDArray[np.void]
    gates: NDArray[np.void]
    hooks: NDArray[np.void]
    crashes: NDArray[np.void]
    crash_bytes: NDArray[np.uint8]
    all_chunks: NDArray[np.void]
    all_heads: NDArray[np.uint32]
    maps: NDArray[np.uint8]
    slots: NDArray[np.uint8]
    shortfall: str | None = None  # why it has fewer chunks than were asked for, in words for the caller
    grow_after: float = 0.0  # time.monotonic() before which growing is not tried

    @property
    def chunk_count(self) -> int:
        return min(int(self.header["chunk_count"]), self.chunks_most)

    @property
    def chunks_most(self) -> int:
        return self.all_chunks.size

    @property
    def chunks(self) -> NDArray[np.void]:
        return self.all_chunks[: self.chunk_count]

    @property
    def heads(self) -> NDArray[np.uint32]:
        return self.all_heads[: self.chunk_count]

    @property
    def clock(self) -> Clock:
        return Clock(int(self.header["clock"]))

    def set_recording(self, on: bool) -> None:
        self.header["recording"] = int(on)

    def set_streams(self, devices: tuple[int, int], inodes: tuple[int, int]) -> None:
        """Which files count as the target's stdout and stderr: only writes to those are marked."""
        self.header["stream_ino"] = inodes
        self.header["stream_dev"] = devices

    def word(self, name: str) -> int:
        """Address, in this process, of a field of the header."""
        fields = POOL_DTYPE.fields
        assert fields is not None  # it has some
        return int(self.header.ctypes.data) + int(fields[name][1])

    def gate_word(self, gate: int, name: str) -> int:
        """The same of a field of a gate."""
        fields = GATE_DTYPE.fields
        assert fields is not None
        return int(self.header.ctypes.data) + GATES_OFFSET + gate * GATE_BYTES + int(fields[name][1])

    def add_free(self, amount: int) -> None:
        """Atomic against the writers. Without machine code a plain add, which may lose a writer's; the collector mends the counter."""
        functions = machine()
        if functions is None:
            self.header["chunks_free"] += amount
        else:
            functions.atomic_add(self.header.ctypes.data + _CHUNKS_FREE_OFFSET, amount)

    def grow(self) -> bool:
        """Twice as many chunks, where the file was made for them and its file system has room for that twice over. For one process at a time.

        False: it stays as it is, and what finds no room in it is counted as lost; not tried again for a second where that failed.
        """
        now, have = time.monotonic(), self.chunk_count
        wanted = min(2 * have, self.chunks_most)
        if wanted <= have or now < self.grow_after:
            return False
        try:
            _fill_hole(self.path, pool_bytes(have), pool_bytes(wanted))
        except OSError as error:  # no room, no more files, a limit: none of it is worth the session
            self.grow_after = now + GROW_AGAIN_S
            self.shortfall = f"The pool cannot grow beyond {have * CHUNK_BYTES >> 20} MiB ({error.strerror}): bursts may lose records sooner."
            return False
        self.header["chunk_count"] = wanted
        self.header["image_floor"] = _image_floor(int(self.header["reserve_chunks"]), wanted, self.chunks_most)
        self.add_free(wanted - have)
        return True

    def give_back(self) -> None:
        """The memory of the records, which nobody reads any more, although a target that lives on has the file mapped for its life."""
        with suppress(OSError):  # somebody removed it, or the file system keeps no holes
            file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                count = os.fstat(file).st_size - CHUNKS_OFFSET
                _LIBC.fallocate(file, _KEEP_SIZE_PUNCH_HOLE, ctypes.c_long(CHUNKS_OFFSET), ctypes.c_long(count))
            finally:
                os.close(file)

    def unlink(self) -> None:
        self.path.unlink(missing_ok=True)


def create_pool(path: Path, chunk_count: int = DEFAULT_CHUNKS, *, chunks_most: int = 0, clock: Clock | None = None) -> Pool:
    """A new pool file (0600), its chunks allocated before anyone maps them: a sparse file on a full disk would kill the target.

    It may `grow` up to `chunks_most` chunks, unless there was no room for the first ones.

    Where there is not room for `chunk_count` chunks it is made with half of them, and so on; `shortfall` then says so. LIMIT_EXCEEDED
    when not even LEAST_CHUNKS fit, VALIDATION_ERROR when the file is there already.
    """
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise StrobeError(Code.VALIDATION_ERROR, f"The pool {path} exists already.", "Open it, or remove it if its session is gone.", value=str(path)) from None
    try:
        granted = _allocate(file, path, max(chunk_count, LEAST_CHUNKS))
        if chunk_count <= granted < chunks_most:
            os.ftruncate(file, pool_bytes(chunks_most))
        pool = _map(path, file)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)
    if granted < chunk_count:
        room, asked = granted * CHUNK_BYTES >> 20, chunk_count * CHUNK_BYTES >> 20
        pool.shortfall = f"{path.parent} has room for {room} MiB of records, not {asked} MiB: bursts may lose records sooner."
    _fill_header(pool.header, granted, pool_bytes(pool.chunks_most), choose_clock() if clock is None else clock)
    return pool


def open_pool(path: Path) -> Pool:
    """A pool that exists; StrobeError VALIDATION_ERROR when the file is none, or of another version."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise StrobeError(Code.VALIDATION_ERROR, f"The pool {path} cannot be opened: {error.strerror}.", "Start a new session.", value=str(path)) from None
    try:
        header = np.frombuffer(os.pread(file, HEADER_BYTES, 0).ljust(HEADER_BYTES, b"\0"), dtype=POOL_DTYPE)[0]
        size = os.fstat(file).st_size
        if header["magic"] != POOL_MAGIC or header["version"] != LAYOUT_VERSION or header["pool_bytes"] != size:
            what = f"{path} is not a pool of layout version {LAYOUT_VERSION} ({size} bytes)."
            raise StrobeError(Code.VALIDATION_ERROR, what, "Start a new session.", value=str(path))
        return _map(path, file)
    finally:
        os.close(file)


def pool_bytes(chunk_count: int) -> int:
    return CHUNKS_OFFSET + chunk_count * CHUNK_BYTES


def _allocate(file: int, path: Path, chunk_count: int) -> int:
    """How many chunks it got: `chunk_count`, or the largest half, quarter … that fits."""
    while True:
        try:
            os.posix_fallocate(file, 0, pool_bytes(chunk_count))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            os.ftruncate(file, 0)
            if chunk_count <= LEAST_CHUNKS:
                what = f"{path.parent} has no room for {pool_bytes(chunk_count) >> 20} MiB of records ({error.strerror})."
                raise StrobeError(Code.LIMIT_EXCEEDED, what, f"Free space on {path.parent}.", value=str(path.parent)) from None
            chunk_count = max(chunk_count // 2, LEAST_CHUNKS)
        else:
            return chunk_count


def _fill_hole(path: Path, start: int, end: int) -> None:
    """Allocates the bytes [start, end) of a file, if there is room for twice that. Raises OSError."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        room = os.fstatvfs(file)
        if room.f_bavail * room.f_frsize < 2 * (end - start):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.posix_fallocate(file, start, end - start)
    finally:
        os.close(file)


def _map(path: Path, file: int) -> Pool:
    # The mapping is closed when the last view of it is gone (numpy holds it), batches that are under way included.
    memory = np.frombuffer(mmap.mmap(file, 0, flags=mmap.MAP_SHARED), dtype=np.uint8)
    chunks = memory[CHUNKS_OFFSET:].reshape(-1, CHUNK_BYTES)
    crash_bytes = memory[CRASH_OFFSET : CRASH_OFFSET + CRASH_COUNT * CRASH_BYTES].reshape(CRASH_COUNT, CRASH_BYTES)
    return Pool(
        path=path,
        header=memory[:HEADER_BYTES].view(POOL_DTYPE).reshape(()),
        gates=memory[GATES_OFFSET : GATES_OFFSET + GATE_COUNT * GATE_BYTES].view(GATE_DTYPE),
        hooks=memory[HOOKS_OFFSET:CRASH_OFFSET].view(HOOK_DTYPE),
        crashes=crash_bytes.view(CRASH_DTYPE).reshape(CRASH_COUNT),
        crash_bytes=crash_bytes,
        all_chunks=chunks.view(CHUNK_DTYPE).reshape(-1),
        all_heads=chunks[:, :32].view(np.uint32),
        maps=chunks[:, CHUNK_MAP_OFFSET : CHUNK_MAP_OFFSET + CHUNK_SLOTS],
        slots=chunks[:, CHUNK_SLOTS_OFFSET : CHUNK_SLOTS_OFFSET + CHUNK_SLOTS * SLOT_BYTES],
    )


def _image_floor(reserve: int, chunk_count: int, most: int) -> int:
    """An eighth of what traces may use while the pool may still grow, then a quarter."""
    return reserve + chunk_count // (8 if chunk_count < most else 4)


def _fill_header(header: NDArray[np.void], chunk_count: int, file_bytes: int, clock: Clock) -> None:
    reserve, chunks_most = max(1, chunk_count // 8), (file_bytes - CHUNKS_OFFSET) // CHUNK_BYTES
    values: dict[str, Any] = {
        "version": LAYOUT_VERSION,
        "clock": clock,
        "chunk_bytes": CHUNK_BYTES,
        "chunk_count": chunk_count,
        "hooks_offset": HOOKS_OFFSET,
        "hook_capacity": HOOK_CAPACITY,
        "crash_count": CRASH_COUNT,
        "crash_offset": CRASH_OFFSET,
        "chunks_offset": CHUNKS_OFFSET,
        "pool_bytes": file_bytes,
        "recording": 1,
        "reserve_chunks": reserve,
        "image_floor": _image_floor(reserve, chunk_count, chunks_most),
        "chunks_free": chunk_count,
        "magic": POOL_MAGIC,  # last: whoever sees it sees the rest
    }
    for name, value in values.items():
        header[name] = value
