"""A function's plan from what is known of it: scalars as they are, and with a type table everything else, and what pointers lead to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from actors.indexer.abi import Passing
from actors.indexer.passing import Place
from actors.indexer.payload import END, Payload, pack
from actors.indexer.shapes import OPAQUE, Shape, shape
from actors.indexer.signature import Parameter, Signature
from strobe.lanes.layout import WALK_NOTHING, PlanOp
from strobe.model.probe import Plan, Value
from strobe.model.type_nodes import TypeId
from strobe.model.typed import TypedFunction
from strobe.values.walks import WalkCompiler

IMAGE_BYTES: Final = {1: 2048, 2: 3072, 3: 4096, 4: 5120}  # by depth, of an enter's image; an exit's has half of it
IMAGE_BYTES_MAX: Final = 7168  # leaves room for the fixed part and short texts in PAYLOAD_BYTES_MAX
SECTION_STEPS_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class Argument:
    """`places`: of its pieces, or one on the stack; None where they are not known."""

    parameter: Parameter
    how: Passing
    places: tuple[Place, ...] | None


@dataclass(frozen=True, slots=True)
class Outline:
    signature: Signature
    arguments: list[Argument]
    result: Passing


@dataclass(frozen=True, slots=True)
class Typing:
    """`types`: key of the table that the numbers count in."""

    function: TypedFunction
    compiler: WalkCompiler
    depth: int
    types: str


@dataclass
class _Side:
    """Of the entry for the call or for the return: fixed part, and the walks that begin in it: (offset, type, whether the value's address is there)."""

    payload: Payload = field(default_factory=Payload)
    walks: list[tuple[int, TypeId, bool]] = field(default_factory=list)
    image: int | None = None

    def steps(self, typing: Typing | None, budget: int) -> bytes:
        found = b"".join(self.payload.steps)
        programs = [] if typing is None else _programs(typing, self.walks)
        if programs:
            self.image = self.payload.descriptor()
            found += pack(PlanOp.IMAGE, 0, 8, self.image, budget)
            found += b"".join(pack(PlanOp.WALK, 0, 0, at, program) for at, program in programs)
        return found + END


def assemble(outline: Outline, typing: Typing | None = None) -> Plan:
    """Without `typing`: scalars only."""
    depth = 0 if typing is None else typing.depth
    budget = IMAGE_BYTES.get(depth, IMAGE_BYTES_MAX)
    enter, leave = _Side(), _Side()
    numbers = [parameter.type for parameter in typing.function.parameters] if typing is not None else [None] * len(outline.arguments)
    arguments = [_argument(outline.signature, argument, number, enter) for argument, number in zip(outline.arguments, numbers, strict=True)]
    result = _result(outline, None if typing is None else typing.function.result, leave)
    ops = enter.steps(typing, budget) + leave.steps(typing, budget // 2)
    if typing is not None:
        ops += typing.compiler.section()
    types = None if typing is None else typing.types
    return Plan(ops=ops, typed=True, arguments=arguments, result=result, types=types, image=enter.image, exit_image=leave.image, depth=depth)


def _programs(typing: Typing, walks: list[tuple[int, TypeId, bool]]) -> list[tuple[int, int]]:
    """(payload offset, index of the program)."""
    compiler, depth = typing.compiler, typing.depth
    found = [(at, compiler.pointed(number, depth) if pointed else compiler.program(number, depth)) for at, number, pointed in walks]
    return [(at, program) for at, program in found if program != WALK_NOTHING]


def _argument(signature: Signature, argument: Argument, number: TypeId | None, enter: _Side) -> Value:
    parameter, places = argument.parameter, argument.places
    form = shape(parameter.type, signature.language)
    value = Value(name=parameter.name, type_name=parameter.type_name, scalar="opaque", size=0, source="none", artificial=parameter.artificial)
    if places is None:
        return value
    if form is not OPAQUE and len(places) == 1 and _fits(places[0], form):
        offset = enter.payload.text(places[0]) if form.scalar == "cstring" else enter.payload.scalar(places[0], form.size)
        if offset is None:
            return value
        if number is not None and form.scalar == "pointer":
            enter.walks.append((offset, number, False))
        return _scalar(value, form, offset, number)
    return value if number is None else _whole(value, argument.how, places, number, enter)


def _fits(place: Place, form: Shape) -> bool:
    return place.kind == "stack" or (place.kind == "sse") == (form.scalar == "float")


def _scalar(value: Value, form: Shape, offset: int, number: TypeId | None) -> Value:
    size = 8 if form.scalar == "cstring" else form.size
    kind = None if form.scalar == "cstring" else number
    return value.model_copy(update={"scalar": form.scalar, "size": size, "source": "payload", "offset": offset, "enumerators": form.enumerators, "type": kind})


def _whole(value: Value, how: Passing, places: tuple[Place, ...], number: TypeId, enter: _Side) -> Value:
    """A value that is no scalar: its bytes, or where they are."""
    payload = enter.payload
    home: Literal["payload", "pointed"] = "payload"
    if how.kind == "reference":
        offset, home = payload.scalar(places[0], 8), "pointed"
    elif len(places) == len(how.pieces) and (len(places) > 1 or places[0].kind != "stack"):
        offset = payload.pieces(how, places)
    else:
        offset = payload.copied(places[0], how.size)
        if offset is None:
            offset, home = payload.address(places[0]), "pointed"
    return _held(value, offset, home, number, enter)


def _held(value: Value, offset: int | None, home: Literal["payload", "pointed"], number: TypeId, side: _Side) -> Value:
    if offset is None:
        return value
    side.walks.append((offset, number, home == "pointed"))
    return value.model_copy(update={"source": "payload", "offset": offset, "type": number, "home": home})


def _result(outline: Outline, number: TypeId | None, leave: _Side) -> Value | None:
    signature, how = outline.signature, outline.result
    if how.kind == "nothing":
        return None
    form = shape(signature.result, signature.language)
    value = Value(name="return", type_name=signature.result_name, scalar="opaque", size=0, source="none")
    if not signature.returns or how.kind == "unknown":
        return value
    if form is not OPAQUE and how.kind == "registers" and len(how.pieces) == 1:
        return _returned_scalar(value, form, how, number, leave)
    if number is None:
        return value
    home: Literal["payload", "pointed"] = "payload" if how.kind == "registers" or how.x87 else "pointed"
    return _held(value, leave.payload.returned(how), home, number, leave)


def _returned_scalar(value: Value, form: Shape, how: Passing, number: TypeId | None, leave: _Side) -> Value:
    if form.scalar == "cstring":
        return _scalar(value, form, leave.payload.text(Place("integer", 6)) or 0, number)
    if number is not None and form.scalar == "pointer":
        offset = leave.payload.returned(how)
        assert offset is not None, "the payload is empty"
        leave.walks.append((offset, number, False))
        return _scalar(value, form, offset, number)
    if how.pieces[0].kind == "sse":
        leave.payload.steps.append(pack(PlanOp.WORD_XMM, 0, 8))
    return value.model_copy(update={"scalar": form.scalar, "size": form.size, "source": "word", "enumerators": form.enumerators, "type": number})
