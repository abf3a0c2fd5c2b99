"""Names like the one that was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import numpy
from numpy.typing import NDArray

from actors.indexer.source_name import source_name
from actors.indexer.symbols import SymbolTable

_CANDIDATES_MAX: Final = 4000
_NOT_NAME: Final = re.compile(r"\W+")
_GRAM: Final = 4
NAMES: Final = 5


class Named(Protocol):
    """A file's symbols of one kind: a Binary's are its functions."""

    @property
    def starts(self) -> NDArray[numpy.uint64]: ...
    @property
    def tables(self) -> Sequence[SymbolTable]: ...


def nearest_names(binaries: Iterable[Named], wanted: str, count: int = NAMES) -> list[str]:
    """At most `count` plain names, nearest first: those that end in the wanted name, then by edit distance."""
    last = _NOT_NAME.sub("", wanted.rsplit("::", 1)[-1]) or _NOT_NAME.sub("", wanted)
    if not last:
        return []
    scored: dict[str, tuple[int, int, str]] = {}
    for plain in _candidates(binaries, last):
        if plain not in scored:
            own = plain.rsplit("::", 1)[-1]
            apart = distance(last.lower(), own.lower())
            scored[plain] = (min(apart, 1 + apart // 8) if last.lower() in own.lower() else apart, distance(wanted, plain), plain)
    bound = max(2, len(last) // 2)
    return [plain for plain, score in sorted(scored.items(), key=lambda item: item[1]) if score[0] <= bound][:count]


def _candidates(binaries: Iterable[Named], last: str) -> Iterable[str]:
    """Plain names whose linkage name shares four letters in a row with `last` (all of a small file)."""
    left = _CANDIDATES_MAX
    for binary in binaries:
        seen: set[tuple[int, int]] = set()
        small = len(binary.starts) <= _CANDIDATES_MAX
        grams = [""] if small or len(last) < _GRAM else dict.fromkeys(last[at : at + _GRAM] for at in range(len(last) - _GRAM + 1))
        for number, table in enumerate(binary.tables):
            for gram in grams:
                rows = table.containing(gram.encode(), whole=False) if gram else range(len(table))
                for row in rows:
                    if left <= 0:
                        return
                    if (number, int(row)) not in seen:
                        seen.add((number, int(row)))
                        left -= 1
                        name = source_name(table.name(int(row)))
                        if not name.cold and not name.thunk:
                            yield name.plain[0]


def distance(left: str, right: str) -> int:
    """Levenshtein's, with a length difference of more than 20 cut short to that difference."""
    if abs(len(left) - len(right)) > 20:
        return abs(len(left) - len(right))
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]
