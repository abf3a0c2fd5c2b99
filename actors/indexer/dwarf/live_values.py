"""Where a variable is while its function runs: its location description, worked out with a frame's registers and memory (DWARF 5 §2.6)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.functions import origins
from actors.indexer.dwarf.locations import expression_at
from actors.indexer.dwarf.unit import Entry, Unit
from actors.indexer.leb import signed, unsigned
from actors.indexer.unwind.expression import ExpressionError, step

_MASK: Final = (1 << 64) - 1
_PIECES_MAX: Final = 64
_PIECE_BYTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Held:
    """The variable is at `address`, or its bytes are `data`; with neither the compiler left it out here (`gone`), or what tells was not saved."""

    address: int | None = None
    data: bytes | None = None
    gone: bool = False


NOT_SAVED: Final = Held()
GONE: Final = Held(gone=True)


class NotSavedError(Exception):
    """A register or memory that the location needs is not there."""


@dataclass(frozen=True, slots=True)
class LiveFrame:
    """One frame. `pc` is link-time, `bias` takes link-time addresses to the target's. `read` raises what `missing` names when memory is not there."""

    function: Entry
    pc: int
    bias: int
    cfa: int | None
    registers: Mapping[int, int]
    read: Callable[[int, int], int]
    missing: type[Exception]

    def find(self, variable: Entry) -> Held:
        """Raises DwarfError on what is malformed."""
        chain = origins(variable)
        described = next((one for one in chain if one.has(dw.LOCATION)), None)
        if described is None:
            return _constant(chain)
        code = self._code(described, dw.LOCATION)
        if not code:
            return GONE
        try:
            return _Evaluation(self, described.unit).run(code)
        except (NotSavedError, self.missing):
            return NOT_SAVED
        except (ExpressionError, IndexError, KeyError, ValueError, struct.error) as error:
            raise DwarfError(f"location {code[:32].hex()} is malformed or of an unknown kind: {error}") from error

    def base(self) -> int:
        """What DW_OP_fbreg counts from. Raises NotSavedError."""
        code = self._code(self.function, dw.FRAME_BASE) if self.function.has(dw.FRAME_BASE) else None
        if not code:
            raise NotSavedError
        if 0x50 <= code[0] <= 0x6F and len(code) == 1:
            return self.register(code[0] - 0x50)
        found = _Evaluation(self, self.function.unit).run(code)
        if found.address is None:
            raise NotSavedError
        return found.address

    def register(self, number: int) -> int:
        if number not in self.registers:
            raise NotSavedError
        return self.registers[number]

    def _code(self, entry: Entry, attribute: int) -> bytes | None:
        form, value = entry.attributes[attribute]
        return value if isinstance(value, bytes) else expression_at(entry.unit, form, value, self.pc)


def _constant(chain: list[Entry]) -> Held:
    for one in chain:
        raw = one.attributes.get(dw.CONST_VALUE)
        if raw is not None:
            return Held(data=raw[1] if isinstance(raw[1], bytes) else (raw[1] & _MASK).to_bytes(8, "little"))
    return GONE


class _Evaluation:
    """One location description. After each piece the next one begins anew."""

    def __init__(self, frame: LiveFrame, unit: Unit) -> None:
        self._frame, self._unit = frame, unit
        self._stack: list[int] = []
        self._held: bytes | None = None
        self._pieces: list[bytes] = []

    def run(self, code: bytes) -> Held:
        at = steps = 0
        while at < len(code):
            steps += 1
            if steps > 1000:
                raise ExpressionError("expression does not end")
            at = self._step(code, at)
        if self._pieces:
            return Held(data=b"".join(self._pieces))
        if self._held is not None:
            return Held(data=self._held)
        return Held(address=self._stack[-1])

    def _step(self, code: bytes, at: int) -> int:
        op = code[at]
        if 0x50 <= op <= 0x6F:  # DW_OP_reg0…31
            return self._hold(self._frame.register(op - 0x50), at + 1)
        if op == 0x90:  # DW_OP_regx
            number, at = unsigned(code, at + 1)
            return self._hold(self._frame.register(number), at)
        if op == 0x91:  # DW_OP_fbreg
            offset, at = signed(code, at + 1)
            self._stack.append((self._frame.base() + offset) & _MASK)
            return at
        if op == 0x9F:  # DW_OP_stack_value
            return self._hold(self._stack.pop(), at + 1)
        if op == 0x9E:  # DW_OP_implicit_value
            length, at = unsigned(code, at + 1)
            self._held = code[at : at + length]
            return at + length
        if op == 0x93:  # DW_OP_piece
            size, at = unsigned(code, at + 1)
            self._piece(size)
            return at
        return self._address(code, at) if op in (0x03, 0x9C, 0xA1, 0xFB) else self._plain(code, at)

    def _address(self, code: bytes, at: int) -> int:
        op = code[at]
        if op == 0x9C:  # DW_OP_call_frame_cfa
            if self._frame.cfa is None:
                raise NotSavedError
            self._stack.append(self._frame.cfa)
            return at + 1
        if op == 0x03:  # DW_OP_addr
            (linked,) = struct.unpack_from("<Q", code, at + 1)
            at += 9
        else:  # DW_OP_addrx, DW_OP_GNU_addr_index
            index, at = unsigned(code, at + 1)
            linked = self._unit.file.address(self._unit, dw.F_ADDRX, index)
        self._stack.append((linked + self._frame.bias) & _MASK)
        return at

    def _plain(self, code: bytes, at: int) -> int:
        """What frame information may use too. Values at the function's entry, of thread-local and of implicit pointers are not saved."""
        op = code[at]
        if op in (0x9B, 0xA0, 0xA3, 0xE0, 0xF2, 0xF3, 0xFA, 0xFD):
            raise NotSavedError
        if 0xA5 <= op <= 0xA9 or 0xF4 <= op <= 0xF9:  # typed stack entries: floating-point arithmetic of optimised code
            raise NotSavedError
        if (0x70 <= op <= 0x8F and op - 0x70 not in self._frame.registers) or (op == 0x92 and unsigned(code, at + 1)[0] not in self._frame.registers):
            raise NotSavedError
        return step(code, at, self._stack, self._frame.registers, self._frame.read)

    def _hold(self, value: int, at: int) -> int:
        self._held = (value & _MASK).to_bytes(8, "little")
        return at

    def _piece(self, size: int) -> None:
        if size > _PIECE_BYTES_MAX or len(self._pieces) >= _PIECES_MAX:
            raise ExpressionError("too many or too large pieces")
        if self._held is not None:
            self._pieces.append(self._held[:size].ljust(size, b"\0"))
        elif self._stack:
            self._pieces.append(self._frame.read(self._stack.pop(), size).to_bytes(size, "little"))
        else:
            raise NotSavedError  # this part was optimised out
        self._held = None
