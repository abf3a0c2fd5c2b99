"""Capture plans: for each function, where its values are at entry and exit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from actors.indexer.abi import REFERENCE, Passing
from actors.indexer.assembly import Argument, Outline
from actors.indexer.demangle.suffix import split_suffix
from actors.indexer.dwarf.functions import FunctionFinder
from actors.indexer.dwarf.types import POINTER_TAGS, size_of, strip
from actors.indexer.dwarf.unit import Entry
from actors.indexer.passing import Place, Registers, passing, returning
from actors.indexer.signature import Parameter, Signature, read_signature

_CONVENTION_CHANGERS: Final = (".constprop", ".isra", ".part", ".specialized")
# DWARF register numbers (psABI, figure 3.36) → index in the order of arguments
_INTEGER_INDEX: Final = {5: 0, 4: 1, 1: 2, 2: 3, 8: 4, 9: 5}
_XMM0: Final = 17


@dataclass(frozen=True, slots=True)
class Found:
    """`function`: the entry that a type graph is asked with."""

    function: Entry
    outline: Outline


class Planner:
    """Of the functions of one file."""

    def __init__(self, finder: FunctionFinder) -> None:
        self._finder = finder

    def expect(self, addresses: Iterable[int]) -> None:
        """That these will be asked for, one by one. Raises DwarfError."""
        self._finder.expect(addresses)

    def find(self, address: int, raw_name: str) -> Found | None:
        """None where debug info has no such function, or does not tell its convention: then only the raw plan is right. Raises DwarfError."""
        function = self._finder.find(address, raw_name.partition("@")[0])
        if function is None:
            return None
        suffix = split_suffix(raw_name)[1]
        signature = read_signature(function, address, clone=any(word in suffix for word in _CONVENTION_CHANGERS))
        if signature is None:
            return None
        if ".isra" in suffix:  # GCC's IPA-SRA also drops results that nobody uses
            signature = replace(signature, returns=False)
        result = returning(signature.result, signature.language)
        arguments = _arguments(signature, result)
        if not signature.certain and arguments and all(argument.places is None for argument in arguments):
            return None
        return Found(function, Outline(signature, arguments, result))


def _arguments(signature: Signature, result: Passing) -> list[Argument]:
    registers = Registers()
    _hidden_result(signature, result, registers)
    if not signature.certain:
        registers.lost = True
    found: list[Argument] = []
    for parameter in signature.parameters:
        how = passing(parameter.type, signature.language)
        found.append(Argument(parameter, how, _places(signature, parameter, how, registers)))
    return found


def _places(signature: Signature, parameter: Parameter, how: Passing, registers: Registers) -> tuple[Place, ...] | None:
    """By the ABI, checked against what its location says; a location list that disagrees is right, and ends the trust in the rules."""
    proven = _proven(signature, parameter, how)
    if parameter.artificial and parameter.name == "__vtt_parm":
        registers.lost = True  # only some of a constructor's variants have it
    if how.kind == "reference" and signature.language == "rust" and parameter.where.kind != "pointed":
        registers.lost = True  # in an extern "C" function it would be passed by value
    ruled = registers.take(how)
    if signature.promoted and proven is None and (how.parts or how.separate or how.kind == "reference" or _is_pointer(parameter)):
        registers.lost = True
        return None
    if proven is None:
        return None if signature.located_only and parameter.where.kind in ("absent", "pieces", "other") else ruled
    if proven != ruled:
        registers.lost = True
    return proven


def _is_pointer(parameter: Parameter) -> bool:
    found = strip(parameter.type)
    return found is not None and found.tag in POINTER_TAGS


def _proven(signature: Signature, parameter: Parameter, how: Passing) -> tuple[Place, ...] | None:
    """Where its location puts it at entry: a list says so outright; a single location, which LLVM gives only to what stays in place,
    is believed of optimised code."""
    where = parameter.where
    if not (where.listed or signature.located_only):
        return None
    if how.kind == "reference":
        return _registers((where.number,)) if where.kind == "pointed" else None
    if how.kind != "registers" and not (how.kind == "unknown" and how.pieces and where.listed):
        return None
    if where.kind == "stack" and where.listed and len(how.pieces) == 1:
        return (Place("stack", where.number),)
    listed = (where.number,) if where.kind == "register" else where.registers
    return _registers(listed) if len(listed) == len(how.pieces) else None


def _registers(numbers: tuple[int, ...]) -> tuple[Place, ...] | None:
    found: list[Place] = []
    for number in numbers:
        if number in _INTEGER_INDEX:
            found.append(Place("integer", _INTEGER_INDEX[number]))
        elif _XMM0 <= number < _XMM0 + 8:
            found.append(Place("sse", number - _XMM0))
        else:
            return None
    return tuple(found)


def _hidden_result(signature: Signature, result: Passing, registers: Registers) -> None:
    """A result in memory takes the first integer register for its address."""
    if result.kind == "unknown":
        size = size_of(signature.result)
        if size is None or result.parts or (size <= 16 and signature.language != "rust"):
            registers.lost = True
        elif size > 16:
            registers.take(REFERENCE)
    elif result.kind in ("memory", "reference") and not result.x87:
        registers.take(REFERENCE)
