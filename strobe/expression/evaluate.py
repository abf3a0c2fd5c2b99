"""An expression's value in a scope. Each node is looked at once at most, so every evaluation ends; nothing the target holds raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strobe.expression import arithmetic, operators
from strobe.expression.operators import placed
from strobe.expression.tree import (
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
    Text,
    Truth,
    Unary,
)
from strobe.expression.world import COUNT_MAX, Outcome, Scalar, Scope, Unavailable, Value

_SIGNED_END: Final = 1 << 63
_NEAR: Final = 5


def evaluate(expression: Expression, scope: Scope) -> Outcome:
    """A `Value` where the expression is a path to one, a `Scalar` where it was calculated; `Unavailable` with the part at fault."""
    return _Evaluation(scope).value(expression.root)


def holds(expression: Expression, scope: Scope) -> bool | Unavailable:
    """The expression as a condition."""
    return _Evaluation(scope).truth(expression.root)


class _Evaluation:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def value(self, node: Node) -> Outcome:
        return placed(self._value(node), node.span)

    def truth(self, node: Node) -> bool | Unavailable:
        scalar = self.scalar(node)
        return scalar if isinstance(scalar, Unavailable) else placed(arithmetic.truth(scalar), node.span)

    def scalar(self, node: Node) -> Scalar | Unavailable:
        return placed(operators.scalar(self.value(node)), node.span)

    def _value(self, node: Node) -> Outcome:
        match node:
            case Integer():
                return Scalar(node.value, unsigned=node.unsigned or node.value >= _SIGNED_END)
            case Character() | Real() | Text() | Truth():
                return Scalar(node.value)
            case Null():
                return Scalar(None)
            case Name() | Argument() | Result():
                return self._root(node)
            case Member() | Index() | Array():
                return self._part(node)
            case Cast():
                return self._cast(node)
            case Unary():
                return self._unary(node)
            case Binary():
                return self._logical(node) if node.operator in ("&&", "||") else self._binary(node)
            case Conditional():
                condition = self.truth(node.condition)
                return condition if isinstance(condition, Unavailable) else self.value(node.then if condition else node.otherwise)

    def _root(self, node: Name | Argument | Result) -> Outcome:
        """`args` and `ret` are the call's where it has them; else what the program calls so."""
        if isinstance(node, Name):
            return self._name(node.text)
        if isinstance(node, Result):
            found = self.scope.result()
            return self._name("ret", "no return value is known here (it is at a function's exit)") if found is None else found
        found = self.scope.argument(node.key)
        if found is not None:
            return found
        shown = f"args[{node.key}]" if isinstance(node.key, int) else f"args.{node.key}"
        target = self._name("args", f"there is no `{shown}` here")
        if isinstance(target, Unavailable):
            return target
        return _index(target, node.key) if isinstance(node.key, int) else _member(target, node.key)

    def _name(self, name: str, missing: str = "") -> Outcome:
        found = self.scope.resolve(name)
        return Unavailable(missing or f"there is no `{name}` here{_near(self.scope.near(name))}") if found is None else found

    def _part(self, node: Member | Index | Array) -> Outcome:
        target = self.value(node.target)
        if isinstance(target, Unavailable):
            return target
        if isinstance(node, Array):
            return self._array(node, target)
        if isinstance(node, Index):
            key = self.scalar(node.index)
            if isinstance(key, Unavailable):
                return key
            if isinstance(key.value, float) or key.value is None:
                return Unavailable("an index is an integer, or a text where a map is indexed", node.index.span)
            return _index(target, key.value)
        if not node.arrow:
            return _member(target, node.name)
        pointed = _dereferenced(target)
        return placed(pointed, node.target.span) if isinstance(pointed, Unavailable) else _member(pointed, node.name)

    def _array(self, node: Array, target: Outcome) -> Outcome:
        """gdb's `*p@n`. A pointer that is named, not reached by `*` or an index, stands for what it points to: `p@n` is `*p@n`."""
        count = self.scalar(node.count)
        if isinstance(count, Unavailable):
            return count
        if not isinstance(count.value, int) or not 1 <= count.value <= COUNT_MAX:
            return Unavailable(f"`@` needs a count from 1 to {COUNT_MAX}", node.count.span)
        if isinstance(target, Scalar | Unavailable):
            return Unavailable("`@` needs something in memory: `*pointer@10`", node.target.span)
        is_element = isinstance(node.target, Index) or (isinstance(node.target, Unary) and node.target.operator == "*")
        first = target if is_element else _followed(target)
        return first if isinstance(first, Unavailable) else first.span(int(count.value))

    def _cast(self, node: Cast) -> Outcome:
        operand = self.value(node.operand)
        address = operators.address(operand)
        if isinstance(address, Unavailable):
            return placed(address, node.operand.span)
        found = self.scope.cast(node.type_name, node.pointers, address)
        return Unavailable(f"there is no type `{node.type_name}`{_near(self.scope.near(node.type_name))}") if found is None else found

    def _unary(self, node: Unary) -> Outcome:
        if node.operator == "!":
            truth = self.truth(node.operand)
            return truth if isinstance(truth, Unavailable) else Scalar(not truth)
        if node.operator not in ("*", "&"):
            scalar = self.scalar(node.operand)
            return scalar if isinstance(scalar, Unavailable) else arithmetic.unary(node.operator, scalar)
        operand = self.value(node.operand)
        if node.operator == "*":
            return _dereferenced(operand)
        if isinstance(operand, Scalar):
            return Unavailable("a calculated value or a constant has no address")
        return operand if isinstance(operand, Unavailable) else operand.address()

    def _logical(self, node: Binary) -> Outcome:
        left = self.truth(node.left)
        if isinstance(left, Unavailable) or left == (node.operator == "||"):
            return left if isinstance(left, Unavailable) else Scalar(left)
        right = self.truth(node.right)
        return right if isinstance(right, Unavailable) else Scalar(right)

    def _binary(self, node: Binary) -> Outcome:
        left, right = self._sides(node)
        left, right = placed(left, node.left.span), placed(right, node.right.span)
        if isinstance(left, Unavailable):
            return left
        return right if isinstance(right, Unavailable) else operators.binary(node, left, right)

    def _sides(self, node: Binary) -> tuple[Outcome, Outcome]:
        """Beside an enum a bare name is first looked for among that enum's own."""
        left = self.value(node.left)
        if isinstance(node.right, Name) and (number := operators.enumerator(left, node.right.text)) is not None:
            return left, number
        if isinstance(left, Unavailable) and not isinstance(node.left, Name):
            return left, left
        right = self.value(node.right)
        if isinstance(node.left, Name) and (number := operators.enumerator(right, node.left.text)) is not None:
            return number, right
        return left, right


def _member(target: Outcome, name: str) -> Outcome:
    """`.` follows a pointer, as in gdb."""
    if isinstance(target, Scalar):
        return Unavailable("a calculated value or a constant has no members")
    whole = target if isinstance(target, Unavailable) else _followed(target)
    return whole if isinstance(whole, Unavailable) else whole.member(name)


def _index(target: Outcome, key: int | str) -> Outcome:
    if isinstance(target, Scalar):
        return Unavailable("a calculated value or a constant has no elements")
    return target if isinstance(target, Unavailable) else target.index(key)


def _followed(value: Value) -> Value | Unavailable:
    """What a pointer points to, anything else itself."""
    scalar = value.scalar()
    if isinstance(scalar, Unavailable):
        return scalar
    return value if scalar is None or scalar.pointee_bytes is None else value.dereference()


def _dereferenced(operand: Outcome) -> Value | Unavailable:
    if isinstance(operand, Scalar):
        return Unavailable("a number does not say what it points to: write `*(int*)0x1234`, with the type")
    return operand if isinstance(operand, Unavailable) else operand.dereference()


def _near(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_NEAR])
    return f"; there is {shown}" if shown else ""
