"""Addresses → frames: names, offsets, source lines, inlined calls."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import Final

from actors.indexer.binary import Binary
from actors.indexer.culprit import culprit
from actors.indexer.elf import ElfFile
from actors.indexer.frame_values import FRAMES_MAX, FrameValues
from actors.indexer.lines import Location
from actors.indexer.project_formatters import project_formatters
from actors.indexer.source_name import source_name
from actors.indexer.unwind.frame_table import FrameTable
from actors.indexer.unwind.walker import Mapped, Memory, Step, Walker
from strobe.errors import StrobeError
from strobe.model.probe import Frame, Module

SIGNAL_FRAME: Final = "<signal handler called>"  # as gdb writes it


class AddressSpace:
    """The target's mapped files. `open_binary` gives a module's file; one that cannot be read has no names. `wanting` collects the files
    whose lines are not indexed yet."""

    def __init__(self, modules: Sequence[Module], open_binary: Callable[[str], Binary]) -> None:
        self._open = open_binary
        ordered = sorted(modules, key=lambda module: module.start)
        self._modules = ordered
        self._starts = [module.start for module in ordered]
        self._binaries: dict[str, Binary | None] = {}
        self._tables: dict[str, FrameTable] = {}
        self.wanting: list[str] = []

    def module_at(self, address: int) -> Module | None:
        index = bisect.bisect_right(self._starts, address) - 1
        return self._modules[index] if index >= 0 and address < self._modules[index].end else None

    def binary(self, module: Module) -> Binary | None:
        """None when the file is gone, unreadable, or no longer the one that is mapped."""
        if module.path not in self._binaries:
            try:
                found: Binary | None = self._open(module.path)
            except StrobeError:
                found = None
            if found is not None and module.build_id and found.elf.build_id and module.build_id != found.elf.build_id:
                found = None
            self._binaries[module.path] = found
        return self._binaries[module.path]

    def find(self, address: int) -> tuple[Mapped, ElfFile] | None:
        module = self.module_at(address)
        binary = self.binary(module) if module is not None else None
        if module is None or binary is None:
            return None
        return Mapped(module.path, module.bias, module.start, module.end), binary.elf

    def table(self, elf: ElfFile) -> FrameTable:
        if elf.path not in self._tables:
            self._tables[elf.path] = FrameTable(elf)
        return self._tables[elf.path]

    def unwind(self, registers: dict[int, int], stack_base: int, stack: bytes, limit: int, project_root: str | None) -> tuple[list[Frame], int | None]:
        """The frames, and which of them a reader looks at first."""
        memory = Memory(stack_base, stack, self.find)
        steps = Walker(memory, self.find, self.table).walk(registers, limit)
        levels = [self._frames(step) for step in steps]
        flat = [frame for frames in levels for frame in frames]
        first = culprit(flat[:limit], project_root)
        values = FrameValues(memory, project_formatters(project_root).formatters, self.function_name)
        for index, step in enumerate(steps):
            module = self.module_at(step.address)
            binary = self.binary(module) if module is not None and not step.trampoline else None
            has_first = first is not None and any(frame is flat[first] for frame in levels[index])
            if module is not None and binary is not None and (index < FRAMES_MAX or has_first):
                levels[index] = values.add(levels[index], step, module, binary, local_of=flat[first] if has_first and first is not None else None)
        return [frame for frames in levels for frame in frames][:limit], first

    def function_name(self, address: int) -> str | None:
        """Of the function that begins there."""
        module = self.module_at(address)
        binary = self.binary(module) if module is not None else None
        symbol = binary.addresses.find(address - module.bias) if module is not None and binary is not None else None
        return source_name(symbol[0]).shown if symbol is not None and symbol[1] == 0 else None

    def symbolise(self, steps: Sequence[Step]) -> list[Frame]:
        return [frame for step in steps for frame in self._frames(step)]

    def _frames(self, step: Step) -> list[Frame]:
        module = self.module_at(step.address)
        if module is None:
            return [Frame(address=step.address, function=None, module=None)]
        binary = self.binary(module)
        if binary is None:
            return [Frame(address=step.address, function=None, module=module.path)]
        if step.trampoline:
            return [Frame(address=step.address, function=SIGNAL_FRAME, module=module.path)]
        linked = step.address - module.bias
        return self._levels(step.address, linked if step.exact else linked - 1, module.path, binary)

    def _levels(self, address: int, linked: int, path: str, binary: Binary) -> list[Frame]:
        symbol = binary.addresses.find(linked)
        lines = binary.lines
        if lines is None and binary.dwarf_file is not None and path not in self.wanting:
            self.wanting.append(path)
        levels: list[Location] = lines.at(linked) if lines is not None else []
        inlined = [_frame(address, path, level, inlined=True) for level in levels[:-1]]
        outer = levels[-1] if levels else Location("", None, None)
        if symbol is None:
            return [*inlined, _frame(address, path, outer, inlined=False)]
        name, offset = symbol
        offset += address - self._modules[bisect.bisect_right(self._starts, address) - 1].bias - linked
        shown = source_name(name).shown
        return [*inlined, Frame(address=address, function=shown, module=path, offset=offset, file=outer.file, line=outer.line)]


def _frame(address: int, path: str, level: Location, *, inlined: bool) -> Frame:
    function = source_name(level.raw).shown if level.raw else None
    return Frame(address=address, function=function, module=path, file=level.file, line=level.line, inlined=inlined)
