"""Core dumps as files: what a small one says, and that a damaged one is refused or read, and nothing else."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from strobe.core import Core
from strobe.core.dump import NOTES_BYTES_MAX
from strobe.core.notes import NT_AUXV, NT_FILE, NT_PRPSINFO, NT_PRSTATUS, NT_SIGINFO, REGISTERS
from strobe.errors import Code, StrobeError

STACK, DATA, CODE = 0x7FFD_0000_0000, 0x5555_0000_4000, 0x5555_0000_1000


def note(kind: int, body: bytes) -> bytes:
    return struct.pack("<III", 5, len(body), kind) + b"CORE\0\0\0\0" + body + bytes(-len(body) % 4)


def status(tid: int, signo: int, **registers: int) -> bytes:
    body = bytearray(336)
    struct.pack_into("<h", body, 12, signo)
    struct.pack_into("<i", body, 32, tid)
    for number, name in enumerate(REGISTERS):
        struct.pack_into("<Q", body, 112 + 8 * number, registers.get(name, number))
    return bytes(body)


def small_core(folder: Path) -> Path:
    """Two threads; a saved stack and data, code that is in a file alone."""
    file = folder / "program"
    file.write_bytes(bytes(4096) + b"code" * 1024)
    names = f"{file}\0".encode()
    files = struct.pack("<QQ", 1, 4096) + struct.pack("<QQQ", CODE, CODE + 4096, 1) + names
    info = struct.pack("<iiiiQ", 11, 0, 1, 0, 0x10) + bytes(104)
    notes = b"".join([
        note(NT_PRSTATUS, status(71, 11, rsp=STACK + 512, rip=CODE + 8)),
        note(NT_PRPSINFO, bytes(24) + struct.pack("<i", 70) + bytes(12) + b"program".ljust(16, b"\0") + bytes(80)),
        note(NT_SIGINFO, info), note(NT_AUXV, struct.pack("<QQQQ", 3, CODE + 64, 0, 0)), note(NT_FILE, files), note(NT_PRSTATUS, status(72, 0)),
    ])  # fmt: skip
    start = 64 + 56 * 4
    stack, data = b"s" * 1024, b"d" * 100
    places = [(STACK, 1024, 1024, 6, start + len(notes)), (DATA, 100, 4096, 6, start + len(notes) + 1024), (CODE, 0, 4096, 5, start)]
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1".ljust(16, b"\0"), 4, 62, 1, 0, 64, 0, 0, 64, 56, 4, 0, 0, 0)
    table = struct.pack("<IIQQQQQQ", 4, 0, start, 0, 0, len(notes), 0, 4)
    table += b"".join(struct.pack("<IIQQQQQQ", 1, flags, offset, address, 0, saved, size, 1) for address, saved, size, flags, offset in places)
    core = folder / "core"
    core.write_bytes(header + table + notes + stack + data)
    return core


def test_what_it_says(tmp_path: Path) -> None:
    core = Core.open(small_core(tmp_path))
    core.check_files()
    assert (core.pid, core.signo, [thread.tid for thread in core.threads]) == (70, 11, [71, 72])
    assert (core.notes.code, core.notes.address, core.notes.name) == (1, 0x10, "program")
    assert core.program == str(tmp_path / "program")
    assert core.threads[0].registers["rip"] == CODE + 8
    assert core.read(STACK + 1020, 100) == b"ssss"
    assert core.read(DATA + 96, 8) == b"dddd"  # what was not saved, and is of no file, is not there
    assert core.read(CODE + 8, 8) == b"codecode"
    assert core.read(0x10, 8) == b""
    assert f"{CODE:x}-{CODE + 4096:x} r-xp 00001000 00:00 0 {tmp_path / 'program'}" in core.maps().splitlines()
    core.close()


def test_one_that_is_cut_off_while_it_is_open(tmp_path: Path) -> None:
    path = small_core(tmp_path)
    core = Core.open(path)
    os.truncate(path, 1000)
    assert core.read(DATA, 8) == b""
    assert core.read(CODE + 8, 8) == b"codecode"
    core.close()


@pytest.mark.parametrize(("packed", "undo"), [(gzip.compress, "gunzip -k"), (bz2.compress, "bunzip2 -k"), (lzma.compress, "xz -dk")])
def test_a_compressed_one_is_refused_with_how_to_unpack_it(tmp_path: Path, packed: Callable[[bytes], bytes], undo: str) -> None:
    path = small_core(tmp_path)
    path.write_bytes(packed(path.read_bytes()))
    with pytest.raises(StrobeError) as refused:
        Core.open(path)
    assert refused.value.code is Code.VALIDATION_ERROR and undo in refused.value.next_step


def test_a_file_that_is_gone_is_told_and_not_read(tmp_path: Path) -> None:
    path = small_core(tmp_path)
    (tmp_path / "program").unlink()
    core = Core.open(path)
    assert core.read(CODE + 8, 8) == b""
    assert list(core.changed) == [str(tmp_path / "program")]
    assert str(tmp_path / "program") not in core.maps()
    core.close()


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_one_is_refused_or_read(tmp_path: Path, seed: int) -> None:
    good = small_core(tmp_path).read_bytes()
    damaged = tmp_path / "damaged"
    chance = random.Random(seed)
    refused = 0
    for _ in range(400):
        content = bytearray(good[: chance.randrange(1, len(good))] if chance.random() < 0.3 else good)
        for _ in range(chance.randrange(1, 8)):
            content[chance.randrange(len(content))] = chance.choice((0, 0xFF, chance.randrange(256)))
        damaged.write_bytes(content)
        try:
            core = Core.open(damaged)
        except StrobeError as error:
            assert error.code is Code.VALIDATION_ERROR
            refused += 1
            continue
        core.check_files()
        core.maps()
        core.read(core.threads[0].registers["rsp"] - 256, 4096)
        assert isinstance(core.program, str) and isinstance(core.signo, int)
        core.close()
    assert 0 < refused < 400


def core_of(folder: Path, notes: bytes, loads: list[tuple[int, int]], entry_bytes: int = 56, copies: int = 1) -> Path:
    """`loads`: (address, bytes), none of them saved; the notes' program header `copies` times."""
    start = 64 + 56 * (copies + len(loads))
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1".ljust(16, b"\0"), 4, 62, 1, 0, 64, 0, 0, 64, entry_bytes, copies + len(loads), 0, 0, 0)
    table = struct.pack("<IIQQQQQQ", 4, 0, start, 0, 0, len(notes), 0, 4) * copies
    table += b"".join(struct.pack("<IIQQQQQQ", 1, 5, start, address, 0, 0, size, 1) for address, size in loads)
    core = folder / "made"
    core.write_bytes(header + table + notes)
    return core


def test_many_files_and_mappings_take_no_longer_each(tmp_path: Path) -> None:
    """The most that a kernel allows a process by default (vm.max_map_count), which would be minutes if each were compared with each."""
    count = 65_000
    places = [(0x1000_0000 + number * 8192, 4096) for number in range(count)]
    files = struct.pack("<QQ", count, 4096) + b"".join(struct.pack("<QQQ", at, at + size, 0) for at, size in places) + b"/none\0" * count
    core = Core.open(core_of(tmp_path, note(NT_PRSTATUS, status(71, 11)) + note(NT_FILE, files), places))
    began = time.process_time()
    core.check_files()
    lines = core.maps().splitlines()
    assert time.process_time() - began < 10
    assert (len(lines), core.changed) == (count, {"/none": "there is no such file here"})
    core.close()


def test_notes_that_claim_to_be_many_are_read_once(tmp_path: Path) -> None:
    """Program headers that all name the same bytes make a small file say as much as a large one."""
    notes = note(NT_PRSTATUS, status(71, 11)) + note(0x7777, bytes(1 << 20))
    core = Core.open(core_of(tmp_path, notes, [], copies=20_000))
    assert [thread.tid for thread in core.threads[:2]] == [71, 71]
    assert len(core.threads) <= NOTES_BYTES_MAX // len(notes) + 1
    core.close()
    with pytest.raises(StrobeError, match="program headers of 0 bytes"):
        Core.open(core_of(tmp_path, notes, [], entry_bytes=0, copies=20_000))


@pytest.mark.parametrize("wrong", [status(71, -1), status(71, 65), status(-71, 11)])
def test_signals_and_threads_that_cannot_be_are_refused(tmp_path: Path, wrong: bytes) -> None:
    with pytest.raises(StrobeError) as refused:
        Core.open(core_of(tmp_path, note(NT_PRSTATUS, wrong), []))
    assert refused.value.code is Code.VALIDATION_ERROR


def test_the_stack_of_an_overflow_begins_where_it_is_mapped(tmp_path: Path) -> None:
    core = Core.open(small_core(tmp_path))
    for pointer in (STACK, STACK - 16, STACK - 4096, STACK + 100):
        assert core.stack(pointer, 256, 4096) == (STACK, b"s" * 1024)
    assert core.stack(STACK + 512, 256, 4096) == (STACK + 256, b"s" * 768)
    assert core.stack(STACK - 3 * 4096, 256, 4096)[1] == b""
    core.close()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StrobeError, match="no regular file"):
        Core.open(tmp_path / "pipe")
