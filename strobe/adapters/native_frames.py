"""Functions and places of native code: their names without what patterns leave out, and what is worth tracing because of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from strobe.adapters.adapter import Project
from strobe.adapters.wanted import inside, relative
from strobe.model.testing import Frame

TRACES_MAX: Final = 6
_TEST_FILE: Final = re.compile(r"(?:^|/)(?:tests?|testing|benches)/|(?:^|/)(?:test_?[^/]*|[^/]*[_-]?tests?)\.\w+$", re.I)
_TEST_WORDS: Final = re.compile(r"(?i)(?:^test_?|_?tests?$|_?spec$|suite$|fixture$)")
_NO_FUNCTIONS: Final = frozenset(("the", "and", "for", "not", "with", "when", "that", "does", "should", "fails", "fail", "works", "case", "here", "returns"))
_FOREIGN: Final = re.compile(r"^/rustc/|/\.cargo/registry/|/\.rustup/|^/usr/|/library/(?:std|core|alloc|test)/|googletest|catch2?\.hpp|/catch2/|^\.\./")


def place(project: Project, folder: str, file: str) -> str:
    """A file as seen from the project, of a compiler's that names it from any folder around `folder`."""
    if file.startswith("/"):
        return relative(project.root, file)
    path = file.removeprefix("./")
    if path.startswith("../"):
        parts = folder.split("/")
        while path.startswith("../") and parts:
            path = path[3:]
            parts.pop()
        return inside("/".join(parts) or ".", path)
    parts = [] if folder == "." else folder.split("/")
    for count in range(len(parts), -1, -1):
        candidate = inside("/".join(parts[:count]) or ".", path)
        if project.exists(candidate):
            return candidate
    return inside(folder, path)


def is_own(frame: Frame) -> bool:
    """Of the project: its files have relative paths."""
    return frame.file is not None and not frame.file.startswith("/") and not _FOREIGN.search(frame.file)


def without_generics(function: str) -> str:
    """`a::b::<i32>::{{closure}}` is `a::b`; `<T as X>::f` stays."""
    short = re.sub(r"(?:::\{\{?[\w#:]+\}?\})+$", "", function)
    short = re.sub(r"::h[0-9a-f]{16}$", "", short)
    return re.sub(r"::<[^<>]*(?:<[^<>]*>[^<>]*)*>", "", short)


def suggested_traces(frames: Sequence[Frame], test_function: str | None, file: str | None, words: Sequence[str]) -> list[str]:
    """The project's functions on the stack, innermost first, their sources, then patterns for what the test's name speaks of."""
    own = [frame for frame in frames if is_own(frame)]
    found: list[str] = []
    for frame in own:
        name = without_generics(frame.function or "")
        if name and not (test_function and name.endswith(test_function)) and re.fullmatch(r"[\w:~<> ]+", name):
            found.append(name)
    found += [f"@file:{frame.file}" for frame in own if not _TEST_FILE.search(frame.file or "")]
    for word in words:
        bare = _TEST_WORDS.sub("", word).strip("_")
        if len(bare) > 2 and bare.lower() not in _NO_FUNCTIONS:
            found.append(f"**::*{bare}*")
    stem = (file or "").rsplit("/", 1)[-1].rsplit(".", 1)[0]
    bare = _TEST_WORDS.sub("", stem).strip("_-")
    if bare and bare not in ("main", "lib", "mod") and not any(one.startswith("@file") for one in found):
        found.append(f"@file:{bare}.")
    return list(dict.fromkeys(found))[:TRACES_MAX]
