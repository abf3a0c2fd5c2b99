"""The syntax tree. Two trees are equal when they mean the same: where they stood in a text does not count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

UNARY: Final = ("*", "&", "-", "+", "!", "~")
# Operators with two operands, by how tightly they bind (C's order; `@` where gdb has it). All group from the left.
BINARY: Final = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    **dict.fromkeys(("==", "!="), 6),
    **dict.fromkeys(("<", "<=", ">", ">="), 7),
    **dict.fromkeys(("<<", ">>"), 8),
    "@": 9,
    **dict.fromkeys(("+", "-"), 10),
    **dict.fromkeys(("*", "/", "%"), 11),
}
RESERVED: Final = frozenset(["true", "false", "null", "nullptr", "NULL", "args", "ret"])  # as names of variables they stand in backquotes


class Span(NamedTuple):
    """Offsets in the text: [start, end)."""

    start: int
    end: int


NOWHERE: Final = Span(0, 0)


@dataclass(frozen=True, slots=True)
class _Node:
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Integer(_Node):
    """0 ≤ value < 2⁶⁴. `unsigned`: of C's type unsigned long, by its suffix or because its hexadecimal form needs the 64th bit."""

    value: int
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Character(_Node):
    """Its code; `'\\xff'` is -1 like C's plain char on x86-64."""

    value: int


@dataclass(frozen=True, slots=True)
class Real(_Node):
    value: float


@dataclass(frozen=True, slots=True)
class Text(_Node):
    """Bytes that are no UTF-8 are surrogate escapes (PEP 383)."""

    value: str


@dataclass(frozen=True, slots=True)
class Truth(_Node):
    value: bool


@dataclass(frozen=True, slots=True)
class Null(_Node):
    pass


@dataclass(frozen=True, slots=True)
class Name(_Node):
    """`gMode`, `this`, `ns::Type::count`, `::errno`, `std::vector<int>::npos`; what stood in backquotes, as it stood there."""

    text: str


@dataclass(frozen=True, slots=True)
class Argument(_Node):
    """`args[0]` or `args.order`."""

    key: int | str


@dataclass(frozen=True, slots=True)
class Result(_Node):
    """`ret`."""


@dataclass(frozen=True, slots=True)
class Member(_Node):
    """`target.name`, or `target->name`."""

    target: Node
    name: str
    arrow: bool = False


@dataclass(frozen=True, slots=True)
class Index(_Node):
    target: Node
    index: Node


@dataclass(frozen=True, slots=True)
class Array(_Node):
    """`target@count`: that many in a row, the first of them `target`."""

    target: Node
    count: Node


@dataclass(frozen=True, slots=True)
class Cast(_Node):
    """`(type_name*)operand`, with as many stars as `pointers`. The name has no const and no volatile."""

    type_name: str
    pointers: int
    operand: Node


@dataclass(frozen=True, slots=True)
class Unary(_Node):
    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(_Node):
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Conditional(_Node):
    condition: Node
    then: Node
    otherwise: Node


Root: TypeAlias = Name | Argument | Result
Constant: TypeAlias = Integer | Character | Real | Text | Truth | Null
Node: TypeAlias = Constant | Root | Member | Index | Array | Cast | Unary | Binary | Conditional


@dataclass(frozen=True, slots=True)
class Expression:
    """What was read: `span` of `text`. In a log message `text` is the whole message."""

    text: str
    root: Node
    span: Span

    @property
    def source(self) -> str:
        return self.text[self.span.start : self.span.end]


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Member():
            return (node.target,)
        case Index():
            return (node.target, node.index)
        case Array():
            return (node.target, node.count)
        case Cast() | Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Conditional():
            return (node.condition, node.then, node.otherwise)
        case _:
            return ()


def walk(root: Node) -> Iterator[tuple[Node, int]]:
    """Every node with its depth (the root's is 1), in the order of the text. Takes no stack."""
    waiting = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((child, depth + 1) for child in reversed(children(node)))
