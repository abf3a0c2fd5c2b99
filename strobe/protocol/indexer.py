"""What the indexer answers: names to places, types to capture plans, addresses to lines, saved stacks to frames."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from strobe.model.base import Noun
from strobe.model.probe import Frame, Module, Place, Plan
from strobe.protocol.base import Ask, Reply


class Warnings(Noun):
    pattern: str
    matched: int
    explanation: str | None = None  # why nothing matched, with proof, and the nearest names


class ModuleFacts(Reply):
    path: str
    build_id: str | None
    has_symbols: bool  # .symtab
    has_debug_info: bool  # DWARF, here or in a separate file
    debug_file: str | None
    functions: int


class Load(Ask):
    """Index a file (stage 1 now; stage 2 in the background). Answers what it has."""

    TYPE: ClassVar = "indexer.load"
    REPLY: ClassVar[type[Reply]] = ModuleFacts
    path: str
    symbols_path: str | None = None


class ResolveReply(Reply):
    places: list[Place]
    patterns: list[Warnings]
    truncated: bool  # more than `limit` matched


class Resolve(Ask):
    """Patterns (SPEC §4, debug_trace) over the given modules' functions. Errors: INVALID_PATTERN naming pattern and position."""

    TYPE: ClassVar = "indexer.resolve"
    REPLY: ClassVar[type[Reply]] = ResolveReply
    patterns: list[str]
    modules: list[str]  # paths, the main program first
    main_modules: list[str]  # where patterns without @ look first: the program and its own libraries
    project_root: str
    symbols_path: str | None = None
    limit: int = 10_000
    explain: bool = True  # what matched nothing


class PlansReply(Reply):
    plans: list[Plan]  # one per place, same order; untyped (raw registers) where no DWARF says more
    complete: bool  # False: the deadline cut typing short; ask again for the rest
    types: dict[str, bytes] = {}  # key (Plan.types) → packed strobe.values.bundle.Bundle


class Plans(Ask):
    """Capture plans from DWARF 4/5 types by ABI class. Places without debug info get the raw plan. `depth`: how far pointers are followed."""

    TYPE: ClassVar = "indexer.plans"
    REPLY: ClassVar[type[Reply]] = PlansReply
    places: list[Place]
    symbols_path: str | None = None
    budget_ms: int = 1000
    depth: int = Field(default=3, ge=0, le=10)
    project_root: str | None = None  # its .strobe/formatters count


class FoundVariable(Noun):
    """`kind` and `value` as in model.typed.Location: `value` is a link-time address in `module`, an offset in its thread-local block, or a constant.
    `type` counts in the reply's bundle; None: only a symbol tells of it, whose size is `size`."""

    name: str  # qualified: `shop::Order::count`, `shop::next::counter`
    type: int | None
    module: str
    kind: Literal["address", "thread_local", "constant", "removed", "other"]
    value: int | bytes | None
    file: str | None = None  # the source file of its unit
    in_function: bool = False
    linkage_name: str | None = None
    size: int | None = None


class VariablesReply(Reply):
    variables: dict[str, list[FoundVariable]]  # by name as asked, all that may be meant
    types: dict[str, int]  # by name as asked
    near: dict[str, list[str]]  # of names that are nowhere: those like them, the best first
    locals_of: dict[str, list[str]]  # of names that are nowhere else: functions that have a local variable of that name
    key: str
    bundle: bytes  # strobe.values.bundle.Bundle
    problems: list[str] = []
    complete: bool = True  # False: the budget cut the search short


class Variables(Ask):
    """Variables of static storage by name (scopes may be left out from the left; `file.c::name` too), types by name (`Order *[4]`), and the types that
    `codes` stand for: (module, link-time address) that a vtable pointer or a manager function pointer holds."""

    TYPE: ClassVar = "indexer.variables"
    REPLY: ClassVar[type[Reply]] = VariablesReply
    names: list[str]
    modules: list[str]  # paths, the main program first
    main_modules: list[str]  # looked in first: the program and its own libraries
    types: list[str] = []
    codes: list[tuple[str, int]] = []
    symbols_path: str | None = None
    budget_ms: int = 3000


class NamesReply(Reply):
    names: list[str]


class Demangle(Ask):
    """Names of types as std::type_info has them (Itanium C++ ABI §5.1.5: `St13runtime_error`), and linkage names (`_ZL8accounts`), as they are written.
    What is no such name stays as it is."""

    TYPE: ClassVar = "indexer.demangle"
    REPLY: ClassVar[type[Reply]] = NamesReply
    names: list[str]


class FramesReply(Reply):
    frames: list[Frame]
    culprit: int | None = None  # which of them is where a reader looks first: the innermost one of the user's own code


class Symbolise(Ask):
    TYPE: ClassVar = "indexer.symbolise"
    REPLY: ClassVar[type[Reply]] = FramesReply
    modules: list[Module]
    addresses: list[int]
    return_addresses: bool = True  # look up address - 1, for all but the first
    symbols_path: str | None = None


class Unwind(Ask):
    """Walk a saved stack by CFI (.eh_frame). `regs` are the 16 DWARF registers by number and rip as 16 (System V psABI §3.6.2). Frames that debug info
    knows have their arguments, the culprit its locals too, as far as registers and the saved stack hold them."""

    TYPE: ClassVar = "indexer.unwind"
    REPLY: ClassVar[type[Reply]] = FramesReply
    modules: list[Module]
    regs: dict[int, int]
    stack_base: int
    stack: bytes
    symbols_path: str | None = None
    project_root: str | None = None
    limit: int = 64
