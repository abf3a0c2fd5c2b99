"""Runs a frame's call frame instructions up to an address: where the caller's frame and registers are (DWARF 5 §6.4.2)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final, Literal

from actors.indexer.leb import signed, unsigned
from actors.indexer.unwind.frame_table import CfiError, Cie, Fde

RuleKind = Literal["offset", "value_offset", "register", "expression", "value_expression", "undefined"]
Rule = tuple[RuleKind, int | bytes]
_ADVANCE: Final = {0x02: "<B", 0x03: "<H", 0x04: "<I"}


@dataclass(slots=True)
class Row:
    """Rules at one address. `cfa` is (register, offset), or an expression. Registers without a rule keep their value."""

    cfa: tuple[int, int] | bytes | None = None
    registers: dict[int, Rule] = field(default_factory=dict)

    def copy(self) -> Row:
        return Row(self.cfa, dict(self.registers))


def row_at(fde: Fde, address: int) -> Row:
    """Raises CfiError on malformed instructions."""
    try:
        initial = _Machine(fde.cie, Row(), Row()).run(fde.cie.program, 0, 1 << 64)
        return _Machine(fde.cie, initial.copy(), initial).run(fde.program, fde.start, address)
    except (IndexError, struct.error, ValueError, TypeError) as error:
        raise CfiError(f"malformed frame instructions for {address:#x}") from error


class _Machine:
    def __init__(self, cie: Cie, row: Row, initial: Row) -> None:
        self._cie = cie
        self._row = row
        self._initial = initial
        self._saved: list[Row] = []

    def run(self, program: bytes, location: int, target: int) -> Row:
        at = 0
        while at < len(program):
            op = program[at]
            at += 1
            if op >> 6 == 1:
                location += (op & 63) * self._cie.code_align
            elif op in _ADVANCE:
                (delta,) = struct.unpack_from(_ADVANCE[op], program, at)
                at += struct.calcsize(_ADVANCE[op])
                location += delta * self._cie.code_align
            elif op >> 6 == 2:
                value, at = unsigned(program, at)
                self._row.registers[op & 63] = ("offset", value * self._cie.data_align)
                continue
            elif op >> 6 == 3:
                self._restore(op & 63)
                continue
            else:
                at = self._cfa(op, program, at) if 0x0C <= op <= 0x0F or op in (0x12, 0x13) else self._register(op, program, at)
                continue
            if location > target:
                break
        return self._row

    def _restore(self, register: int) -> None:
        rule = self._initial.registers.get(register)
        if rule is None:
            self._row.registers.pop(register, None)
        else:
            self._row.registers[register] = rule

    def _cfa(self, op: int, program: bytes, at: int) -> int:
        current = self._row.cfa
        if op == 0x0F:
            length, at = unsigned(program, at)
            self._row.cfa = program[at : at + length]
            return at + length
        if op in (0x0C, 0x12):
            register, at = unsigned(program, at)
            offset, at = unsigned(program, at) if op == 0x0C else signed(program, at)
            self._row.cfa = (register, offset if op == 0x0C else offset * self._cie.data_align)
            return at
        if not isinstance(current, tuple):
            raise ValueError("frame address is changed before it is defined")
        value, at = signed(program, at) if op == 0x13 else unsigned(program, at)
        self._row.cfa = (value, current[1]) if op == 0x0D else (current[0], value * self._cie.data_align if op == 0x13 else value)
        return at

    def _register(self, op: int, program: bytes, at: int) -> int:
        if op in (0x00, 0x2D):
            return at
        if op == 0x0A:
            self._saved.append(self._row.copy())
            return at
        if op == 0x0B:
            saved = self._saved.pop()
            self._row.registers, self._row.cfa = saved.registers, saved.cfa
            return at
        first, at = unsigned(program, at)
        if op == 0x2E:  # DW_CFA_GNU_args_size
            return at
        if op in (0x10, 0x16):
            length, at = unsigned(program, at)
            self._row.registers[first] = ("expression" if op == 0x10 else "value_expression", program[at : at + length])
            return at + length
        return self._plain(op, first, program, at)

    def _plain(self, op: int, register: int, program: bytes, at: int) -> int:
        if op == 0x06:
            self._restore(register)
        elif op == 0x07:
            self._row.registers[register] = ("undefined", 0)
        elif op == 0x08:
            self._row.registers.pop(register, None)
        elif op == 0x09:
            other, at = unsigned(program, at)
            self._row.registers[register] = ("register", other)
        elif op in (0x05, 0x11, 0x14, 0x15, 0x2F):
            value, at = signed(program, at) if op in (0x11, 0x15) else unsigned(program, at)
            offset = -value if op == 0x2F else value
            self._row.registers[register] = ("value_offset" if op in (0x14, 0x15) else "offset", offset * self._cie.data_align)
        else:
            raise ValueError(f"instruction {op:#x}")
        return at
