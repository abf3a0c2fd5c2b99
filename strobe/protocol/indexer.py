"""What the indexer answers: names to places, types to capture plans, addresses to lines, saved stacks to frames."""

from __future__ import annotations

from typing import ClassVar

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


class PlansReply(Reply):
    plans: list[Plan]  # one per place, same order; untyped (raw registers) where no DWARF says more
    complete: bool  # False: the deadline cut typing short; ask again for the rest
    types: dict[str, bytes] = {}  # key (Plan.types) → msgpack of TypeTable.to_wire()


class Plans(Ask):
    """Capture plans from DWARF 4/5 types by ABI class. Places without debug info get the raw plan. `depth`: how far pointers are followed."""

    TYPE: ClassVar = "indexer.plans"
    REPLY: ClassVar[type[Reply]] = PlansReply
    places: list[Place]
    symbols_path: str | None = None
    budget_ms: int = 1000
    depth: int = Field(default=3, ge=0, le=10)
    project_root: str | None = None  # its .strobe/formatters count


class FramesReply(Reply):
    frames: list[Frame]


class Symbolise(Ask):
    TYPE: ClassVar = "indexer.symbolise"
    REPLY: ClassVar[type[Reply]] = FramesReply
    modules: list[Module]
    addresses: list[int]
    return_addresses: bool = True  # look up address - 1, for all but the first
    symbols_path: str | None = None


class Unwind(Ask):
    """Walk a saved stack by CFI (.eh_frame). `regs` are the 16 DWARF registers by number and rip as 16 (System V psABI §3.6.2)."""

    TYPE: ClassVar = "indexer.unwind"
    REPLY: ClassVar[type[Reply]] = FramesReply
    modules: list[Module]
    regs: dict[int, int]
    stack_base: int
    stack: bytes
    symbols_path: str | None = None
    limit: int = 64
