"""A tree as text that reads back as the same tree, with no more parentheses than that takes."""

from __future__ import annotations

import re
from typing import Final

from strobe.expression.errors import ExpressionError
from strobe.expression.lexer import tokens
from strobe.expression.literals import quoted
from strobe.expression.names_in_text import TYPE_WORDS, WORD_OPERATORS, cast
from strobe.expression.tree import (
    BINARY,
    RESERVED,
    Argument,
    Array,
    Binary,
    Cast,
    Character,
    Conditional,
    Index,
    Integer,
    Member,
    Name,
    Node,
    Null,
    Real,
    Result,
    Text,
    Truth,
    Unary,
)

_PLAIN: Final = re.compile(r"(?:::)?[^\W\d]\w*(?:::[^\W\d]\w*)*")
_MEMBER: Final = re.compile(r"[0-9]+|[^\W\d]\w*(?:::[^\W\d]\w*)*")
_CONDITIONAL, _UNARY, _POSTFIX = 0, 12, 13  # next to the bindings of BINARY


def show(node: Node) -> str:
    match node:
        case Integer():
            return f"{node.value}{'ull' if node.unsigned else ''}"
        case Character():
            return f"'\\x{node.value & 255:02x}'" if node.value < 0 else quoted(chr(node.value), "'")
        case Real():
            return repr(node.value)
        case Text():
            return quoted(node.value, '"')
        case Truth():
            return "true" if node.value else "false"
        case Null():
            return "null"
        case Name():
            return _name(node.text)
        case Argument():
            return f"args[{node.key}]" if isinstance(node.key, int) else f"args.{_member(node.key)}"
        case Result():
            return "ret"
        case _:
            return _joined(node)


def _joined(node: Member | Index | Array | Cast | Unary | Binary | Conditional) -> str:
    match node:
        case Member():
            return f"{_within(node.target, _POSTFIX)}{'->' if node.arrow else '.'}{_member(node.name)}"
        case Index():
            return f"{_within(node.target, _POSTFIX)}[{show(node.index)}]"
        case Array():
            return f"{_within(node.target, BINARY['@'])}@{_within(node.count, BINARY['@'] + 1)}"
        case Cast():
            return f"({_type(node.type_name)}{'*' * node.pointers}){_within(node.operand, _UNARY)}"
        case Unary():
            operand = _within(node.operand, _UNARY)
            return f"{node.operator} {operand}" if operand[0] == node.operator else f"{node.operator}{operand}"
        case Binary():
            binding = BINARY[node.operator]
            return f"{_within(node.left, binding)} {node.operator} {_within(node.right, binding + 1)}"
        case Conditional():
            return f"{_within(node.condition, _CONDITIONAL + 1)} ? {show(node.then)} : {show(node.otherwise)}"


def _within(node: Node, loosest: int) -> str:
    """In parentheses when it binds less tightly than its place asks."""
    return show(node) if _binding(node) >= loosest else f"({show(node)})"


def _binding(node: Node) -> int:
    match node:
        case Conditional():
            return _CONDITIONAL
        case Binary():
            return BINARY[node.operator]
        case Array():
            return BINARY["@"]
        case Unary() | Cast() | Integer() | Real():  # `5.x` would be read as a number
            return _UNARY
        case _:
            return _POSTFIX


def _name(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text not in RESERVED | TYPE_WORDS | WORD_OPERATORS.keys() else f"`{text}`"


def _member(name: str) -> str:
    return name if _MEMBER.fullmatch(name) else f"`{name}`"


def _type(name: str) -> str:
    try:
        found = cast(tokens(f"({name}*)"), 0)
    except ExpressionError:
        found = None
    return name if found and (found.type_name, found.pointers) == (name, 1) else f"`{name}`"
