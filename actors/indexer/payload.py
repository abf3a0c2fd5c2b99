"""The fixed part of an entry's payload: what each step puts where, and the walks that start from it."""

from __future__ import annotations

import struct
from typing import Final

from actors.indexer.abi import Passing, Piece
from actors.indexer.passing import Place
from strobe.lanes.layout import PLAN_OP_BYTES, PlanOp

FIXED_BYTES_MAX: Final = 248  # offsets are one byte
STRING_BYTES: Final = 256
_OP: Final = struct.Struct("<BBBBi")
assert _OP.size == PLAN_OP_BYTES
_WORD: Final = 8
_RAX: Final = 6  # PlanOp.GPR: 6 rax, 7 rdx
_COPIED_FROM_STACK: Final = 32  # bytes: as many steps as words; what is larger is copied as part of the image


def pack(op: PlanOp, arg: int = 0, size: int = 0, dst: int = 0, imm: int = 0) -> bytes:
    return _OP.pack(op, arg, size, dst, imm)


END: Final = pack(PlanOp.END)


class Payload:
    """`steps` so far. Offsets are given out in order, each aligned to what lies there."""

    def __init__(self) -> None:
        self.steps: list[bytes] = []
        self._used = 0

    def room(self, size: int, align: int) -> int | None:
        """Offset of `size` bytes; None where they do not fit. The last word is kept for an image's descriptor."""
        at = (self._used + align - 1) // align * align
        if at + size > FIXED_BYTES_MAX - _WORD:
            return None
        self._used = at + size
        return at

    def descriptor(self) -> int:
        """Offset of the image's."""
        at = (self._used + _WORD - 1) // _WORD * _WORD
        self._used = at + _WORD
        return at

    def scalar(self, place: Place, size: int) -> int | None:
        at = self.room(size, size)
        if at is not None:
            self._step(place, size, at)
        return at

    def text(self, place: Place) -> int | None:
        at = self.room(_WORD, _WORD)
        if at is not None and place.kind == "stack":
            self.steps.append(pack(PlanOp.STACK_CSTR, 0, 8, at, place.number << 12 | STRING_BYTES))
        elif at is not None:
            self.steps.append(pack(PlanOp.CSTR, place.number, 8, at, STRING_BYTES))
        return at

    def pieces(self, how: Passing, places: tuple[Place, ...]) -> int | None:
        """A value in registers, or in registers and on the stack (Rust's pairs); its bytes as they would lie in memory."""
        end = max(piece.offset + piece.size for piece in how.pieces)
        at = self.room((end + _WORD - 1) // _WORD * _WORD, _WORD)
        if at is not None:
            for piece, place in zip(how.pieces, places, strict=True):
                self._piece(piece, place, at)
        return at

    def copied(self, place: Place, size: int) -> int | None:
        """A small value on the stack, whole; None for a larger one."""
        words = (size + _WORD - 1) // _WORD
        at = self.room(words * _WORD, _WORD) if size <= _COPIED_FROM_STACK else None
        if at is not None:
            for index in range(0, words * _WORD, _WORD):
                self.steps.append(pack(PlanOp.STACK, 0, _WORD, at + index, place.number + index))
        return at

    def address(self, place: Place) -> int | None:
        """Of a value on the stack."""
        at = self.room(_WORD, _WORD)
        if at is not None:
            self.steps.append(pack(PlanOp.LEA, 0, _WORD, at, place.number))
        return at

    def returned(self, how: Passing) -> int | None:
        """A result in rax and rdx, xmm0 and xmm1, or x87 registers; or, of one in memory, its address."""
        if how.x87:
            at = self.room(16 * how.x87, _WORD)
            if at is not None:
                self.steps += [pack(PlanOp.X87, index, 16, at + 16 * index) for index in range(how.x87)]
            return at
        if how.kind != "registers":
            return self.scalar(Place("integer", _RAX), _WORD)
        integers, sses = iter((_RAX, _RAX + 1)), iter((0, 1))
        places = [Place("integer", next(integers)) if piece.kind == "integer" else Place("sse", next(sses)) for piece in how.pieces]
        return self.pieces(how, tuple(places))

    def _piece(self, piece: Piece, place: Place, at: int) -> None:
        if piece.kind == "vector":
            self.steps.append(pack(PlanOp.VECTOR, place.number, piece.size, at + piece.offset))
        else:
            self._step(place, piece.size if piece.size in (1, 2, 4) else _WORD, at + piece.offset)

    def _step(self, place: Place, size: int, at: int) -> None:
        if place.kind == "stack":
            self.steps.append(pack(PlanOp.STACK, 0, size, at, place.number))
        elif place.kind == "sse" and size < 4:
            self.steps.append(pack(PlanOp.XMM, place.number, 4, at))
        else:
            self.steps.append(pack(PlanOp.XMM if place.kind == "sse" else PlanOp.GPR, place.number, size, at))
