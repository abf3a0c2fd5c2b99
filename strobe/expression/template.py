"""Log messages: texts with expressions in braces. `{{` and `}}` stand for braces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from strobe.expression.errors import ExpressionError
from strobe.expression.lexer import check
from strobe.expression.parser import parse_until_brace
from strobe.expression.tree import Expression, Span


@dataclass(frozen=True, slots=True)
class Literal:
    """`text` as it is shown; `span` in the message."""

    text: str
    span: Span


Part: TypeAlias = Literal | Expression


@dataclass(frozen=True, slots=True)
class Template:
    """Texts are never empty and never adjacent. Expressions know their place in the whole message."""

    text: str
    parts: tuple[Part, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(part for part in self.parts if isinstance(part, Expression))


def template(text: str) -> Template:
    """Errors: ExpressionError with positions in the whole message."""
    check(text)
    parts: list[Part] = []
    at = 0
    while at < len(text):
        part, at = _expression(text, at) if _opens(text, at) else _literal(text, at)
        parts.append(part)
    return Template(text, tuple(parts))


def _opens(text: str, at: int) -> bool:
    return text[at] == "{" and text[at : at + 2] != "{{"


def _literal(text: str, start: int) -> tuple[Literal, int]:
    shown: list[str] = []
    at = start
    while at < len(text) and not _opens(text, at):
        if text[at] in "{}":
            if text[at : at + 2] != text[at] * 2:
                raise ExpressionError(text, at, "this `}` closes nothing", "Write `}}` for a brace in the text.")
            at += 1
        shown.append(text[at])
        at += 1
    return Literal("".join(shown), Span(start, at)), at


def _expression(text: str, opened: int) -> tuple[Expression, int]:
    """The expression behind the brace at `opened`, and where the message goes on."""
    expression = parse_until_brace(text, opened + 1)
    closing = text.find("}", expression.span.end)
    if closing < 0:
        raise ExpressionError(text, opened, "this `{` is never closed", "Close it with `}`; write `{{` for a brace in the text.", expected="`}`")
    return expression, closing + 1
