"""Suffixes that compilers append to a function's linkage name when they clone or split it."""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = (
    "constprop|isra|part|cold|clone|localalias|lto_priv|llvm|specialized|unlikely|warm|hot|exit|str|alias|uniq|__uniq|startup|simdclone|"
    "resume|destroy|cleanup|actor|omp_fn"
)
_SUFFIX: Final = re.compile(rf"(?:\.(?:{_WORDS})(?:\.[0-9a-f]+)?)+(?:\.\d+)?$")
_COPY: Final = re.compile(r"\.(?:constprop|isra|localalias|lto_priv|llvm|clone)(?:\.[0-9a-f]+)?(?=\.|$)")
_COLD: Final = re.compile(r"\.(?:cold|unlikely)(?:\.\d+)?(?:\.|$)")


def split_suffix(name: str) -> tuple[str, str]:
    """`foo.constprop.0` → (`foo`, `.constprop.0`). A bare `.0`, as in GCC's nested C functions, is part of the name."""
    if "." not in name:
        return name, ""
    match = _SUFFIX.search(name)
    return (name[: match.start()], match.group()) if match and match.start() else (name, "")


def shown_suffix(suffix: str) -> str:
    """What of it is shown. A copy of the whole function made for some of its callers (`.constprop.0`) is the function to its reader; a part of
    it (`.part.0`) is not."""
    return _COPY.sub("", suffix)


def is_cold(suffix: str) -> bool:
    """True for the split-off unlikely part of a function: not a function, it is jumped into."""
    return bool(_COLD.search(suffix))
