"""Rust's legacy mangling: an Itanium-like `_ZN…E` path whose last part is a hash, `17h` and 16 hex digits (rustc's `legacy.rs`)."""

from __future__ import annotations

import re
from typing import Final

_HASH: Final = re.compile(r"17h[0-9a-f]{16}E(?:\.llvm\.[0-9A-F]+)?$")
_ESCAPE: Final = re.compile(r"\$(?:(SP|BP|RF|LT|GT|LP|RP|C)|u([0-9a-f]{1,6}))\$|\.\.|\.")
_SIGNS: Final = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}


def demangle(name: str) -> str | None:
    """The path without its hash, or None when `name` is not of this form."""
    if not _HASH.search(name):
        return None
    rest = name[name.index("_ZN") + 3 :] if "_ZN" in name[:4] else None
    parts: list[str] = []
    while rest and rest[0].isdigit():
        digits = re.match(r"\d{1,5}", rest)
        if digits is None:
            return None
        length, start = int(digits.group()), digits.end()
        if start + length > len(rest):
            return None
        parts.append(rest[start : start + length])
        rest = rest[start + length :]
    if not rest or rest[0] != "E" or len(parts) < 2:
        return None
    return "::".join(_plain(part) for part in parts[:-1])


def _plain(part: str) -> str:
    if part.startswith("_$"):
        part = part[1:]
    return _ESCAPE.sub(_sign, part)


def _sign(match: re.Match[str]) -> str:
    if match.group(1):
        return _SIGNS[match.group(1)]
    if match.group(2):
        code = int(match.group(2), 16)
        return chr(code) if code < 0x110000 else match.group()
    return "::" if match.group() == ".." else "."
