"""Columns of rows on their way into a table, and the Arrow table they become without a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray


@dataclass(slots=True)
class Column:
    """Values and which of them count; `valid` None: all."""

    values: NDArray[Any]
    valid: NDArray[np.bool_] | None = None

    def to_arrow(self) -> pa.Array:
        values = np.ascontiguousarray(self.values)
        mask = None if self.valid is None else pa.py_buffer(np.packbits(self.valid, bitorder="little"))
        return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [mask, pa.py_buffer(values)])


def to_table(columns: dict[str, Column]) -> pa.Table:
    return pa.table({name: column.to_arrow() for name, column in columns.items()})
