"""A process's code against its files: which functions have other bytes in memory than on disk."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection


def functions_changed(pid: int, names: Collection[str] | None = None) -> set[str]:
    """Functions of the program's own file (those of `names`, else all of them) whose bytes in process `pid` are not the file's."""
    program = str(Path(f"/proc/{pid}/exe").readlink())
    lines = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    start = min(int(parts[0].split("-")[0], 16) - int(parts[2], 16) for parts in lines if parts[-1] == program)
    changed = set()
    with Path(program).open("rb") as file, Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        elf = ELFFile(file)
        bias = start if elf.header["e_type"] == "ET_DYN" else 0
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        for symbol in table.iter_symbols():
            if symbol["st_info"]["type"] != "STT_FUNC" or not symbol["st_size"] or symbol["st_shndx"] == "SHN_UNDEF" or (names and symbol.name not in names):
                continue
            offset = next(iter(elf.address_offsets(symbol["st_value"], symbol["st_size"])))
            file.seek(offset)
            memory.seek(bias + symbol["st_value"])
            if memory.read(symbol["st_size"]) != file.read(symbol["st_size"]):
                changed.add(symbol.name)
    return changed
