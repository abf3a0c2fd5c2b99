"""Which frame of a stack a reader looks at first: the innermost one of the user's own code, not of the libraries that it called when it died."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Final

from strobe.model.probe import Frame

_SYSTEM: Final = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/")
_SOURCES: Final = ("/usr/include/", "/usr/lib/", "/rustc/", "/build/", "/usr/src/")  # where the sources of compilers' and systems' libraries are
_REGISTRY: Final = "/.cargo/registry/"
_PREFIXES: Final = (
    "std::", "core::", "alloc::", "<core::", "<alloc::", "<std::", "rust_", "__rust", "__cxa_", "__gnu_cxx::", "__cxxabiv1::", "operator new",
    "operator delete", "__asan", "__ubsan", "__sanitizer", "__interceptor_", "___interceptor_",
)  # fmt: skip


def culprit(frames: Sequence[Frame], project_root: str | None) -> int | None:
    """Its index; None where there are no frames."""
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
