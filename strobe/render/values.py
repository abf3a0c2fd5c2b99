"""Single values as text: times, sizes, calls, output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def duration(ns: int) -> str:
    """`83 ns`, `1.25 µs`, `12.0 ms`, `3.20 s`."""
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if ns >= factor:
            return f"{ns / factor:.3g} {unit}" if ns < 1000 * factor else f"{ns / factor:.0f} {unit}"
    return f"{ns} ns"


def moment(ns: int) -> str:
    """Time since the session's start, to the microsecond: `+1.000250`."""
    return f"{'-' if ns < 0 else '+'}{abs(ns) / 1e9:.6f}"


def byte_count(number: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number} B"


def place(source_file: str | None, line: int | None) -> str:
    """`bank.c:31`: the file's last name suffices beside a function's name; the full path is in the structured form."""
    if not source_file:
        return ""
    name = source_file.rsplit("/", 1)[-1]
    return f"{name}:{line}" if line else name


def plain(value: Any) -> str:
    """A captured value on one line."""
    if isinstance(value, str):
        return value if value.startswith(("0x", "<")) else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def argument_list(arguments: list[Mapping[str, Any]] | None) -> str:
    """`(from=0x55…, cents=333)`; empty when none were captured."""
    if arguments is None:
        return ""
    return "(" + ", ".join(f"{a['name']}={plain(a.get('value'))}" if a.get("name") else plain(a.get("value")) for a in arguments) + ")"


def count(number: int, noun: str, several: str | None = None) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {several or noun + 's'}"
