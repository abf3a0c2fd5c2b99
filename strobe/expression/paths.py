"""What an expression needs, and the two plain shapes that can be done without evaluating it: an access path, a conjunction of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from strobe.expression import arithmetic
from strobe.expression.evaluate import evaluate
from strobe.expression.tree import Argument, Binary, Expression, Index, Member, Name, Node, Result, Root, Span, Unary, walk
from strobe.expression.world import Scalar

StepKind = Literal["member", "index", "follow"]
_FLIPPED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FALSE: Final = Scalar(0)


@dataclass(frozen=True, slots=True)
class Use:
    """A name where it is used first. `enumerator`: it stands beside an operator alone, so where the scope does not know it, it may name a value of
    the other side's enum."""

    root: Root
    enumerator: bool

    @property
    def span(self) -> Span:
        return self.root.span


@dataclass(frozen=True, slots=True)
class Step:
    """member: `key` is its name; index: a number or text; follow: what the pointer points to, `key` None. `span` ends where the step does."""

    kind: StepKind
    key: int | str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Chain:
    """`a->b.c[3]`: root `a`, then follow, member b, member c, index 3.

    `.` and `[]` follow a pointer too where they meet one; the text alone does not tell.
    """

    root: Root
    steps: tuple[Step, ...]
    span: Span

    @property
    def dereferences(self) -> int:
        """Those the text shows: one for each `->` and `*`."""
        return sum(step.kind == "follow" for step in self.steps)

    @property
    def dereferences_max(self) -> int:
        """If every `.` and `[]` meets a pointer too. A member right after `->` or `*` is counted with it."""
        steps = self.steps
        alone = (step.kind == "index" or (step.kind == "member" and (at == 0 or steps[at - 1].kind != "follow")) for at, step in enumerate(steps))
        return self.dereferences + sum(alone)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`chain operator constant`; a chain alone is `!= 0`, `!chain` is `== 0`."""

    chain: Chain
    operator: str
    constant: Scalar


Key: TypeAlias = int | str


def names(expression: Expression) -> tuple[Use, ...]:
    """Everything the scope is asked for, each once, in the order of the text."""
    found: dict[Root, Use] = {}
    beside_operator = _beside_operators(expression.root)
    for node, _ in walk(expression.root):
        if isinstance(node, Name | Argument | Result):
            known = found.get(node)
            perhaps = node.span in beside_operator and (known is None or known.enumerator)
            found[node] = Use(node if known is None else known.root, perhaps)
    return tuple(found.values())


def _beside_operators(root: Node) -> set[Span]:
    binaries = (node for node, _ in walk(root) if isinstance(node, Binary) and node.operator not in ("&&", "||"))
    return {side.span for node in binaries for side in (node.left, node.right) if isinstance(side, Name)}


def chain(expression: Expression) -> Chain | None:
    """None when it is more than a path: it calculates, takes an address, casts, or has an index that is no constant."""
    return _chain(expression.root)


def _chain(node: Node) -> Chain | None:
    steps: list[Step] = []
    span = node.span
    while not isinstance(node, Name | Argument | Result):
        match node:
            case Member():
                steps.append(Step("member", node.name, node.span))
                if node.arrow:
                    steps.append(Step("follow", None, node.target.span))
                node = node.target
            case Index():
                key = _key(node.index)
                if key is None:
                    return None
                steps.append(Step("index", key, node.span))
                node = node.target
            case Unary(operator="*"):
                steps.append(Step("follow", None, node.span))
                node = node.operand
            case _:
                return None
    return Chain(node, tuple(reversed(steps)), span)


def _key(node: Node) -> Key | None:
    value = _constant(node)
    return None if value is None or value.value is None or isinstance(value.value, float | bool) else value.value


def comparison(expression: Expression) -> tuple[Comparison, ...] | None:
    """Comparisons that must all hold, in the order of the text; None when the condition is anything else."""
    found: list[Comparison] = []
    waiting = [expression.root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Binary) and node.operator == "&&":
            waiting += [node.right, node.left]
            continue
        one = _comparison(node)
        if one is None:
            return None
        found.append(one)
    return tuple(found)


def _comparison(node: Node) -> Comparison | None:
    if isinstance(node, Unary) and node.operator == "!":
        path = _chain(node.operand)
        return None if path is None else Comparison(path, "==", _FALSE)
    if not (isinstance(node, Binary) and node.operator in arithmetic.COMPARISONS):
        path = _chain(node)
        return None if path is None else Comparison(path, "!=", _FALSE)
    if (path := _chain(node.left)) and (constant := _constant(node.right)):
        return Comparison(path, node.operator, constant)
    if (path := _chain(node.right)) and (constant := _constant(node.left)):
        return Comparison(path, _FLIPPED[node.operator], constant)
    return None


def _constant(node: Node) -> Scalar | None:
    """The value of what names nothing: `-1`, `10 * 1024`."""
    if any(isinstance(part, Name | Argument | Result) for part, _ in walk(node)):
        return None
    outcome = evaluate(Expression("", node, node.span), _Nowhere())
    return outcome if isinstance(outcome, Scalar) else None


class _Nowhere:
    """Knows no names."""

    def resolve(self, _name: str, /) -> None:
        return None

    def argument(self, _key: int | str, /) -> None:
        return None

    def result(self) -> None:
        return None

    def cast(self, _type_name: str, _pointers: int, _address: int, /) -> None:
        return None

    def near(self, _name: str, /) -> Sequence[str]:
        return ()
