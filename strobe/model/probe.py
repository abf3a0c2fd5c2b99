"""What is traced: places found for patterns, hooks installed at them, and how their values are captured and decoded."""

from __future__ import annotations

from typing import Any, Literal

from strobe.model.base import Noun

Scalar = Literal["int", "uint", "float", "bool", "char", "enum", "pointer", "cstring", "opaque"]


class Value(Noun):
    """How one captured value is decoded. `source` is where the payload holds it: (`payload`, offset) or the entry's `word`.

    `scalar` and `size` say what is there at once, as a number or text with a column of its own. Where `type` is set, the value can be shown whole: its
    bytes lie in the payload at `offset` (`home` payload), or in the image, at the address that the payload holds at `offset` (`home` pointed).
    """

    name: str
    type_name: str  # as written in the source: "const char *", "Color", "u32"
    scalar: Scalar
    size: int  # bytes captured: 1, 2, 4, 8; 0 for opaque: no number, and without a type nothing to show
    source: Literal["payload", "word", "none"]
    offset: int = 0  # in the payload
    enumerators: dict[str, int] | None = None
    type: int | None = None  # in the table that Plan.types names
    home: Literal["payload", "pointed"] = "payload"
    artificial: bool = False  # `this`


class WatchValue(Noun):
    """A watch as a plan captures it: how its expression is worked out over the image. The root is a variable at `address` or argument `argument`."""

    label: str
    expr: str | None  # None: the root itself
    types: str  # key of the table that `type` counts in
    type: int
    address: int | None = None
    argument: int | None = None


class Plan(Noun):
    """A capture plan: `ops` is the recorder's binary list (enter ops, END, exit ops, END; layout.PlanOp; then the walk section: WALK_STEPs), the rest
    decodes it. `image` and `exit_image`: payload offsets of the image's descriptor in enter and exit entries (None: there is no image)."""

    ops: bytes
    typed: bool  # False: raw registers, no types known
    arguments: list[Value]
    result: Value | None  # None: returns nothing, or unknown (untyped plans show rax)
    types: str | None = None  # key of the type table that Value.type counts in
    image: int | None = None
    exit_image: int | None = None
    depth: int = 0  # what it was made for; 0: scalars only
    watches: list[WatchValue] = []


class Place(Noun):
    """One function in one module that a pattern resolved to."""

    pattern: str
    function: str  # demangled, without parameters, template arguments kept: what events show
    function_raw: str  # linkage name
    full_name: str  # demangled with parameters
    module: str  # path of the ELF file
    offset: int  # link-time virtual address; runtime address = load bias + offset
    size: int  # bytes, from the symbol table
    file: str | None = None
    line: int | None = None


class Hook(Noun):
    """An installed (or wanted) place. Ids start at 1 and are never reused within a session; a changed plan is a new hook."""

    id: int
    place: Place
    address: int  # runtime
    plan: Plan


class Refused(Noun):
    """A place that could not be hooked, and why, in words for the caller."""

    function: str
    module: str
    reason: str


class Module(Noun):
    """A mapped ELF file. `bias` + link-time address = runtime address."""

    path: str
    bias: int
    start: int
    end: int
    build_id: str | None = None


class Variable(Noun):
    """An argument or local of a frame: its value as strobe/values shows it, `<not captured>` or `<optimised out>`."""

    name: str
    type_name: str
    value: Any


class Frame(Noun):
    """One symbolised stack frame, innermost first; inlined frames come before the function they were inlined into."""

    address: int
    function: str | None
    module: str | None
    offset: int | None = None  # of the address in its function
    file: str | None = None
    line: int | None = None
    inlined: bool = False
    arguments: list[Variable] | None = None  # of saved stacks, where debug info tells
    locals: list[Variable] | None = None
