"""Linkage name → source name: C++ (Itanium ABI), Rust legacy, Rust v0. C names stay as they are."""

from __future__ import annotations

from actors.indexer.demangle import itanium, rust_legacy, rust_v0
from actors.indexer.demangle.suffix import split_suffix

__all__ = ["Demangled", "demangle"]

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Demangled:
    """`text` without clone suffix; `language` is "c", "c++" or "rust"; `suffix` as in the symbol: ".constprop.0" or ""."""

    text: str
    language: str
    suffix: str


def demangle(raw: str) -> Demangled:
    """Never fails: a name in no known mangling is a C name. Symbol versions (`@GLIBC_2.2.5`) are dropped."""
    name, _, _ = raw.partition("@")
    base, suffix = split_suffix(name)
    if base.startswith("_R"):
        text = rust_v0.demangle(base)
        if text is not None:
            return Demangled(text, "rust", suffix)
    if base.startswith(("_Z", "__Z")):
        text = rust_legacy.demangle(base)
        if text is not None:
            return Demangled(text, "rust", suffix)
        text = itanium.demangle(base)
        if text is not None:
            return Demangled(text, "c++", suffix)
    return Demangled(base, "c", suffix)
