"""The targets of one request, taken apart: what must be looked up before they can be evaluated, and what each then means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from strobe.expression import Expression, ExpressionError, Name, Outcome, Unavailable, evaluate, names, parse
from strobe.expression.tree import Cast, walk
from strobe.protocol.session import MemoryTarget
from strobe.values.typed import ProgramScope, TypedValue, declarators, value_at
from strobe.values.typed_scalars import BASIC

SPECIAL: Final = ("bytes", "string")
BYTES_MAX: Final = 16 << 20  # of one target
STRING_MAX: Final = 1 << 16


@dataclass(slots=True)
class Wanted:
    """One target. `problem`: it is wrong in itself."""

    target: MemoryTarget
    expression: Expression | None = None
    problem: Unavailable | None = None
    next_step: str = ""

    @property
    def label(self) -> str:
        if self.target.variable is not None:
            return self.target.variable
        return f"{self.target.address:#x}" if self.target.address is not None else "?"


@dataclass(slots=True)
class Request:
    wanted: list[Wanted] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, targets: Sequence[MemoryTarget]) -> Request:
        request = cls()
        for target in targets:
            request.wanted.append(request._taken(target))
        return request

    def _taken(self, target: MemoryTarget) -> Wanted:
        wanted = Wanted(target)
        if target.type is not None and target.type not in SPECIAL:
            self.types |= {name for name in (target.type.strip(), declarators(target.type)[0]) if _is_asked(name)}
        if target.variable is None:
            return wanted
        try:
            wanted.expression = parse(target.variable)
        except ExpressionError as error:
            wanted.problem, wanted.next_step = Unavailable(error.what.splitlines()[0]), error.next_step
            return wanted
        self.names |= {use.root.text for use in names(wanted.expression) if isinstance(use.root, Name)}
        self.types |= {node.type_name for node, _ in walk(wanted.expression.root) if isinstance(node, Cast) and _is_asked(node.type_name)}
        for word in ("args", "ret"):  # variables of the program may be called so
            if word in target.variable:
                self.names.add(word)
        return wanted


def outcome_of(wanted: Wanted, scope: ProgramScope) -> Outcome:
    """What a target is; `type` says what it is looked at as."""
    if wanted.problem is not None:
        return wanted.problem
    target = wanted.target
    if wanted.expression is not None:
        found = evaluate(wanted.expression, scope)
        if isinstance(found, Unavailable) or target.type is None or target.type in SPECIAL:
            return found
        if not isinstance(found, TypedValue) or found.at is None:
            return Unavailable("it is not in memory, so it cannot be looked at as another type")
        return _as(scope, target.type, found.at)
    assert target.address is not None
    if target.type is None or target.type in SPECIAL:
        return value_at(scope.world, scope.type("u8") or 0, target.address)
    return _as(scope, target.type, target.address)


def _as(scope: ProgramScope, name: str, address: int) -> TypedValue | Unavailable:
    number = scope.type(name)
    if number is None:
        return Unavailable(f"there is no type `{name}` in the program's debug info, and it is none of i8 … u64, f32, f64, pointer, bytes, string")
    if scope.world.table.size(number) is None:
        return Unavailable(f"`{name}` has no size, so nothing of that type can be shown")
    return value_at(scope.world, number, address)



def _is_asked(name: str) -> bool:
    """Basic types are the same everywhere; but for a char, which has four bytes in Rust."""
    plain = declarators(name)[0]
    return plain == "char" or plain not in (*BASIC, "void")
