"""What a Rust test says when it fails: panics of all formats, `Error: ...` of tests that return a Result, and their stacks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from strobe.model.testing import Frame

FRAMES_MAX: Final = 40
# 1.73 and later: the place, then the message on lines of its own; a thread's id since 1.9x. Before: 'message', place.
_PANIC: Final = re.compile(r"^thread '(?P<thread>.*?)' (?:\(\d+\) )?panicked at (?P<file>[^\n]+?):(?P<line>\d+):\d+:\n", re.M)
_OLD_PANIC: Final = re.compile(r"^thread '(?P<thread>.*?)' panicked at '(?P<message>.*?)', (?P<file>[^\n']+?):(?P<line>\d+):\d+$", re.M | re.S)
_END: Final = re.compile(r"^(?:stack backtrace:|note: run with `RUST_BACKTRACE|note: [Ss]ome details are omitted|thread '.*' (?:\(\d+\) )?panicked at)", re.M)
_FRAME: Final = re.compile(r"^ +\d+: (?:0x[0-9a-f]+ - )?(?P<function>.+)\n(?: +at (?P<file>\S.*?):(?P<line>\d+)(?::\d+)?$)?", re.M)
_RUNTIME: Final = re.compile(
    r"^(?:__rust|rust_begin_unwind|std::|core::|alloc::|test::|_?start|main$|__libc|clone|<.* as core::|<fn|<alloc::|<core::|<std::|<&?dyn |<test::)"
)


@dataclass(frozen=True, slots=True)
class Panic:
    thread: str | None
    message: str
    file: str | None
    line: int | None
    frames: tuple[Frame, ...]


def panics(text: str) -> list[Panic]:
    found: list[tuple[int, Panic]] = []
    for match in _PANIC.finditer(text):
        end = _END.search(text, match.end())
        message = text[match.end() : end.start() if end else len(text)].strip("\n")
        found.append((match.start(), Panic(match["thread"], message, match["file"], int(match["line"]), frames(text, match.end()))))
    for match in _OLD_PANIC.finditer(text):
        panic = Panic(match["thread"], match["message"], match["file"], int(match["line"]), frames(text, match.end()))
        found.append((match.start(), panic))
    return [panic for _, panic in sorted(found, key=lambda pair: pair[0])]


def frames(text: str, start: int) -> tuple[Frame, ...]:
    """Of the stack that follows a panic, without those of the runtime."""
    begin = text.find("stack backtrace:", start)
    following = _PANIC.search(text, start)
    if begin < 0 or (following is not None and following.start() < begin):
        return ()
    end = text.find("\nnote:", begin)
    found = []
    for match in _FRAME.finditer(text, begin, end if end >= 0 else len(text)):
        if not _RUNTIME.match(match["function"]):
            found.append(Frame(function=match["function"], file=match["file"], line=int(match["line"]) if match["line"] else None))
    return tuple(found[:FRAMES_MAX])


def failure_of(test: str, text: str, note: str | None) -> Panic:
    """The panic of the test's own thread, else the last; what its Result said; else what the framework notes (`should panic`)."""
    found = panics(text)
    own = [one for one in found if one.thread == test] or found
    if own:
        return own[0] if note is None else Panic(own[0].thread, f"{note}\n{own[0].message}".strip(), own[0].file, own[0].line, own[0].frames)
    error = re.search(r"^Error: .*", text, re.M | re.S)
    message = note or (error[0].strip() if error else text.strip()) or "failed; it gave no message"
    return Panic(None, message, None, None, ())
