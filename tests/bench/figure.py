"""One measured figure and its goal, and the machine it was measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

_UNITS: Final = {"ns": 1, "us": 0, "ms": 1, "s": 2, "x": 2, "events/s": 0, "bytes": 1, "tokens": 0, "%": 0}


@dataclass(frozen=True)
class Figure:
    """`goal` is what the value must not pass: an upper bound, or a lower one with `at_least`."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "unit": self.unit, "goal": self.goal, "atLeast": self.at_least, "met": self.met, "note": self.note}


def table(figures: Iterable[Figure]) -> str:
    """A Markdown table."""
    lines = ["| figure | measured | goal | met | note |", "| --- | ---: | ---: | --- | --- |"]
    for figure in figures:
        goal = "" if figure.goal is None else f"{'≥' if figure.at_least else '≤'} {number(figure.goal, figure.unit)}"
        met = "" if figure.met is None else "yes" if figure.met else "**no**"
        lines.append(f"| {figure.name} | {number(figure.value, figure.unit)} | {goal} | {met} | {figure.note} |")
    return "\n".join(lines)


def number(value: float, unit: str) -> str:
    digits = _UNITS.get(unit, 2)
    return f"{value:,.{digits}f} {unit}".replace(" x", "x").replace(" %", " %")


def percentile(values: Iterable[float], share: float) -> float:
    """The value that `share` (0–1) of `values` do not pass."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values: Iterable[float]) -> str:
    """`min–max` of `values`, for a note."""
    values = list(values)
    return f"median {median(values):.4g}, {min(values):.4g}–{max(values):.4g} over {len(values)}"


def machine() -> dict[str, Any]:
    models = (line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    memory = next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return {
        "cpu": next(models, platform.machine()),
        "cores": os.cpu_count(),
        "memoryGiB": round(memory / 1048576, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "loadBefore": round(os.getloadavg()[0], 2),
    }
