"""Function patterns (SPEC §4, debug_trace): parsed, checked, and turned into a matcher and the literal fragments to search for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from typing import Final, Literal, NoReturn

from actors.indexer.source_name import SourceName
from strobe.errors import Code, StrobeError

PATTERN_MAX: Final = 1024
_OPERATOR: Final = re.compile(r"\boperator *(?:\"\" *\w+|\(\)|\[\]|<=>|->\*?|<<=|>>=|<<|>>|<=|>=|[-+*/%^&|~!=<>,]{1,2})")
_FRAGMENT: Final = re.compile(r"[A-Za-z0-9_]{2,}")
_LAST_NAME: Final = re.compile(r"(?:^|::|~)([A-Za-z_][A-Za-z0-9_]*)$")
# Itanium ABI §5.1.8 abbreviates these, so they need not occur in a linkage name
_ABBREVIATED: Final = frozenset(
    ["std", "allocator", "basic_string", "string", "basic_istream", "basic_ostream", "basic_iostream", "istream", "ostream", "iostream"]
)
# words of the demanglers, and types that manglings write as one letter
_WORDS: Final = re.compile(
    "operator|new|delete|co_await|anonymous|namespace|lambda|closure|shim|vtable|unnamed|type|impl|for|as|dyn|const|mut|unsigned|signed|int|long|"
    "short|char|bool|float|double|void|[iu](?:8|16|32|64|128|size)|f32|f64|str"
)
_EXAMPLES: Final = "Examples: `parse_header`, `net::*::send`, `auth::**`, `@usercode`, `@file:src/auth`."

Kind = Literal["name", "usercode", "file"]


@dataclass(frozen=True, slots=True)
class Key:
    """What to search linkage names for: bytes that are in the name of every match. `whole`: as an identifier of its own."""

    text: bytes
    whole: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """`text` as the caller wrote it. Without a `key` every function must be looked at."""

    text: str
    kind: Kind
    regex: re.Pattern[str]
    full: bool  # matched against the full name
    literal: bool  # no wildcard
    key: Key | None

    def matches(self, name: SourceName) -> bool:
        candidates = name.exact if self.full else name.plain
        return any(self.regex.fullmatch(candidate) for candidate in candidates)

    def matches_file(self, path: str) -> bool:
        return bool(self.regex.search(path))


def parse(text: str) -> Pattern:
    """Errors: INVALID_PATTERN naming the pattern, the position and a correct example."""
    if not text.strip():
        _refuse(text, 0, "is empty")
    if text != text.strip():
        _refuse(text, 0 if text[0].isspace() else len(text) - 1, "has a space at its end")
    if len(text) > PATTERN_MAX:
        _refuse(text, PATTERN_MAX, f"is longer than {PATTERN_MAX} characters")
    if text.startswith("@"):
        return _special(text)
    full = "<" in _OPERATOR.sub("", text)
    _check(text)
    literal = "*" not in _OPERATOR.sub("", text)
    return Pattern(text, "name", re.compile(_regex(text), re.DOTALL), full, literal, _key(text))


def _special(text: str) -> Pattern:
    if text == "@usercode":
        return Pattern(text, "usercode", re.compile(""), False, False, None)
    if not text.startswith("@file:"):
        _refuse(text, 1, "starts with `@`, which only `@usercode` and `@file:TEXT` do")
    wanted = text[6:]
    if not wanted.strip():
        _refuse(text, 6, "has no text after `@file:`")
    glob = any(character in wanted for character in "*?[")
    regex = re.compile(_glob(wanted) if glob else re.escape(wanted))
    return Pattern(text, "file", regex, False, False, None)


def _glob(wanted: str) -> str:
    """A glob matches a whole path, or the end of one from a folder boundary: `*.c`, `src/*.cpp`, `/abs/**/x.h`."""
    body = translate(wanted)
    return rf"(?:^|/){body}" if not wanted.startswith("/") else rf"^{body}"


def _check(text: str) -> None:
    for match in re.finditer(r"\*{3,}", text):
        _refuse(text, match.start(), "has more than two `*` in a row")
    bare = _OPERATOR.sub(lambda found: "_" * len(found.group()), text)
    for position, character in enumerate(bare):
        if ord(character) < 32 or character in "^|\\?;\"`":
            regex = "is a wildcard of regular expressions; here `*` and `**` are the only ones" if character in "^|\\?" else "is in no function name"
            _refuse(text, position, f"has {character!r}, which {regex}")
    for match in re.finditer(r":+", bare):
        if len(match.group()) != 2:
            _refuse(text, match.start(), "has a `:` that is not part of `::`")
    _check_brackets(text, bare)


def _check_brackets(text: str, bare: str) -> None:
    pairs = {")": "(", ">": "<", "]": "[", "}": "{"}
    opened: list[tuple[str, int]] = []
    for position, character in enumerate(bare):
        if character in "(<[{":
            opened.append((character, position))
        elif character in pairs and not (character == ">" and bare[position - 1 : position] == "-"):
            if opened and opened[-1][0] == pairs[character]:
                opened.pop()
            elif "*" not in bare[:position]:  # a wildcard before it may stand for what opens it
                _refuse(text, position, f"has a `{character}` that closes nothing")
    if opened and "*" not in bare[opened[-1][1] :]:
        _refuse(text, opened[-1][1], f"opens a `{opened[-1][0]}` that is not closed")


def _regex(text: str) -> str:
    """`**::` also matches nothing; `*` does not cross `::`."""
    out: list[str] = []
    at = 0
    while at < len(text):
        operator = _OPERATOR.match(text, at)
        if operator and "*" in operator.group():
            out.append(re.escape(re.sub(r"^operator +", "operator", operator.group())))
            at = operator.end()
        elif text.startswith("**::", at) and (at == 0 or text.startswith("::", at - 2)):
            out.append("(?:.*::)?")
            at += 4
        elif text.startswith("**", at):
            out.append(".*")
            at += 2
        elif text[at] == "*":
            out.append("(?:(?!::).)*")
            at += 1
        else:
            out.append(re.escape(text[at]))
            at += 1
    return "".join(out)


def _key(text: str) -> Key | None:
    """The last identifier, which every mangling writes with its length, or the longest literal part."""
    last = _LAST_NAME.search(text)
    if last and last.group(1) not in _ABBREVIATED and last.group(1) != "operator":
        return Key(last.group(1).encode(), whole=True)
    outside: list[str] = []
    depth = 0
    for character in _OPERATOR.sub(" ", text):
        depth += (character in "<({[") - (character in ">)}]")
        outside.append(character if depth <= 0 and character not in ">)}]" else " ")
    found = [word for word in _FRAGMENT.findall("".join(outside)) if word not in _ABBREVIATED and not _WORDS.fullmatch(word)]
    return Key(max(found, key=len).encode(), whole=False) if found else None


def _refuse(text: str, position: int, why: str) -> NoReturn:
    shown = text if len(text) <= 120 else text[:117] + "..."
    raise StrobeError(
        Code.INVALID_PATTERN,
        f"Pattern {shown!r} {why} (position {position}).",
        f"`*` stands for any run without `::`, `**` for any run. {_EXAMPLES}",
        value={"pattern": shown, "position": position},
    )
