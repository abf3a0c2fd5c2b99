"""DWARF expressions as call frame information uses them (DWARF 5 §2.5): registers, memory, arithmetic, branches. 64-bit arithmetic."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final

from actors.indexer.leb import signed, unsigned

_MASK: Final = (1 << 64) - 1
_STEPS_MAX: Final = 1000
_CONSTANTS: Final = {0x08: "<B", 0x09: "<b", 0x0A: "<H", 0x0B: "<h", 0x0C: "<I", 0x0D: "<i", 0x0E: "<Q", 0x0F: "<q"}


class ExpressionError(Exception):
    """The expression is malformed, or uses what frame information may not."""


def _s(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


_BINARY: Final[dict[int, Callable[[int, int], int]]] = {
    0x1A: lambda a, b: a & b,
    0x1B: lambda a, b: int(_s(a) / _s(b)) if b else 0,
    0x1C: lambda a, b: a - b,
    0x1D: lambda a, b: a % b if b else 0,
    0x1E: lambda a, b: a * b,
    0x21: lambda a, b: a | b,
    0x22: lambda a, b: a + b,
    0x24: lambda a, b: a << b if b < 64 else 0,
    0x25: lambda a, b: a >> b if b < 64 else 0,
    0x26: lambda a, b: _s(a) >> min(b, 63),
    0x27: lambda a, b: a ^ b,
    0x29: lambda a, b: int(a == b),
    0x2A: lambda a, b: int(_s(a) >= _s(b)),
    0x2B: lambda a, b: int(_s(a) > _s(b)),
    0x2C: lambda a, b: int(_s(a) <= _s(b)),
    0x2D: lambda a, b: int(_s(a) < _s(b)),
    0x2E: lambda a, b: int(a != b),
}
_UNARY: Final[dict[int, Callable[[int], int]]] = {0x19: lambda a: abs(_s(a)), 0x1F: lambda a: -a, 0x20: lambda a: ~a}


def evaluate(code: bytes, registers: Mapping[int, int], read: Callable[[int, int], int], initial: int | None = None) -> int:
    """The value on top of the stack. `read(address, size)` gives memory. Raises ExpressionError, and what `read` raises."""
    stack = [] if initial is None else [initial]
    at = steps = 0
    try:
        while at < len(code):
            steps += 1
            if steps > _STEPS_MAX:
                raise ExpressionError("expression does not end")
            at = step(code, at, stack, registers, read)
        return stack[-1]
    except (IndexError, KeyError, struct.error, ValueError) as error:
        raise ExpressionError(f"malformed expression {code[:32].hex()}: {error!r}") from error


def step(code: bytes, at: int, stack: list[int], registers: Mapping[int, int], read: Callable[[int, int], int]) -> int:
    """Does the operation at `at`; where the next one is. Raises ExpressionError, and what Python does on what is malformed."""
    op = code[at]
    at += 1
    if 0x30 <= op <= 0x4F:  # DW_OP_lit0…31
        stack.append(op - 0x30)
    elif 0x70 <= op <= 0x8F:  # DW_OP_breg0…31
        offset, at = signed(code, at)
        stack.append((registers[op - 0x70] + offset) & _MASK)
    elif op == 0x92:  # DW_OP_bregx
        register, at = unsigned(code, at)
        offset, at = signed(code, at)
        stack.append((registers[register] + offset) & _MASK)
    elif op in _BINARY:
        right = stack.pop()
        stack.append(_BINARY[op](stack.pop(), right) & _MASK)
    elif op in _UNARY:
        stack.append(_UNARY[op](stack.pop()) & _MASK)
    elif op == 0x06:  # DW_OP_deref
        stack.append(read(stack.pop(), 8))
    elif op == 0x94:  # DW_OP_deref_size
        stack.append(read(stack.pop(), code[at]))
        at += 1
    elif op in _CONSTANTS:
        (value,) = struct.unpack_from(_CONSTANTS[op], code, at)
        stack.append(value & _MASK)
        at += struct.calcsize(_CONSTANTS[op])
    else:
        at = _shape(op, code, at, stack)
    return at


def _shape(op: int, code: bytes, at: int, stack: list[int]) -> int:
    """Operations on the stack itself, LEB constants and branches."""
    if op == 0x03:  # DW_OP_addr: link-time, and frame information is not relocated
        raise ExpressionError("DW_OP_addr in frame information")
    if op in (0x10, 0x11):
        value, at = unsigned(code, at) if op == 0x10 else signed(code, at)
        stack.append(value & _MASK)
    elif op == 0x12:
        stack.append(stack[-1])
    elif op == 0x13:
        stack.pop()
    elif op == 0x14:
        stack.append(stack[-2])
    elif op == 0x15:
        stack.append(stack[-1 - code[at]])
        at += 1
    elif op == 0x16:
        stack[-1], stack[-2] = stack[-2], stack[-1]
    elif op == 0x17:
        stack[-1], stack[-2], stack[-3] = stack[-2], stack[-3], stack[-1]
    elif op == 0x23:
        value, at = unsigned(code, at)
        stack[-1] = (stack[-1] + value) & _MASK
    elif op in (0x28, 0x2F):
        (distance,) = struct.unpack_from("<h", code, at)
        at += 2
        if op == 0x2F or stack.pop():
            at += distance
    elif op != 0x96:  # DW_OP_nop
        raise ExpressionError(f"operation {op:#x} in frame information")
    return at
