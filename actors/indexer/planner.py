"""Capture plans: for each function, which bytes to copy at entry and exit, and how to decode them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from actors.indexer.abi import Passing, Place, Registers, passing
from actors.indexer.demangle.suffix import split_suffix
from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.functions import FunctionFinder
from actors.indexer.dwarf.types import POINTER_TAGS, size_of, strip
from actors.indexer.raw_plan import END, pack, raw_plan
from actors.indexer.shapes import OPAQUE, Shape, shape
from actors.indexer.signature import Parameter, Signature, read_signature
from strobe.lanes.layout import PlanOp
from strobe.model.probe import Plan, Value

STRING_BYTES: Final = 256
_FIXED_BYTES_MAX: Final = 248  # payload offsets are one byte
_CONVENTION_CHANGERS: Final = (".constprop", ".isra", ".part", ".specialized")
# DWARF register numbers (psABI, figure 3.36) → index in the order of arguments
_INTEGER_INDEX: Final = {5: 0, 4: 1, 1: 2, 2: 3, 8: 4, 9: 5}
_XMM0: Final = 17
_RAX: Final = 6  # layout.PlanOp.GPR


class Planner:
    """Plans for the functions of one file."""

    def __init__(self, finder: FunctionFinder) -> None:
        self._finder = finder

    def plan(self, address: int, raw_name: str) -> Plan:
        """The typed plan; the raw one where debug info has no such function, or does not tell its convention. Raises DwarfError."""
        function = self._finder.find(address, raw_name.partition("@")[0])
        if function is None:
            return raw_plan()
        suffix = split_suffix(raw_name)[1]
        signature = read_signature(function, address, clone=any(word in suffix for word in _CONVENTION_CHANGERS))
        if signature is None:
            return raw_plan()
        if ".isra" in suffix:  # GCC's IPA-SRA also drops results that nobody uses
            signature = replace(signature, returns=False)
        places = _places(signature)
        if not signature.certain and signature.parameters and all(place is None for place in places):
            return raw_plan()
        return _assemble(signature, places)


def _places(signature: Signature) -> list[Place | None]:
    registers = Registers()
    _hidden_result(signature, registers)
    if not signature.certain:
        registers.lost = True
    return [_place(signature, parameter, registers) for parameter in signature.parameters]


def _place(signature: Signature, parameter: Parameter, registers: Registers) -> Place | None:
    """By the ABI, checked against what its location says; a location list that disagrees is right, and ends the trust in the rules."""
    how = passing(parameter.type, signature.language)
    proven = _proven(signature, parameter) if how.kind == "registers" and len(how.classes) == 1 else None
    if parameter.artificial and parameter.name == "__vtt_parm":
        registers.lost = True  # only some of a constructor's variants have it
    if how.kind == "reference" and signature.language == "rust" and parameter.where.kind != "pointed":
        registers.lost = True  # in an extern "C" function it would be passed by value
    ruled = registers.take(how)
    if signature.promoted and proven is None and (how.parts or _is_pointer(parameter)):
        registers.lost = True
        return None
    if proven is None:
        return None if signature.located_only and parameter.where.kind in ("absent", "other") else ruled
    if proven != ruled:
        registers.lost = True
    return proven


def _is_pointer(parameter: Parameter) -> bool:
    found = strip(parameter.type)
    return found is not None and found.tag in POINTER_TAGS


def _proven(signature: Signature, parameter: Parameter) -> Place | None:
    """Where its location puts it at entry: a list says so outright; a single location, which LLVM gives only to what stays in place,
    is believed of optimised code."""
    where = parameter.where
    if not (where.listed or signature.located_only):
        return None
    if where.kind == "register":
        if where.number in _INTEGER_INDEX:
            return Place("integer", _INTEGER_INDEX[where.number])
        if _XMM0 <= where.number < _XMM0 + 8:
            return Place("sse", where.number - _XMM0)
    if where.kind == "stack" and where.listed:
        return Place("stack", where.number)
    return None


def _hidden_result(signature: Signature, registers: Registers) -> None:
    """A result in memory takes the first integer register for its address."""
    how = passing(signature.result, signature.language)
    if how.kind == "unknown":
        size = size_of(signature.result)
        if size is None or (size <= 16 and signature.language != "rust"):
            registers.lost = True
        elif size > 16:
            registers.take(Passing("reference"))
    elif how.kind in ("memory", "reference") and not _in_x87(signature):
        registers.take(Passing("reference"))


def _in_x87(signature: Signature) -> bool:
    """`long double` and its complex come back in st(0) and st(1), not in memory (psABI §3.2.3)."""
    found = strip(signature.result)
    return found is not None and found.tag == dw.BASE_TYPE


def _assemble(signature: Signature, places: list[Place | None]) -> Plan:
    enter: list[bytes] = []
    values: list[Value] = []
    used = 0
    for parameter, place in zip(signature.parameters, places, strict=True):
        form = shape(parameter.type, signature.language)
        room = 8 if form.scalar == "cstring" else form.size
        offset = (used + room - 1) // room * room if room else used
        if place is None or form is OPAQUE or offset + room > _FIXED_BYTES_MAX or not _fits(place, form):
            values.append(Value(name=parameter.name, type_name=parameter.type_name, scalar="opaque", size=0, source="none"))
            continue
        enter.append(_step(place, form, offset))
        values.append(_value(parameter.name, parameter.type_name, form, offset))
        used = offset + room
    leave, result = _result(signature)
    return Plan(ops=b"".join(enter) + END + leave + END, typed=True, arguments=values, result=result)


def _fits(place: Place, form: Shape) -> bool:
    return place.kind == "stack" or (place.kind == "sse") == (form.scalar == "float")


def _value(name: str, type_name: str, form: Shape, offset: int) -> Value:
    size = 8 if form.scalar == "cstring" else form.size
    return Value(name=name, type_name=type_name, scalar=form.scalar, size=size, source="payload", offset=offset, enumerators=form.enumerators)


def _step(place: Place, form: Shape, offset: int) -> bytes:
    if form.scalar == "cstring":
        if place.kind == "stack":
            return pack(PlanOp.STACK_CSTR, 0, 8, offset, place.number << 12 | STRING_BYTES)
        return pack(PlanOp.CSTR, place.number, 8, offset, STRING_BYTES)
    if place.kind == "stack":
        return pack(PlanOp.STACK, 0, form.size, offset, place.number)
    return pack(PlanOp.XMM if place.kind == "sse" else PlanOp.GPR, place.number, form.size, offset)


def _result(signature: Signature) -> tuple[bytes, Value | None]:
    """(exit steps, how the result is decoded)."""
    how = passing(signature.result, signature.language)
    form = shape(signature.result, signature.language)
    if how.kind == "nothing":
        return b"", None
    if not signature.returns or how.kind != "registers" or len(how.classes) != 1 or form is OPAQUE:
        return b"", Value(name="return", type_name=signature.result_name, scalar="opaque", size=0, source="none")
    if form.scalar == "cstring":
        return pack(PlanOp.CSTR, _RAX, 8, 0, STRING_BYTES), _value("return", signature.result_name, form, 0)
    steps = pack(PlanOp.WORD_XMM, 0, 8) if how.classes[0] == "sse" else b""
    word = Value(name="return", type_name=signature.result_name, scalar=form.scalar, size=form.size, source="word", enumerators=form.enumerators)
    return steps, word
