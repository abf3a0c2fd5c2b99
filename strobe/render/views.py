"""The views of debug_query as text: call tree, hotspots, summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from strobe.render.table import align
from strobe.render.values import argument_list, duration, moment, place, returned


def view_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of any view; which one it is, its rows tell."""
    if not rows:
        return []
    if "depth" in rows[0]:
        return tree_lines(rows)
    return hotspot_lines(rows) if "calls" in rows[0] else summary_lines(rows)


def tree_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Calls indented below their callers: number, start, name, duration, place. A new thread is named."""
    several = len({row.get("threadId") for row in rows}) > 1
    cells = []
    for row in rows:
        name = "  " * row["depth"] + row["function"] + argument_list(row.get("arguments"))
        if ended := returned(row):
            name += f" {ended}"
        who = f"[{row['threadId']}] " if several and row["depth"] == 0 and "threadId" in row else ""
        took = duration(row["durationNs"]) if "durationNs" in row else "not left"
        cells.append([row["id"].rpartition("-")[2], moment(row["timestampNs"]), who + name, took, place(row.get("sourceFile"), row.get("line"))])
    return align(cells, right=(0, 1))


def hotspot_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    cells = [["calls", "total", "self", "mean", "max", "function", ""]]
    for row in rows:
        times = [duration(row[name]) if name in row else "" for name in ("totalNs", "selfNs", "meanNs", "maxNs")]
        calls = f"{row['calls']:,}" + (f" ({row['recorded']:,} recorded)" if "recorded" in row else "")
        cells.append([calls, *times, row["function"], place(row.get("sourceFile"), row.get("line"))])
    return align(cells, right=(0, 1, 2, 3, 4))


def summary_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """One line an event type, then one a function."""
    cells = [[f"{row['count']:,}", row.get("eventType") or row["function"], moment(row["firstNs"]), "to", moment(row["lastNs"])] for row in rows]
    return align(cells, right=(0,))
