"""Captured bits as the values of a reply (SPEC §5, Serialisation)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from actors.store.strings import NULL_ID, UNREADABLE_ID
from strobe.model.probe import Value

NOT_CAPTURED: Final = "<not captured>"


def shown(value: Value, bits: int | None, texts: Mapping[int, str]) -> Any:
    """An int, float, bool, text or None (a null pointer). `texts` holds the captured texts by id."""
    if value.scalar == "opaque" or (value.size == 0 and value.scalar != "cstring"):
        return f"<{value.type_name}>"
    if bits is None:
        return NOT_CAPTURED
    match value.scalar:
        case "cstring":
            return None if bits == NULL_ID else "<unreadable>" if bits == UNREADABLE_ID else texts.get(bits, NOT_CAPTURED)
        case "pointer":
            return None if bits == 0 else hex(bits & (1 << 64) - 1)
        case "float":
            return _shown_float(value, bits)
        case "bool":
            return bool(bits)
        case "char":
            return chr(bits) if 32 <= bits < 127 else bits
        case "enum":
            return next((name for name, number in (value.enumerators or {}).items() if number == bits), bits)
        case "uint":
            return bits & (1 << 64) - 1
        case _:
            return bits


def _shown_float(value: Value, bits: int) -> float | str:
    number: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    if number != number or number in (float("inf"), float("-inf")):
        return str(number)  # JSON has no name for them
    return float(str(np.float32(number))) if value.size == 4 else number
