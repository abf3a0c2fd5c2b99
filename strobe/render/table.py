"""Aligned columns."""

from __future__ import annotations

from collections.abc import Sequence


def align(rows: Sequence[Sequence[str]], *, gap: str = "  ", right: Sequence[int] = ()) -> list[str]:
    """Lines with each column as wide as its widest cell. The last column is not padded; columns in `right` are right-aligned."""
    if not rows:
        return []
    columns = max(len(row) for row in rows)
    widths = [max((len(row[i]) for row in rows if i < len(row)), default=0) for i in range(columns)]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append(gap.join(cells).rstrip())
    return lines
