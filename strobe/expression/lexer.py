"""Text to tokens. Each token is found by one look from the left; what is no token of the language is named for what it is elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from strobe.expression import literals
from strobe.expression.errors import ExpressionError

LENGTH_MAX: Final = 4096
Kind = Literal["name", "backquoted", "integer", "real", "character", "text", "symbol", "end"]
_SPACE: Final = re.compile(r"[ \t\n\r\f\v]*")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_WORD: Final = re.compile(r"[^\W\d]\w*")
# As C's preprocessor cuts them: all that could belong to one number, so that `12ab` is one wrong number and not two right tokens.
_NUMBER: Final = re.compile(r"0[xX](?:[pP][-+]|[0-9A-Za-z_.])*|\.?[0-9](?:[eE][-+]|[0-9A-Za-z_.])*")
_DIGITS: Final = re.compile(r"[0-9]+")
_QUOTED: Final = re.compile(r"""(?:u8|[LuU])?(["'])((?:(?!\1)[^\\\n]|\\.)*)\1""", re.DOTALL)
_QUOTE_OPENS: Final = re.compile(r"""(?:u8|[LuU])?["']""")
_BACKQUOTED: Final = re.compile(r"`([^`\n]+)`")
_SYMBOL: Final = re.compile(r">>=|<<=|===|!==|\*\*=|->|::|<<|>>|<=|>=|==|!=|=>|:=|&&|\|\||\+\+|--|\?\?|\?\.(?![0-9])|[-+*/%&|^]=|[-+*/%&|^!~<>=.?:()\[\],@;{}]")
_READS: Final = "expressions read and never change anything"
# symbol → (what it does elsewhere, what to write here)
FOREIGN: Final = {
    "=>": ("`=>` makes a JavaScript function, and an expression holds no functions", "Write the value itself: `args[0] > 100 && gMode == 2`."),
    "===": ("`===` is JavaScript", "Compare with `==`."),
    "!==": ("`!==` is JavaScript", "Compare with `!=`."),
    "?.": ("`?.` is JavaScript", "Write `.` or `->`: a member that cannot be read makes the result unavailable, never an error."),
    "??": ("`??` is JavaScript", "Write `condition ? value : other`."),
    "=": (f"`=` assigns, and {_READS}", "Compare with `==`; to change a variable use debug_memory with action `write`."),
    ":=": (f"`:=` assigns, and {_READS}", "Compare with `==`."),
    "++": (f"`++` changes a variable, and {_READS}", "Write `x + 1`, or `+ +x` for two signs."),
    "--": (f"`--` changes a variable, and {_READS}", "Write `x - 1`, or `- -x` for two signs."),
    ";": ("`;` ends a statement, and an expression is one value", "Join conditions with `&&` or `||`; give separate values as separate expressions."),
    "{": ("`{` opens a block, and an expression has none", "Write the value alone; braces stand around expressions in log messages only."),
    "}": ("`}` closes nothing", "Write the value alone; braces stand around expressions in log messages only."),
    **{
        f"{operator}=": (f"`{operator}=` assigns, and {_READS}", f"Write `x {operator} y`.")
        for operator in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "**")
    },
}
_UNKNOWN: Final = {
    "$": ("`$` is gdb's and the shell's", "Name variables as the program does; arguments are `args[0]`, the return value is `ret`."),
    "#": ("`#` begins no token", "Leave comments out."),
    "`": ("this backquote has no partner", "Backquotes stand around a whole name: `` `(anonymous namespace)::count` ``."),
    "\\": ("`\\` begins no token", 'Escapes stand inside quotes: "\\n".'),
}


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is what to name it by: the name without backquotes, the symbol. `value` is a literal's."""

    kind: Kind
    text: str
    start: int
    end: int
    value: int | float | str = 0
    unsigned: bool = False


def tokens(text: str, start: int = 0, *, until_brace: bool = False) -> list[Token]:
    """The tokens from `start` on; the last is of kind `end`. With `until_brace` the text ends before the first `}` that is in no literal.

    Errors: ExpressionError.
    """
    check(text)
    found: list[Token] = []
    at = start
    while True:
        space = _SPACE.match(text, at)
        at = space.end() if space else at
        if at == len(text) or (until_brace and text[at] == "}"):
            found.append(Token("end", "", at, at))
            return found
        found.append(_token(text, at, found[-1] if found else None))
        at = found[-1].end


def check(text: str) -> None:
    """Of any text, before it is read. Errors: ExpressionError."""
    if len(text) > LENGTH_MAX:
        raise ExpressionError(text, LENGTH_MAX, f"the text has {len(text)} characters, {LENGTH_MAX} are read", "Split it.")
    if found := _SURROGATE.search(text):
        raise ExpressionError(text, found.start(), "half of a surrogate pair is no character", "Send the text as UTF-8.")


def _token(text: str, at: int, before: Token | None) -> Token:
    try:
        token = _quoted(text, at) or _word(text, at) or _number(text, at, before)
    except literals.LiteralError as error:
        raise ExpressionError(text, min(at + error.at, len(text)), error.problem, "Write it as C does: 0x1f, 4.5, 'a', \"text\\n\".") from None
    return token or _symbol(text, at)


def _quoted(text: str, at: int) -> Token | None:
    opens = _QUOTE_OPENS.match(text, at)
    if opens is None:
        return None
    found = _QUOTED.match(text, at)
    if found is None:
        raise ExpressionError(text, at, "this quote is never closed", "Close it on the same line; a quote inside is written `\\\"` or `\\'`.")
    try:
        if found[1] == "'":
            return Token("character", found[0], at, found.end(), literals.character(found[2]))
        return Token("text", found[0], at, found.end(), literals.text_of(found[2]))
    except literals.LiteralError as error:
        raise literals.LiteralError(error.problem, found.start(2) - at + error.at) from None


def _word(text: str, at: int) -> Token | None:
    if found := _WORD.match(text, at):
        return Token("name", found[0], at, found.end())
    if found := _BACKQUOTED.match(text, at):
        return Token("backquoted", found[1], at, found.end())
    return None


def _number(text: str, at: int, before: Token | None) -> Token | None:
    if before is not None and before.text in (".", "->") and before.kind == "symbol" and (found := _DIGITS.match(text, at)):
        return Token("name", found[0], at, found.end())  # the member of a Rust tuple: `pair.0.1`
    found = _NUMBER.match(text, at)
    if found is None or (text[at] == "." and before is not None and _ends_operand(before)):
        return None
    whole = literals.integer(found[0])
    if whole is not None:
        return Token("integer", found[0], at, found.end(), whole[0], whole[1])
    value = literals.real(found[0])
    if value is None:
        raise literals.LiteralError(f"`{found[0][:40]}` is no number")
    return Token("real", found[0], at, found.end(), value)


def _ends_operand(token: Token) -> bool:
    return token.kind in ("name", "backquoted", "character", "text") or (token.kind == "symbol" and token.text in (")", "]"))


def _symbol(text: str, at: int) -> Token:
    found = _SYMBOL.match(text, at)
    if found is None:
        problem, next_step = _UNKNOWN.get(text[at], (f"{_named(text[at])} begins no token", "Leave it out."))
        raise ExpressionError(text, at, problem, next_step)
    if foreign := FOREIGN.get(found[0]):
        raise ExpressionError(text, at, *foreign)
    return Token("symbol", found[0], at, found.end())


def _named(character: str) -> str:
    return f"`{character}`" if character.isprintable() and not character.isspace() else f"the character U+{ord(character):04X}"
