"""Which frame of a stack a reader looks at first: the innermost one of the user's own code, not of the libraries that it called when it died."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Final

from strobe.model.probe import Frame

_SYSTEM: Final = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/")
_SOURCES: Final = ("/usr/include/", "/usr/lib/", "/rustc/", "/build/", "/usr/src/")  # where the sources of compilers' and systems' libraries are
THROWERS: Final = ("__cxa_throw", "__cxa_rethrow", "std::rethrow_exception")
_REGISTRY: Final = "/.cargo/registry/"
_PREFIXES: Final = (
    "std::", "core::", "alloc::", "<core::", "<alloc::", "<std::", "rust_", "__rust", "__cxa_", "__gnu_cxx::", "__cxxabiv1::", "operator new",
    "operator delete", "__asan", "__ubsan", "__sanitizer", "__interceptor_", "___interceptor_",
)  # fmt: skip


def culprit(frames: Sequence[Frame], project_root: str | None) -> int | None:
    """Its index; None where there are no frames. Of an exception that nobody caught it is where it was thrown, whoever ended the program then."""
    thrown = max((index for index, frame in enumerate(frames) if frame.function in THROWERS), default=-1)
    if any(_is_own(frame) for frame in frames[thrown + 1 :]):
        found = _first(frames[thrown + 1 :], project_root)
        return None if found is None else thrown + 1 + found
    return _first(frames, project_root)


def _first(frames: Sequence[Frame], project_root: str | None) -> int | None:
    tests: list[Callable[[Frame], bool]] = [
        lambda frame: _is_own(frame) and frame.file is not None and project_root is not None and PurePath(frame.file).is_relative_to(project_root),
        lambda frame: _is_own(frame) and frame.file is not None,
        _is_own,
        lambda frame: frame.file is not None,
        lambda frame: frame.address >= 0,  # any
    ]
    found = (index for test in tests for index, frame in enumerate(frames) if test(frame))
    return next(found, None)


def _is_own(frame: Frame) -> bool:
    if frame.module is None or frame.function is None or frame.module.startswith(_SYSTEM):
        return False
    if frame.function.startswith(_PREFIXES) or frame.function in ("_start", "<signal handler called>"):
        return False
    return frame.file is None or not (frame.file.startswith(_SOURCES) or _REGISTRY in frame.file)
