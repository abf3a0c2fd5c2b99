"""How one value travels: System V AMD64 ABI §3.2.3, and Rust's own convention where it is known to agree.

What cannot be proven is `unknown`: a wrong register is worse than none. Vectors of 32 bytes are, unless GCC's command line in debug info says that the file
was compiled for AVX, or the parameter's location names the register: without AVX they travel in memory. Larger ones always are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.language import Language as Language
from actors.indexer.dwarf.types import POINTER_TAGS, size_of, strip, type_of
from actors.indexer.dwarf.unit import Entry

Kind = Literal["registers", "memory", "reference", "nothing", "unknown"]
VECTOR_BYTES: Final = 16
_FOR_AVX: Final = re.compile(r" -m(?:avx|fma|arch=(?:x86-64-v[34]|haswell|broadwell|skylake|znver))")
_NOT_FOR_AVX: Final = re.compile(r" -mno-avx(?= |$)")
_QUADRUPLE: Final = frozenset({"_Float128", "__float128", "f128"})


@dataclass(frozen=True, slots=True)
class Piece:
    """What one register holds: `size` bytes of the value from `offset` on. `vector`: all 16 bytes of an SSE register, or 32 of an AVX one."""

    kind: Literal["integer", "sse", "vector"]
    offset: int = 0
    size: int = 8


@dataclass(frozen=True, slots=True)
class Passing:
    """`pieces`: for `registers`. `size` and `align` in bytes, for what goes on the stack. `parts`: two words that compilers disagree on when only one
    register is left (__int128 in Clang before 18). `separate`: each piece is an argument of its own (Rust's pairs of scalars).
    `unknown` with `pieces`: so they are if a location names the registers.
    `x87`: as a result it comes back in so many x87 registers, whatever it is as an argument."""

    kind: Kind
    pieces: tuple[Piece, ...] = ()
    size: int = 8
    align: int = 8
    parts: bool = False
    separate: bool = False
    x87: int = 0


INTEGER: Final = Passing("registers", (Piece("integer"),))
SSE: Final = Passing("registers", (Piece("sse"),))
VECTOR: Final = Passing("registers", (Piece("vector", 0, VECTOR_BYTES),), VECTOR_BYTES, VECTOR_BYTES)
WIDE_VECTOR: Final = Passing("unknown", (Piece("vector", 0, 2 * VECTOR_BYTES),), 2 * VECTOR_BYTES, 2 * VECTOR_BYTES, parts=True)
NOTHING: Final = Passing("nothing")
UNKNOWN: Final = Passing("unknown")
REFERENCE: Final = Passing("reference")
TWO_WORDS: Final = (Piece("integer"), Piece("integer", 8))
LONG_DOUBLE: Final = Passing("memory", (), 16, 16, x87=1)


def scalar(found: Entry, language: Language) -> Passing:
    """Of what is neither struct nor union, behind typedefs and qualifiers."""
    if found.tag in POINTER_TAGS:
        return INTEGER if size_of(found) == 8 else UNKNOWN
    if found.tag == dw.BASE_TYPE:
        return _base(found)
    if found.tag == dw.ARRAY_TYPE and found.has(dw.GNU_VECTOR) and language != "rust":
        return {8: SSE, VECTOR_BYTES: VECTOR, 2 * VECTOR_BYTES: _wide_vector(found)}.get(size_of(found) or 0, UNKNOWN)
    if found.tag == dw.ENUMERATION_TYPE:
        return INTEGER if size_of(found) in (1, 2, 4, 8) else UNKNOWN
    if found.tag == dw.PTR_TO_MEMBER_TYPE:
        target = strip(type_of(found))
        return Passing("registers", TWO_WORDS, 16) if target is not None and target.tag == dw.SUBROUTINE_TYPE else INTEGER
    if found.tag == dw.UNSPECIFIED_TYPE:
        return INTEGER if found.text(dw.NAME) == "decltype(nullptr)" else UNKNOWN
    return UNKNOWN


def _wide_vector(entry: Entry) -> Passing:
    words = entry.unit.root.text(dw.PRODUCER) or ""
    for_avx = words.startswith("GNU ") and _FOR_AVX.search(words) is not None and _NOT_FOR_AVX.search(words) is None
    return replace(WIDE_VECTOR, kind="registers") if for_avx else WIDE_VECTOR


def _base(entry: Entry) -> Passing:
    size, encoding = size_of(entry), entry.number(dw.ENCODING)
    if size == 0:
        return NOTHING  # Rust's ()
    if encoding == dw.ATE_FLOAT:
        if size in (2, 4, 8):
            return SSE
        if size == 16:  # a quadruple number fills one SSE register; long double goes through memory
            return VECTOR if entry.text(dw.NAME) in _QUADRUPLE else LONG_DOUBLE
        return UNKNOWN
    if encoding == dw.ATE_COMPLEX:
        two_doubles = Passing("registers", (Piece("sse"), Piece("sse", 8)), 16)
        return {8: SSE, 16: two_doubles, 32: Passing("memory", (), 32, 16, x87=2)}.get(size or 0, UNKNOWN)
    if size in (1, 2, 4, 8):
        return INTEGER
    return Passing("registers", TWO_WORDS, 16, 16, parts=True) if size == 16 else UNKNOWN  # __int128
