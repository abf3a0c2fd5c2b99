"""Stacks of V8 and JavaScriptCore, as text: whose frames they are, where a failure lies, and what is worth tracing because of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from strobe.model.testing import Frame

ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
FRAMES_MAX: Final = 30
TRACES_MAX: Final = 6
_FRAME: Final = re.compile(r"^\s+at (?:(?P<function>.*?) \()?(?P<file>(?:file://)?[^\s()][^()]*?):(?P<line>\d+)(?::\d+)?\)?$")
_RECEIVER: Final = re.compile(r"^(?:Object|Context|TestContext|SuiteContext|Module|global|globalThis|Function|_class|exports)\.")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*")
_TEST_FILE: Final = re.compile(r"(?:^|/)(?:__tests__|tests?|e2e|specs?)/|[._-](?:test|spec|e2e)\.[cm]?[jt]sx?$", re.I)
# jest's source maps name a frame after what it calls.
_MATCHER: Final = re.compile(r"(?:to(?:Be|Equal|Have|Match|Throw|Contain|Strict|Return|Resolve|Reject)\w*|expect|assert\w*|should)$")
_NO_NAMES: Final = frozenset({"", "<anonymous>", "anonymous", "eval", "new Promise", "Promise.all", "it", "test", "describe"})


def plain(text: str) -> str:
    return ANSI.sub("", text)


def frames_of(stack: str) -> list[Frame]:
    """The frames of an error's `stack`; files as they stand, `file://` taken away."""
    found = []
    for line in plain(stack).splitlines():
        match = _FRAME.match(line)
        if match is not None:
            found.append(Frame(function=function_name(match["function"]), file=file_path(match["file"]), line=int(match["line"])))
            if len(found) == FRAMES_MAX:
                break
    return found


def file_path(file: str) -> str:
    return unquote(file.removeprefix("file://")) if file.startswith("file://") else file


def function_name(name: str | None) -> str | None:
    """`async Object.helper [as fn]` is `helper`; None for functions without a name."""
    if name is None:
        return None
    short = re.sub(r" \[as [^\]]*\]$", "", name.strip())
    short = _RECEIVER.sub("", short.removeprefix("async ").removeprefix("new "))
    return None if short in _NO_NAMES or "<anonymous>" in short or _MATCHER.match(short) else short


def message_of(text: str) -> str:
    """An error's text without the frames at its end."""
    kept = []
    for line in plain(text).splitlines():
        if _FRAME.match(line) or re.match(r"^\s+at (?:async )?(?:new |native|\S+ \(<anonymous>\))", line):
            break
        kept.append(line)
    return "\n".join(kept).strip()


def is_foreign(file: str | None) -> bool:
    """Code of the runtime or of a package, not of the project."""
    return file is None or file.startswith(("node:", "internal/", "ext:", "bun:", "native", "<")) or "/node_modules/" in f"/{file}" or "://" in file


def own_frames(frames: Sequence[Frame]) -> list[Frame]:
    return [frame for frame in frames if not is_foreign(frame.file) and not (frame.file or "").startswith(("/", "../"))]


def suggested_traces(frames: Sequence[Frame], name: str, file: str | None) -> list[str]:
    """Patterns for debug_trace: functions of the project on the stack, the sources they lie in, then words of the test's name."""
    found: list[str] = []
    own = own_frames(frames)
    for frame in own:
        if frame.function and re.fullmatch(r"[#\w$.]+", frame.function):
            found.append(frame.function)
    found += [f"@file:{frame.file}" for frame in own if frame.file and not _TEST_FILE.search(frame.file)]
    for word in _IDENTIFIER.findall(name):
        if re.search(r"[a-z][A-Z]|_|\.\w", word.strip("_.")):
            found.append(f"*{word.split('.')[-1]}*")
    if not found and file:
        stem = re.sub(r"[._-](?:test|spec|e2e|integration|unit)(?=\.|$)", "", re.sub(r"\.[cm]?[jt]sx?$", "", file.rsplit("/", 1)[-1]), flags=re.I)
        found.append(f"@file:{stem}.")
    return list(dict.fromkeys(found))[:TRACES_MAX]
