"""Damaged ELF and DWARF files for the indexer's worker: an answer or a clear error each, no death, no hang, no growth."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from actors.indexer.elf import ElfFile
from actors.indexer.worker_process import Quarantine, WorkerProcess
from strobe.errors import Code, StrobeError
from strobe.model.probe import Module
from strobe.protocol.indexer import Load, Plans, PlansReply, Resolve, ResolveReply, Symbolise
from tests.fuzz.processes import grown, resident
from tests.harness.targets import program

FILES: Final = 120
FILES_OFTEN: Final = 3400  # three programs: over 10,000
ASK_S: Final = 20.0
CODES: Final = {Code.VALIDATION_ERROR, Code.NO_DEBUG_SYMBOLS, Code.LIMIT_EXCEEDED}
SECTIONS: Final = (
    ".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_rnglists", ".debug_ranges", ".debug_aranges", ".debug_loclists", ".debug_line_str",
    ".symtab", ".strtab", ".dynsym", ".dynstr", ".eh_frame", ".eh_frame_hdr", ".rodata", ".data.rel.ro", ".note.gnu.build-id",
)  # fmt: skip
PROGRAMS: Final = [
    ("deaths.c", ("-O2", "-gdwarf-5")),
    ("indexer/abi.cpp", ("-O1", "-gdwarf-4")),
    ("indexer/abi.cpp", ("-O0", "-gdwarf-5")),
]


@pytest.mark.parametrize(("source", "flags"), PROGRAMS, ids=lambda part: part if isinstance(part, str) else part[-1])
@pytest.mark.parametrize("files", [FILES, pytest.param(FILES_OFTEN, marks=[pytest.mark.full, pytest.mark.alone])])
def test_damaged_files(source: str, flags: tuple[str, ...], files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path / "home"))
    whole = program(source, *flags)
    asyncio.run(_fuzz(whole, files, tmp_path))


async def _fuzz(whole: Path, files: int, folder: Path) -> None:
    chance = Random(f"{files} {whole.name}")
    content, ranges = whole.read_bytes(), _ranges(whole)
    worker = WorkerProcess(Quarantine())
    outcomes: Counter[str] = Counter()
    try:
        await worker.start()
        pid, before = worker.pid, {}
        for number in range(files):
            path = folder / f"damaged-{number}"
            path.write_bytes(_damaged(content, ranges, chance))
            began = time.monotonic()
            outcomes[await _ask_all(worker, str(path), chance)] += 1
            assert worker.pid == pid, f"the worker died of {path}"
            assert time.monotonic() - began < ASK_S, path
            path.unlink()
            if number == files // 10:
                before = resident([pid])
            if number % 100 == 0:
                shutil.rmtree(folder / "home", ignore_errors=True)
        assert not grown(before, resident([pid]))
    finally:
        await worker.stop()
    assert outcomes["answered"] > files // 4, outcomes
    assert outcomes[Code.VALIDATION_ERROR], outcomes


def _ranges(path: Path) -> list[range]:
    """Where the headers and the sections worth damaging are."""
    elf = ElfFile.open(str(path))
    found = [elf.section(name) for name in SECTIONS]
    ranges = [range(section.offset, section.offset + section.size) for section in found if section is not None and section.size]
    elf.close()
    size = path.stat().st_size
    return [range(64), range(64, 64 + 13 * 56), range(size - 40 * 64, size), *ranges]


def _damaged(content: bytes, ranges: list[range], chance: Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4, 12))):
        where = chance.choice(ranges)
        at = chance.choice(where)
        way = chance.randrange(5)
        if way == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif way == 1:
            data[at : at + 8] = chance.choice((bytes(8), b"\xff" * 8, b"\x7f" + b"\xff" * 7, chance.randbytes(8)))
        elif way == 2:
            size = min(chance.choice((16, 200, 4000)), where.stop - at)
            data[at : at + size] = chance.choice((bytes(size), b"\x80" * size, chance.randbytes(size)))
        elif way == 3:
            other = chance.choice(where)
            data[at : at + 16] = data[other : other + 16]
        elif chance.random() < 0.2:
            del data[at:]
            break
    return bytes(data)


async def _ask_all(worker: WorkerProcess, path: str, chance: Random) -> str:
    """`answered`, or the code of the first refusal."""
    try:
        await worker.ask(Load(path=path), ASK_S)
        ask: Any = Resolve(patterns=["case_*", "**"], modules=[path], main_modules=[path], project_root="/nonexistent", limit=60)
        found: ResolveReply = (await worker.ask(ask, ASK_S)).reply
        ask = Plans(places=found.places, budget_ms=200, depth=3, project_root="/nonexistent")
        plans: PlansReply = (await worker.ask(ask, ASK_S)).reply
        assert len(plans.plans) == len(found.places)
        module = Module(path=path, bias=0, start=0, end=1 << 40)
        await worker.ask(Symbolise(modules=[module], addresses=[chance.randrange(1 << 22) for _ in range(20)]), ASK_S)
    except StrobeError as error:
        assert error.code in CODES, error
        assert error.what and error.next_step and "Traceback" not in error.what
        return str(error.code)
    return "answered"
