"""The layout's tables as numpy types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from strobe.lanes.layout import CHUNK, CHUNK_BYTES, CRASH, CRASH_BYTES, ENTRY, GATE, GATE_BYTES, HEADER_BYTES, HOOK, HOOK_BYTES, POOL, SLOT_BYTES, STRING, Field

_CODES: Final = {"u8": "u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "i32": "<i4", "i64": "<i8"}


def record_dtype(fields: Sequence[Field], bytes_each: int) -> np.dtype[np.void]:
    """A structured type whose members lie where `fields` say and whose items are `bytes_each` apart."""
    formats: list[Any] = [_CODES[field.type] if field.count == 1 else (_CODES[field.type], field.count) for field in fields]
    return np.dtype({"names": [field.name for field in fields], "offsets": [field.offset for field in fields], "formats": formats, "itemsize": bytes_each})


POOL_DTYPE: Final = record_dtype(POOL, HEADER_BYTES)
HOOK_DTYPE: Final = record_dtype(HOOK, HOOK_BYTES)
GATE_DTYPE: Final = record_dtype(GATE, GATE_BYTES)
CRASH_DTYPE: Final = record_dtype(CRASH, CRASH_BYTES)
CHUNK_DTYPE: Final = record_dtype(CHUNK, CHUNK_BYTES)
ENTRY_DTYPE: Final = record_dtype(ENTRY, SLOT_BYTES)
STRING_DTYPE: Final = record_dtype(STRING, 8)
