"""What a type looks like to its user, whatever it is made of inside: a text, a sequence, a map, a pointer.

A formatter (formatters/) resolves a record type to one of these forms: concrete offsets, types and sizes. Two things are made from a form, and nothing
else knows containers: what is shown (`reader`) and what the recorder copies (`walks`). So both always read the same memory.

Offsets are bytes from the object's start unless said otherwise. A `TypeId` counts in the table that the form was resolved with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from strobe.model.type_nodes import TypeId


@dataclass(frozen=True, slots=True)
class Number:
    """An unsigned integer of `size` bytes in the object; `mask`, then `shift` to the right, where only some of its bits count; then times `scale`,
    and `plus` added (a count that includes its owner itself: -1). Or, with size 0, the number `fixed`."""

    offset: int = 0
    size: int = 8
    mask: int = 0
    shift: int = 0
    scale: int = 1
    fixed: int = 0
    plus: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    """Characters of `unit` bytes: at the pointer at `data`, or in the object itself at `data` when `inline`. `length` in characters; None: up to a 0."""

    data: int
    length: Number | None
    unit: Literal[1, 2, 4] = 1
    inline: bool = False
    skip: int = 0  # characters begin so many bytes behind where `data` points


@dataclass(frozen=True, slots=True)
class Sequence:
    """Elements in a row: at the pointer at `data`, or in the object itself when `inline`. Their number is `count`, or the pointer at `end` says where
    they end. `stride` is the distance from one to the next."""

    data: int
    element: TypeId
    stride: int
    count: Number | None = None
    end: int | None = None
    inline: bool = False
    as_text: bool = False  # bytes that their user means as text


@dataclass(frozen=True, slots=True)
class Bits:
    """std::vector<bool>: from the pointer at `data` on (in the object itself when `inline`: std::bitset), the lowest bit of a byte first; `count` bits, or
    up to the bit `end_bit` of the word at the pointer `end`."""

    data: int
    count: Number | None = None
    end: int | None = None
    end_bit: Number | None = None
    inline: bool = False


@dataclass(frozen=True, slots=True)
class Nodes:
    """A chain of nodes: the first at the pointer at `first`, the next at the pointer at `next` in a node; it ends at null, or at the address of
    `sentinel` in the object. `value` is where a node holds its element."""

    first: int
    next: int
    value: int
    element: TypeId
    size: int  # of a node, as far as its element reaches
    sentinel: int | None = None
    count: Number | None = None
    shown: Literal["list", "set", "map"] = "list"


@dataclass(frozen=True, slots=True)
class Tree:
    """A binary tree, in order: root at the pointer at `root`; `left`, `right` and `value` in a node. Map elements are pairs."""

    root: int
    left: int
    right: int
    value: int
    element: TypeId
    size: int
    count: Number | None = None
    shown: Literal["set", "map"] = "set"


@dataclass(frozen=True, slots=True)
class Blocks:
    """std::deque. libstdc++: iterators {cur, first, last, node} at `start` and `finish`. libc++ (`mapped`): pointer to the block pointers at `start`,
    number of the first element `first`, number of elements `count`."""

    element: TypeId
    stride: int
    per_block: int
    start: int
    finish: int | None = None
    first: Number | None = None
    count: Number | None = None


@dataclass(frozen=True, slots=True)
class Ring:
    """Rust's VecDeque: `count` elements from index `first` on, wrapping at `capacity`, at the pointer at `data`."""

    data: int
    capacity: Number
    first: Number
    count: Number
    element: TypeId
    stride: int


@dataclass(frozen=True, slots=True)
class Swiss:
    """Rust's HashMap and HashSet (hashbrown): pointers to control bytes at `control`; bucket i of `stride` bytes ends i·stride below them; full where
    the control byte's top bit is 0."""

    control: int
    mask: Number
    count: Number
    element: TypeId
    stride: int
    shown: Literal["set", "map"] = "map"


@dataclass(frozen=True, slots=True)
class BTree:
    """Rust's BTreeMap and BTreeSet: root node at the pointer at `root`, `height` levels of inner nodes. In a node: u16 `length`, keys at `keys`, values at
    `values`, and in inner nodes pointers at `edges`; all arrays have room for 11 (edges 12). A leaf ends at `leaf_size`."""

    root: int
    height: Number
    count: Number
    keys: int
    values: int
    key: TypeId
    value: TypeId
    length: int
    edges: int
    leaf_size: int
    shown: Literal["set", "map"] = "map"


@dataclass(frozen=True, slots=True)
class Inner:
    """Shown as what is in it, at `offset`: std::atomic, Cell, newtypes, std::filesystem::path."""

    type: TypeId
    offset: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Shown as a list of its parts: pair, tuple. (type, offset) in order."""

    parts: tuple[tuple[TypeId, int], ...]


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value that is there where `there` is not 0: std::optional."""

    there: Number
    type: TypeId
    offset: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several types at `offset`, by number: std::variant. `none`: the number that says there is no value."""

    index: Number
    types: tuple[TypeId, ...]
    offset: int
    none: int | None = None


@dataclass(frozen=True, slots=True)
class Either:
    """One of two forms of the same object: `then` where `test` is in low..high, else `otherwise`. libc++'s short strings."""

    test: Number
    low: int
    high: int
    then: Form
    otherwise: Form


@dataclass(frozen=True, slots=True)
class Owner:
    """A smart pointer: what the pointer at `pointer` points to plus `skip` bytes. `counts`: (name, where it is behind the pointer at `control`); the first
    counts owners: at 0 the object is gone, and "<expired>" is shown. An address of only ones is Rust's null."""

    pointer: int
    target: TypeId
    skip: int = 0
    control: int | None = None
    counts: tuple[tuple[str, Number], ...] = ()
    length: Number | None = None  # owns an array: Box<[T]>, unique_ptr<T[]>


@dataclass(frozen=True, slots=True)
class Erased:
    """A value whose type only the program's code knows: std::any, std::function, Rust's `dyn`. The pointer at `code` names it, through its symbol or the
    vtable it points to (a "function" that is `boxed`: of the object it points to); the value lies at `offset`, or at the pointer there when `boxed`, plus
    `skip` bytes rounded up to its type's alignment."""

    kind: Literal["any", "function", "dyn"]
    code: int
    offset: int
    boxed: bool = False
    small: int = 0  # std::any: values up to this size lie in the object
    skip: int = 0
    counts: tuple[tuple[str, Number], ...] = ()  # as an Owner's, behind the pointer at `offset`; where there are any, the value's address is shown too
    trait: str = ""  # "dyn": a name of the type, with `dyn shop::Shape` in it


@dataclass(frozen=True, slots=True)
class Time:
    """std::chrono: `count` in units of numerator/denominator seconds; `clock`: the epoch's name of a time_point."""

    type: TypeId
    offset: int
    numerator: int
    denominator: int
    clock: str | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """Rust's times: seconds, which may be negative, and nanoseconds. A duration, or since when: `boot` and `epoch` (1970, UTC)."""

    seconds: Number
    nanoseconds: Number
    since: Literal["", "boot", "epoch"] = ""


@dataclass(frozen=True, slots=True)
class Internet:
    """A network address of 4 or 16 bytes, most significant first."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class ImaginaryParts:
    """std::complex where the compiler has no type of its own for it: two numbers of the type."""

    type: TypeId
    real: int
    imaginary: int


@dataclass(frozen=True, slots=True)
class Hidden:
    """Not what it holds but only that it is there, in `words`: PhantomData, allocators."""

    words: str


Form = (
    Text | Sequence | Bits | Nodes | Tree | Blocks | Ring | Swiss | BTree | Inner | Parts | Maybe | Choice | Either | Owner | Erased | Time | Moment
    | Internet | ImaginaryParts | Hidden
)  # fmt: skip
