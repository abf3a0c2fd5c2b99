"""The file names of a unit's line table: what DW_AT_decl_file counts (DWARF 5 §6.2.4, DWARF 4 §6.2.4). The line program itself is not read."""

from __future__ import annotations

import posixpath
import struct
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.unit import Entry, Unit
from actors.indexer.leb import unsigned

_FILES_MAX: Final = 100_000
_PATH: Final = 1  # DW_LNCT_path
_DIRECTORY: Final = 2  # DW_LNCT_directory_index


def declaring_file(entry: Entry) -> str | None:
    """Raises DwarfError."""
    index, names = entry.number(dw.DECL_FILE), file_names(entry.unit)
    return names[index] if index is not None and 0 <= index < len(names) else None


def file_names(unit: Unit) -> list[str]:
    """By DW_AT_decl_file's number, with their folders; absolute where the unit says its own."""
    if unit.line_files is None:
        offset = unit.root.number(dw.STMT_LIST)
        try:
            unit.line_files = [] if offset is None else _read(unit, unit.file.elf.bytes_of(".debug_line"), offset)
        except (struct.error, IndexError, ValueError) as error:
            raise DwarfError(f"line table at {offset:#x} is malformed") from error
    return unit.line_files


def _read(unit: Unit, data: bytes, at: int) -> list[str]:
    (length,) = struct.unpack_from("<I", data, at)
    wide, at = (8, at + 12) if length == 0xFFFFFFFF else (4, at + 4)
    (version,) = struct.unpack_from("<H", data, at)
    at += 2 + (2 if version >= 5 else 0) + wide  # address and segment sizes; header length
    at += 4 + (1 if version >= 4 else 0)  # minimum_instruction_length … line_range
    at += data[at]  # opcode_base, and the lengths of the standard opcodes
    folder = unit.root.text(dw.COMP_DIR) or ""
    return _version5(unit, data, at, wide, folder) if version >= 5 else _version4(data, at, folder)


def _version4(data: bytes, at: int, folder: str) -> list[str]:
    folders, at = [folder], at
    while data[at]:
        end = data.index(0, at)
        folders.append(posixpath.join(folder, data[at:end].decode("utf-8", "replace")))
        at = end + 1
    at += 1
    files = [""]  # numbered from 1
    while data[at] and len(files) < _FILES_MAX:
        end = data.index(0, at)
        name = data[at:end].decode("utf-8", "replace")
        directory, at = unsigned(data, end + 1)
        _, at = unsigned(data, at)
        _, at = unsigned(data, at)
        files.append(posixpath.normpath(posixpath.join(folders[directory] if directory < len(folders) else folder, name)))
    return files


def _version5(unit: Unit, data: bytes, at: int, wide: int, folder: str) -> list[str]:
    folders, at = _entries(unit, data, at, wide)
    files, at = _entries(unit, data, at, wide)
    bases = [posixpath.join(folder, name) for name, _ in folders] or [folder]
    return [posixpath.normpath(posixpath.join(bases[directory] if directory < len(bases) else folder, name)) for name, directory in files]


def _entries(unit: Unit, data: bytes, at: int, wide: int) -> tuple[list[tuple[str, int]], int]:
    """A DWARF 5 entry list, as (path, directory index)."""
    formats, at = [], at + 1
    for _ in range(data[at - 1]):
        kind, at = unsigned(data, at)
        form, at = unsigned(data, at)
        formats.append((kind, form))
    count, at = unsigned(data, at)
    if count > _FILES_MAX:
        raise ValueError(f"{count} files")
    found: list[tuple[str, int]] = []
    for _ in range(count):
        name, directory = "", 0
        for kind, form in formats:
            value, at = unit.value(form, at, data=data, offset_bytes=wide)
            if kind == _PATH:
                name = unit.file.string(unit, form, value) or ""
            elif kind == _DIRECTORY and isinstance(value, int):
                directory = value
        found.append((name, directory))
    return found, at
