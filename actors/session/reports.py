"""What runtimes print when a program dies: uncaught C++ exceptions, Rust panics, failed assertions, glibc's checks, sanitizers' reports. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

MESSAGE_MAX: Final = 2000
FRAMES_MAX: Final = 16
REPORTS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Report:
    """`kind`: exception, panic, assertion, heap (glibc's checks), sanitizer. `fatal`: the program ends by it. `at`: where its text begins."""

    kind: str
    type: str
    message: str | None
    at: int = 0
    fatal: bool = True
    tool: str | None = None
    thread: str | None = None
    function: str | None = None
    file: str | None = None
    line: int | None = None
    address: str | None = None
    pid: int | None = None
    frames: tuple[dict[str, Any], ...] = field(default=())

    def headline(self) -> str:
        told = f": {self.message}" if self.message else ""
        if self.kind == "exception":
            return f"uncaught {self.type}{told}"
        if self.kind == "panic":
            return f"panic{told}"
        if self.kind == "assertion":
            return f"assertion failed{told}"
        return f"{self.tool}: {self.type}{told}" if self.tool else f"{self.type}{told}"

    def to_wire(self) -> dict[str, Any]:
        shown = {
            "kind": self.kind, "tool": self.tool, "type": self.type, "message": self.message, "thread": self.thread, "function": self.function,
            "file": self.file, "line": self.line, "address": self.address, "frames": list(self.frames) or None,
        }  # fmt: skip
        return {key: value for key, value in shown.items() if value is not None}


def reports_in(text: str) -> list[Report]:
    """In the order of the text; the last ones of many."""
    text = text.replace("\r\n", "\n")
    matches = [(make, match) for pattern, make in _MAKERS for match in list(pattern.finditer(text))[-REPORTS_MAX:]]
    found = [report for make, match in matches if (report := make(match, text)) is not None]
    return sorted(found, key=lambda report: report.at)[-REPORTS_MAX:]


def _cut(message: str | None) -> str | None:
    return None if not message else message[:MESSAGE_MAX].rstrip("\n")


def _thrown(match: re.Match[str], text: str) -> Report:
    del text
    return Report("exception", match["type"], _cut(match["what"]), match.start(), tool="libstdc++")


def _terminated(match: re.Match[str], text: str) -> Report:
    del text
    return Report("exception", "std::terminate", match["why"], match.start(), tool="libstdc++")


def _thrown_llvm(match: re.Match[str], text: str) -> Report:
    del text
    return Report("exception", match["type"], _cut(match["what"]), match.start(), tool="libc++abi")


def _panic(match: re.Match[str], text: str) -> Report | None:
    if match["thread"] is None:
        return None
    tail = text[match.end() + 1 : match.end() + 20_000]
    message = tail.split("\nnote: ")[0].split("\nstack backtrace:")[0].split("\nthread '")[0]
    frame = re.search(rf"^ +\d+: (?P<function>[^\n]+)\n +at {re.escape(match['file'])}:{match['line']}\b", tail, re.MULTILINE)  # RUST_BACKTRACE=1
    if match["old"] is not None:
        message = match["old"]
    return Report(
        "panic", "panic", _cut(message), match.start(), tool="rust", thread=match["thread"], file=match["file"], line=int(match["line"]),
        fatal=match["thread"] == "main", function=frame["function"] if frame else None,
    )  # fmt: skip


def _overflowed(match: re.Match[str], text: str) -> Report:
    del text
    return Report("stack overflow", "stack overflow", None, match.start(), tool="rust", thread=match["thread"])


def _asserted(match: re.Match[str], text: str) -> Report:
    del text
    where = match["function"]
    return Report("assertion", "assertion", _cut(match["what"]), match.start(), tool="assert", function=where, file=match["file"], line=int(match["line"]))


def _glibc(match: re.Match[str], text: str) -> Report:
    del text
    return Report("heap" if "***" not in match[0] else "stack", match["what"], None, match.start(), tool="glibc")


def _sanitizer(match: re.Match[str], text: str) -> Report:
    tail = text[match.end() : match.end() + 20_000]
    end = re.search(r"^==\d+==ABORTING|^SUMMARY: ", tail, re.MULTILINE)
    body = tail[: end.start()] if end else tail
    head = match["head"]
    address = re.search(r"0x[0-9a-f]+", head)
    access = re.search(r"^(?:READ|WRITE) of size \d+[^\n]*", body, re.MULTILINE)
    told = head.partition(" ")[2] if match["tool"] != "LeakSanitizer" else ""
    message = "; ".join(part for part in (re.sub(r" at pc 0x.*| \(pc 0x.*", "", told), access[0].strip() if access else "") if part)
    kind = head if match["tool"] == "LeakSanitizer" else head.partition(" ")[0].rstrip(":")
    frames = tuple(_frames(body))
    first = next((frame for frame in frames if frame.get("file") and "sanitizer" not in str(frame["file"])), {})
    return Report(
        "sanitizer", kind, _cut(message), match.start(), tool=match["tool"], address=address[0] if address else None, pid=int(match["pid"]), frames=frames,
        function=first.get("function"), file=first.get("file"), line=first.get("line"), fatal=match["tool"] != "ThreadSanitizer",
    )  # fmt: skip


def _undefined(match: re.Match[str], text: str) -> Report:
    following = text[match.end() : match.end() + 4000]
    frames = tuple(_frames(following)) if following.lstrip("\n").lstrip().startswith("#0 ") else ()
    function = frames[0].get("function") if frames else None
    last = not _MORE.search(text, match.end())  # -fno-sanitize-recover: the program's last words
    return Report(
        "sanitizer", "undefined behaviour", _cut(match["what"]), match.start(), tool="UndefinedBehaviorSanitizer", file=match["file"], line=int(match["line"]),
        function=function, frames=frames, fatal=last,
    )  # fmt: skip


_MORE: Final = re.compile(r"^(?! *#\d+ 0x|SUMMARY: |[ \t]*$).", re.MULTILINE)  # a line that belongs to no report of UBSAN's
_FRAME: Final = re.compile(
    r"^ +#(?P<n>\d+) 0x(?P<address>[0-9a-f]+)(?: in (?P<function>.+?))?"
    r"(?: (?P<file>/?[^\s():]+):(?P<line>\d+)(?::\d+)?| \((?P<module>[^()\n]+)\+0x[0-9a-f]+\).*)?$",
    re.MULTILINE,
)


def _frames(body: str) -> Iterator[dict[str, Any]]:
    """Of the first stack in it."""
    for expected, match in enumerate(_FRAME.finditer(body)):
        number = int(match["n"])
        if number != expected or expected >= FRAMES_MAX:
            return
        line = int(match["line"]) if match["line"] else None
        shown = {"frame": number, "address": f"0x{match['address'].lstrip('0') or '0'}", "function": match["function"], "file": match["file"], "line": line}
        shown["module"] = match["module"]
        yield {key: value for key, value in shown.items() if value is not None}


_THROWN: Final = r"terminate called after throwing an instance of '(?P<type>[^\n]+)'(?:\n  what\(\):  (?P<what>[^\n]*))?"
_THROWN_LLVM: Final = r"libc\+\+abi: terminating (?:due to|with) uncaught exception of type (?P<type>[^\n]+?)(?:: (?P<what>[^\n]*))?$"
_PANICKED: Final = r"^thread '(?P<thread>[^\n']*)'(?: \(\d+\))? panicked at (?:'(?P<old>.*?)', )?(?P<file>[^\n:']+):(?P<line>\d+):\d+:?$"
_ASSERTED: Final = r"^[^\n:]+: (?P<file>[^\n:]+):(?P<line>\d+): (?P<function>[^\n]+?): Assertion `(?P<what>.+)' failed\.$"
_HEAP: Final = (
    r"(?:free|malloc|realloc|calloc|munmap_chunk|malloc_consolidate|_int_malloc|_int_free)\(\): [^\n]+|double free or corruption[^\n]*"
    r"|corrupted (?:size|double|unsorted)[^\n]*|(?:stack smashing|buffer overflow) detected"
)
_MAKERS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Report | None]], ...]] = (
    (re.compile(_THROWN), _thrown),
    (re.compile(r"terminate called (?P<why>without an active exception|recursively)"), _terminated),
    (re.compile(_THROWN_LLVM, re.MULTILINE), _thrown_llvm),
    (re.compile(_PANICKED, re.MULTILINE), _panic),
    (re.compile(r"^thread '(?P<thread>[^\n']*)'(?: \(\d+\))? has overflowed its stack$", re.MULTILINE), _overflowed),
    (re.compile(_ASSERTED, re.MULTILINE), _asserted),
    (re.compile(rf"^(?:\*\*\* )?(?P<what>{_HEAP})(?: \*\*\*[^\n]*)?$", re.MULTILINE), _glibc),
    (re.compile(r"^==(?P<pid>\d+)==\s*(?:ERROR|WARNING): (?P<tool>(?!UndefinedBehavior)\w+Sanitizer): (?P<head>[^\n]+)$", re.MULTILINE), _sanitizer),
    (re.compile(r"^(?P<file>[^\s:][^\n:]*):(?P<line>\d+):\d+: runtime error: (?P<what>[^\n]+)$", re.MULTILINE), _undefined),
)
