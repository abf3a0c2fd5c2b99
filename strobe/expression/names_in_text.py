"""Names with `::` and template arguments, and the types of casts, among tokens.

Where a `<` opens template arguments: it follows its name without a space, everything up to its `>` could be template arguments, and
`::` follows that `>` without a space. `a<b>::c` is a name; `a < b > ::c` compares. In a cast, `*` or `const` may follow instead.
Names come out in one form: no spaces but after `,` and between words: `std::map<int, unsigned char>::x`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from strobe.expression.lexer import Token

_BUILT_IN: Final = frozenset(["bool", "char", "short", "int", "long", "float", "double", "void", "signed", "unsigned"])
_QUALIFIERS: Final = frozenset(["const", "volatile"])
_TAGS: Final = frozenset(["struct", "union", "enum", "class"])
TYPE_WORDS: Final = _BUILT_IN | _QUALIFIERS | _TAGS | {"sizeof", "typename"}
# Words of other languages where C has a sign. As names of variables they are read where no operand follows.
WORD_OPERATORS: Final = {"and": "&&", "or": "||", "not": "!", "is": "==", "in": "==", "xor": "^", "mod": "%", "div": "/"}
_IN_ARGUMENTS: Final = frozenset(["::", ",", "*", "&", "&&", "<", ">", ">>", "-", "[", "]"])
_ARGUMENT_TOKENS_MAX: Final = 128  # keeps reading linear in the length of the text


@dataclass(frozen=True, slots=True)
class Found:
    """`after`: index of the token behind it."""

    text: str
    after: int


@dataclass(frozen=True, slots=True)
class CastFound:
    type_name: str
    pointers: int
    after: int


def qualified(tokens: list[Token], at: int, *, type_name: bool = False) -> Found | None:
    """The longest name that begins at token `at`: `[::] part {:: part}`. None when none does."""
    parts = []
    if _is(tokens[at], "::"):
        parts.append("::")
        at += 1
    while tokens[at].kind in ("name", "backquoted"):
        parts.append(tokens[at].text)
        at += 1
        after = _arguments(tokens, at, type_name=type_name) if tokens[at - 1].kind == "name" else None
        if after is not None:
            parts.append(joined(tokens[at:after]))
            at = after
        if not _is(tokens[at], "::") or tokens[at + 1].kind not in ("name", "backquoted"):
            return Found("".join(parts), at)
        parts.append("::")
        at += 1
    return None


def _arguments(tokens: list[Token], at: int, *, type_name: bool) -> int | None:
    """Index behind the `>` of the template arguments that open at token `at`."""
    if not _is(tokens[at], "<") or tokens[at - 1].end != tokens[at].start:
        return None
    depth = 0
    for index in range(at, min(len(tokens), at + _ARGUMENT_TOKENS_MAX)):
        token = tokens[index]
        if token.kind not in ("name", "integer") and not (token.kind == "symbol" and token.text in _IN_ARGUMENTS):
            return None
        if token.kind == "symbol":
            depth += {"<": 1, ">": -1, ">>": -2}.get(token.text, 0)
        if depth <= 0:
            follows = tokens[index + 1]
            in_type = type_name and (_is(follows, "*") or follows.text in _QUALIFIERS)
            whole = depth == 0 and (in_type or (_is(follows, "::") and token.end == follows.start))
            return index + 1 if whole else None
    return None


def joined(tokens: list[Token]) -> str:
    """Tokens in the one form of names."""
    shown: list[str] = []
    for index, token in enumerate(tokens):
        if index and token.kind in ("name", "integer") and (tokens[index - 1].kind in ("name", "integer") or tokens[index - 1].text == ","):
            shown.append(" ")
        shown.append(token.text)
    return "".join(shown)


def cast(tokens: list[Token], at: int) -> CastFound | None:
    """`(TYPE*)` at token `at`; at least one star makes it a cast: no operand ends in one."""
    if not _is(tokens[at], "("):
        return None
    found = _type(tokens, at + 1)
    if found is None:
        return None
    pointers, after = 0, found.after
    while _is(tokens[after], "*") or (pointers and tokens[after].text in _QUALIFIERS):
        pointers += _is(tokens[after], "*")
        after += 1
    return CastFound(found.text, pointers, after + 1) if pointers and _is(tokens[after], ")") else None


def _type(tokens: list[Token], at: int) -> Found | None:
    """`struct order`, `unsigned long int`, `std::vector<int>`, with const and volatile anywhere and left out."""
    words: list[str] = []
    named = False
    while tokens[at].kind in ("name", "backquoted") or _is(tokens[at], "::"):
        text = tokens[at].text
        if text in _QUALIFIERS:
            at += 1
        elif text in _BUILT_IN or (text in _TAGS and not words):
            words.append(text)
            named = named or text in _BUILT_IN
            at += 1
        elif named or (found := qualified(tokens, at, type_name=True)) is None:
            return None
        else:
            words.append(found.text)
            named = True
            at = found.after
    return Found(" ".join(words), at) if named else None


def _is(token: Token, symbol: str) -> bool:
    return token.kind == "symbol" and token.text == symbol
