"""Where the parser stands among the tokens, and what it says when it cannot go on."""

from __future__ import annotations

from typing import Final, NoReturn

from strobe.expression.errors import ExpressionError
from strobe.expression.lexer import Token
from strobe.expression.names_in_text import WORD_OPERATORS

NESTING_MAX: Final = 64  # parentheses, indexes, signs and operands that bind tighter, one inside the other
OPERAND: Final = "a name, a number, a text or `(`"
_GO_ON: Final = "an operator or the end"


class Cursor:
    """Reads forward; `at` is the next token. The last token is the end, and never passed."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0
        self._nesting = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    @property
    def end_before(self) -> int:
        """Where the token before ends."""
        return self.tokens[self.at - 1].end

    def is_next(self, symbol: str) -> bool:
        return self.next.kind == "symbol" and self.next.text == symbol

    def take(self) -> Token:
        token = self.next
        self.at += 1
        return token

    def expect(self, symbol: str, opened: Token) -> None:
        if self.is_next(symbol):
            self.take()
        elif self.next.kind == "end":
            self.refuse(f"the `{opened.text}` at offset {opened.start} is not closed", f"Add `{symbol}`.", f"`{symbol}`")
        else:
            self.refuse_rest(f"`{symbol}` or an operator")

    def enter(self) -> None:
        """Before what is nested; `leave` after it."""
        self._nesting += 1
        if self._nesting > NESTING_MAX:
            self.refuse(f"more than {NESTING_MAX} levels are nested here", "Split the expression.")

    def leave(self) -> None:
        self._nesting -= 1

    def refuse_call(self, opened: Token) -> NoReturn:
        raise ExpressionError(
            self.text,
            opened.start,
            "`(` would call a function, and an expression runs none of the target's code",
            "Read what the function would read: variables, members, `args[0]`, `ret`; a size or a state is often a member.",
        )

    def refuse_rest(self, expected: str = _GO_ON) -> NoReturn:
        if self.next.kind == "name" and self.next.text in WORD_OPERATORS:
            self.refuse_word(self.next, expected)
        if self.is_next(","):
            self.refuse("`,` separates values, and an expression is one", "Give separate values as separate expressions.", expected)
        self.refuse(self.found(), "Join values with an operator such as `&&`, or remove the rest.", expected)

    def refuse_word(self, token: Token, expected: str) -> NoReturn:
        problem = f"`{token.text}` is no operator here"
        raise ExpressionError(self.text, token.start, problem, f"Write `{WORD_OPERATORS[token.text]}`.", expected=expected)

    def refuse_type(self, token: Token) -> NoReturn:
        next_step = "Only pointers are cast: `(struct order*)0x7f00`. Arithmetic is in 64 bits or double, and needs no casts."
        raise ExpressionError(self.text, token.start, f"`{token.text}` is a type", next_step, expected=OPERAND)

    def found(self) -> str:
        token = self.next
        if token.kind == "end":
            return "the expression ends here" if self.at else "the expression is empty"
        return f"`{self.text[token.start : min(token.end, token.start + 40)]}` cannot stand here"

    def refuse(self, problem: str, next_step: str, expected: str = "") -> NoReturn:
        raise ExpressionError(self.text, self.next.start, problem, next_step, expected=expected)
