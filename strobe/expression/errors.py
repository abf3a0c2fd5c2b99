"""What is wrong with a text that is no expression, and where."""

from __future__ import annotations

from typing import Final

from strobe.errors import Code, StrobeError

_SHOWN_BEFORE: Final = 60  # characters of the text on either side of the position
_SHOWN_AFTER: Final = 40


class ExpressionError(StrobeError):
    """`position` is a 0-based offset in `text`; `expected` is empty where nothing in particular was.

    Over the wire `value` is {text, position, expected}, the text cut to what the message shows of it.
    """

    def __init__(self, text: str, position: int, problem: str, next_step: str, *, expected: str = "") -> None:
        shown, caret = _caret(text, position)
        wanted = f"; expected {expected}" if expected else ""
        what = f"The expression is wrong at offset {position}: {problem}{wanted}.\n  {shown}\n  {caret}\n"
        super().__init__(Code.VALIDATION_ERROR, what, next_step, value={"text": shown, "position": position, "expected": expected})
        self.text = text
        self.position = position
        self.problem = problem
        self.expected = expected


def _caret(text: str, position: int) -> tuple[str, str]:
    """The surroundings of the position on one line, and the line with the mark below it."""
    start, end = max(0, position - _SHOWN_BEFORE), min(len(text), position + _SHOWN_AFTER)
    before = "…" if start else ""
    shown = "".join(_visible(character) for character in text[start:end])
    return f"{before}{shown}{'…' if end < len(text) else ''}", " " * (len(before) + position - start) + "^"


def _visible(character: str) -> str:
    """One column for each: the mark stands below its character. Half of a surrogate pair cannot be sent."""
    if character.isprintable():
        return character
    return " " if character.isspace() else "\ufffd"
