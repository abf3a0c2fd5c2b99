"""Tokens to a tree, by precedence climbing. README.md has the grammar."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from strobe.expression import names_in_text
from strobe.expression.cursor import OPERAND, Cursor
from strobe.expression.errors import ExpressionError
from strobe.expression.lexer import Token, tokens
from strobe.expression.tree import (
    BINARY,
    UNARY,
    Argument,
    Array,
    Binary,
    Cast,
    Character,
    Conditional,
    Expression,
    Index,
    Integer,
    Member,
    Name,
    Node,
    Null,
    Real,
    Result,
    Span,
    Text,
    Truth,
    Unary,
    walk,
)

HEIGHT_MAX: Final = 128  # of the tree: as many operators in a row


def parse(text: str) -> Expression:
    """Errors: ExpressionError."""
    return _Parser(text, tokens(text)).whole()


def parse_until_brace(text: str, start: int) -> Expression:
    """The expression in `text` from `start` to the first `}` that is in no literal (or to the end). Errors: ExpressionError."""
    return _Parser(text, tokens(text, start, until_brace=True)).whole()


class _Parser(Cursor):
    """One method for each rule of the grammar."""

    def whole(self) -> Expression:
        start = self.next.start
        root = self.expression()
        if self.next.kind != "end":
            self.refuse_rest()
        self._check_height(root)
        return Expression(self.text, root, Span(start, self.end_before))

    def expression(self) -> Node:
        self.enter()
        condition = self.binary(1)
        if not self.is_next("?"):
            self.leave()
            return condition
        question = self.take()
        then = self.expression()
        self.expect(":", question)
        otherwise = self.expression()
        self.leave()
        return Conditional(condition, then, otherwise, span=_over(condition, otherwise))

    def binary(self, loosest: int) -> Node:
        """Operands joined by operators that bind at least as tightly as `loosest`."""
        left = self.unary()
        while self.next.kind == "symbol" and (binding := BINARY.get(self.next.text, 0)) >= loosest:
            operator = self.take().text
            self.enter()
            right = self.binary(binding + 1)
            self.leave()
            span = _over(left, right)
            left = Array(left, right, span=span) if operator == "@" else Binary(operator, left, right, span=span)
        return left

    def unary(self) -> Node:
        token = self.next
        if token.kind == "symbol" and token.text in UNARY:
            self.take()
            operand = self._operand()
            return Unary(token.text, operand, span=Span(token.start, operand.span.end))
        if (cast := names_in_text.cast(self.tokens, self.at)) is None:
            return self.postfix(self.primary())
        self.at = cast.after
        operand = self._operand()
        return Cast(cast.type_name, cast.pointers, operand, span=Span(token.start, operand.span.end))

    def _operand(self) -> Node:
        self.enter()
        operand = self.unary()
        self.leave()
        return operand

    def postfix(self, target: Node) -> Node:
        while self.next.kind == "symbol" and self.next.text in (".", "->", "[", "("):
            opened = self.take()
            start = target.span.start
            if opened.text == "(":
                self.refuse_call(opened)
            if opened.text == "[":
                index = self.expression()
                self.expect("]", opened)
                target = self._indexed(target, index, Span(start, self.end_before))
            else:
                name, end = self.member()
                arrow = opened.text == "->"
                is_argument = target == Name("args") and self.text[start] == "a" and not arrow
                key = int(name) if name.isdecimal() and len(name) < 10 else name
                target = Argument(key, span=Span(start, end)) if is_argument else Member(target, name, arrow, span=Span(start, end))
        return target

    def _indexed(self, target: Node, index: Node, span: Span) -> Node:
        if target == Name("args") and self.text[span.start] == "a" and isinstance(index, Integer):
            return Argument(index.value, span=span)
        return Index(target, index, span=span)

    def member(self) -> tuple[str, int]:
        """Its name, `Base::x` too, and where it ends."""
        found = names_in_text.qualified(self.tokens, self.at)
        if found is None or found.text.startswith("::"):
            self.refuse(self.found(), "Write `value.member`, `pointer->member` or `tuple.0`.", "a member's name")
        self.at = found.after
        return found.text, self.end_before

    def primary(self) -> Node:
        token = self.next
        span = Span(token.start, token.end)
        if token.kind in ("name", "backquoted") or self.is_next("::"):
            return self.name()
        if not self.is_next("("):
            return self.literal(span)
        opened = self.take()
        inner = self.expression()
        self.expect(")", opened)
        return replace(inner, span=Span(opened.start, self.end_before))

    def literal(self, span: Span) -> Node:
        match self.next:
            case Token("integer", _, _, _, int(value), unsigned):
                node: Node = Integer(value, unsigned, span=span)
            case Token("character", _, _, _, int(value)):
                node = Character(value, span=span)
            case Token("real", _, _, _, float(value)):
                node = Real(value, span=span)
            case Token("text", _, _, _, str(text)):
                node = Text(text, span=span)
            case _:
                self.refuse(self.found(), "Complete it, for example `args[0] > 100 && gMode == 2`.", OPERAND)
        self.take()
        return node

    def name(self) -> Node:
        token = self.next
        found = names_in_text.qualified(self.tokens, self.at)
        if found is None:
            self.take()
            self.refuse(self.found(), "Write `ns::name`, or `::name` for a global one.", "a name after `::`")
        self.at = found.after
        span = Span(token.start, self.end_before)
        if token.kind == "name" and found.text == token.text:
            return self._word(token, span)
        return Name(found.text, span=span)

    def _word(self, token: Token, span: Span) -> Node:
        if token.text in ("true", "false"):
            return Truth(token.text == "true", span=span)
        if token.text in ("null", "nullptr", "NULL"):
            return Null(span=span)
        if token.text == "ret":
            return Result(span=span)
        if token.text in names_in_text.TYPE_WORDS:
            self.refuse_type(token)
        if token.text in names_in_text.WORD_OPERATORS and (self.next.kind not in ("end", "symbol") or token.text == "not"):
            self.refuse_word(token, OPERAND)
        return Name(token.text, span=span)

    def _check_height(self, root: Node) -> None:
        if any(depth > HEIGHT_MAX for _, depth in walk(root)):
            raise ExpressionError(self.text, root.span.start, f"more than {HEIGHT_MAX} operators stand in a row from here", "Split the expression.")


def _over(first: Node, last: Node) -> Span:
    return Span(first.span.start, last.span.end)
