"""Walks a saved stack from frame to frame. Memory is what was saved, and the read-only parts of the mapped files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from actors.indexer.elf import PT_LOAD, ElfFile
from actors.indexer.unwind.expression import ExpressionError, evaluate
from actors.indexer.unwind.frame_table import CfiError, Fde, FrameTable
from actors.indexer.unwind.rules import Row, Rule, row_at

RBP: Final = 6
RSP: Final = 7
RIP: Final = 16
KEPT: Final = frozenset({3, 6, 7, 12, 13, 14, 15, 16})  # rbx rbp rsp r12-r15 rip: a call leaves them as they were (psABI §3.2.1)
_MASK: Final = (1 << 64) - 1
_PF_W: Final = 2


class Unreadable(Exception):
    """The address is neither in the saved stack nor in read-only data."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A file at its place in the target."""

    path: str
    bias: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Step:
    """One frame: `address` is where it stands. `registers`: those known to be its own, by DWARF number; `cfa`: its canonical frame address."""

    address: int
    exact: bool  # the instruction itself: innermost, or hit by a signal; else a return address, to be looked up at address - 1
    trampoline: bool = False  # the kernel's return from a signal handler (`__restore_rt`)
    registers: Mapping[int, int] = field(default_factory=dict)
    cfa: int | None = None


class Memory:
    """Reads little-endian words."""

    def __init__(self, base: int, stack: bytes, find: Callable[[int], tuple[Mapped, ElfFile] | None]) -> None:
        self.base = base
        self._stack = stack
        self._find = find

    def read(self, address: int, size: int = 8) -> int:
        """Raises Unreadable."""
        offset = address - self.base
        if offset >= 0 and offset + size <= len(self._stack):
            return int.from_bytes(self._stack[offset : offset + size], "little")
        found = self._find(address)
        if found is not None:
            mapped, elf = found
            linked = address - mapped.bias
            for segment in elf.segments:
                if segment.type == PT_LOAD and not segment.flags & _PF_W and segment.address <= linked and linked + size <= segment.address + segment.file_size:
                    where = linked - segment.address + segment.offset
                    return int.from_bytes(elf.data[where : where + size], "little")
        raise Unreadable(hex(address))

    def end_within(self, address: int, size: int) -> int:
        """The first of these bytes that is not there, as far as the saved stack tells."""
        end = self.base + len(self._stack)
        return end if self.base <= address < end < address + size else address

    def holds(self, address: int, size: int = 16) -> bool:
        return self.base <= address and address + size <= self.base + len(self._stack)


class Walker:
    """`find(address)` gives the file mapped there, `table(elf)` its frame information."""

    def __init__(self, memory: Memory, find: Callable[[int], tuple[Mapped, ElfFile] | None], table: Callable[[ElfFile], FrameTable]) -> None:
        self._memory = memory
        self._find = find
        self._table = table

    def walk(self, registers: dict[int, int], limit: int) -> list[Step]:
        """Frames from the innermost out; ends where the stack does, where nothing is known, or at `limit`."""
        current = dict(registers)
        steps = [Step(current[RIP], True, registers=current)]
        while len(steps) < limit:
            caller = self._caller(current, steps[-1].exact, first=len(steps) == 1)
            if caller is None:
                break
            registers_after, exact = caller
            steps[-1] = replace(steps[-1], trampoline=exact, cfa=registers_after[RSP])
            if not registers_after[RIP] or (registers_after[RSP] <= current[RSP] and not exact):
                break
            current = registers_after
            own = current if exact else {number: value for number, value in current.items() if number in KEPT}
            steps.append(Step(current[RIP], exact, registers=own))
        return steps

    def _caller(self, registers: dict[int, int], exact: bool, *, first: bool) -> tuple[dict[int, int], bool] | None:
        """(the caller's registers, whether its rip is exact), or None at the end of the stack."""
        address = registers[RIP] if exact else registers[RIP] - 1
        found = self._find(address)
        try:
            if found is None:
                return self._by_return_address(registers) if first else self._by_frame_pointer(registers)
            mapped, elf = found
            fde = self._table(elf).find(address - mapped.bias)
            if fde is None:
                return self._by_frame_pointer(registers)
            return self._by_cfi(registers, fde, address - mapped.bias)
        except (CfiError, ExpressionError):
            return self._by_frame_pointer(registers)
        except Unreadable:
            return None

    def _by_cfi(self, registers: dict[int, int], fde: Fde, address: int) -> tuple[dict[int, int], bool] | None:
        row = row_at(fde, address)
        cfa = self._cfa(row, registers)
        caller = {**registers, RSP: cfa}
        for register, rule in row.registers.items():
            value = self._value(rule, cfa, registers)
            if value is not None:
                caller[register] = value
            elif register == fde.cie.return_register:
                return None  # undefined: the outermost frame (psABI §3.4.1, _start)
        if fde.cie.return_register not in row.registers:
            return None
        caller[RIP] = caller[fde.cie.return_register]
        return caller, fde.cie.signal_frame

    def _cfa(self, row: Row, registers: dict[int, int]) -> int:
        if row.cfa is None:
            raise CfiError("no frame address")
        if isinstance(row.cfa, bytes):
            return evaluate(row.cfa, registers, self._memory.read)
        register, offset = row.cfa
        if register not in registers:
            raise CfiError(f"frame address in register {register}")
        return (registers[register] + offset) & _MASK

    def _value(self, rule: Rule, cfa: int, registers: dict[int, int]) -> int | None:
        kind, operand = rule
        if isinstance(operand, bytes):
            value = evaluate(operand, registers, self._memory.read, cfa)
            return self._memory.read(value) if kind == "expression" else value
        if kind == "offset":
            return self._memory.read((cfa + operand) & _MASK)
        if kind == "value_offset":
            return (cfa + operand) & _MASK
        return registers.get(operand) if kind == "register" else None

    def _by_return_address(self, registers: dict[int, int]) -> tuple[dict[int, int], bool] | None:
        """A call to where there is no code: the return address was just pushed."""
        caller = {**registers, RIP: self._memory.read(registers[RSP]), RSP: registers[RSP] + 8}
        return (caller, False) if self._find(caller[RIP] - 1) is not None else self._by_frame_pointer(registers)

    def _by_frame_pointer(self, registers: dict[int, int]) -> tuple[dict[int, int], bool] | None:
        """Without frame information: `push rbp; mov rbp, rsp` frames, believed only when they lead up the stack into known code."""
        pointer = registers.get(RBP, 0)
        if pointer < registers[RSP] - 256 or not self._memory.holds(pointer):
            return None
        caller = {**registers, RBP: self._memory.read(pointer), RIP: self._memory.read(pointer + 8), RSP: pointer + 16}
        return (caller, False) if self._find(caller[RIP] - 1) is not None else None
