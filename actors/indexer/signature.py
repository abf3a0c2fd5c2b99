"""What debug info says about a function's parameters and result, and how far it can be trusted at the function's first instruction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.functions import origins
from actors.indexer.dwarf.language import Language, language_of
from actors.indexer.dwarf.locations import AtEntry, at_entry
from actors.indexer.dwarf.parameters import parameter_entries
from actors.indexer.dwarf.type_names import type_name
from actors.indexer.dwarf.unit import Entry, Unit

_IN_CHARGE: Final = "__in_chrg"  # GCC: which of a constructor's variants is meant; each variant is a function of its own, without it
_RUSTC: Final = re.compile(r"rustc version 1\.(\d+)")
_CLANG: Final = re.compile(r"clang version (\d+)")
_CALL_FRAME_CFA: Final = b"\x9c"


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: Entry | None
    type_name: str
    where: AtEntry
    artificial: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """How far the declaration holds at the function's first instruction.

    `certain`: parameters are passed by the ABI's rules; otherwise only what a location proves is known.
    `promoted`: LLVM may have replaced or dropped pointers without telling: the rules hold up to the first one that no location confirms.
    `located_only`: a parameter that the code does not use need not have been passed (LLVM's callers then pass anything).
    `returns`: the declared result is returned.
    """

    language: Language
    parameters: list[Parameter]
    result: Entry | None
    result_name: str
    certain: bool
    promoted: bool
    located_only: bool
    returns: bool


def read_signature(function: Entry, entry: int, *, clone: bool) -> Signature | None:
    """None for a language or convention that is not known. `clone`: made by the compiler with other parameters. Raises DwarfError."""
    language = language_of(function.unit)
    chain = origins(function)
    conventions = {one.number(dw.CALLING_CONVENTION) for one in chain} - {None, dw.CC_NORMAL, dw.CC_PROGRAM}
    if language is None or conventions - {dw.CC_NOCALL}:
        return None
    frame_is_cfa = function.block(dw.FRAME_BASE) == _CALL_FRAME_CFA
    found = [_parameter(chosen, entry, index, frame_is_cfa, language) for index, chosen in enumerate(parameter_entries(chain))]
    parameters = [one for one in found if not (one.artificial and one.name == _IN_CHARGE)]
    result = next((one.reference(dw.TYPE) for one in chain if one.has(dw.TYPE)), None)
    trust = _trust(function.unit, chain, parameters)
    certain = trust.rules and not clone and dw.CC_NOCALL not in conventions and not _has_environment(chain)
    returns = trust.result and dw.CC_NOCALL not in conventions
    return Signature(language, parameters, result, type_name(result, language), certain, trust.promoted, trust.located_only, returns)


@dataclass(frozen=True, slots=True)
class _Trust:
    rules: bool
    promoted: bool
    located_only: bool
    result: bool


def _trust(unit: Unit, chain: list[Entry], parameters: list[Parameter]) -> _Trust:
    """By compiler. GCC makes a clone, with a name of its own, where it changes a convention. LLVM changes local functions in place; since
    version 16 its dead argument elimination marks them (DW_CC_nocall), but its argument promotion does not."""
    if (unit.root.text(dw.PRODUCER) or "").startswith("GNU "):
        return _Trust(True, False, False, True)
    if _is_framed(chain, parameters):
        return _Trust(True, False, False, True)  # not optimised: all parameters live in the frame throughout
    if language_of(unit) != "rust" and any(one.has(dw.EXTERNAL) for one in chain):
        return _Trust(True, False, True, True)
    marked = _marks_changes(unit)
    return _Trust(marked, True, True, marked)


def _is_framed(chain: list[Entry], parameters: list[Parameter]) -> bool:
    """Not optimised: all parameters live in the frame, but for those that Clang lists because they are passed behind a pointer; it says of optimised
    functions alone that all their calls are described."""
    framed = [one.where.kind == "pointed" or (one.where.kind in ("frame", "stack") and not one.where.listed) for one in parameters]
    if all(framed):
        return bool(framed)
    optimised = any(one.has(dw.CALL_ALL_CALLS) or one.has(dw.GNU_ALL_CALL_SITES) for one in chain)
    listed = [one.where.kind == "absent" and one.where.listed for one in parameters]
    return any(framed) and not optimised and all(one or other for one, other in zip(framed, listed, strict=True))


def _marks_changes(unit: Unit) -> bool:
    producer = unit.root.text(dw.PRODUCER) or ""
    rustc, clang = _RUSTC.search(producer), _CLANG.search(producer)
    if rustc:
        return int(rustc.group(1)) >= 73  # the first with LLVM 17
    return clang is not None and int(clang.group(1)) >= 17


def _has_environment(chain: list[Entry]) -> bool:
    """A Rust closure: what it captured comes first, and its entry does not list it."""
    return any((one.text(dw.NAME) or "").startswith("{") for one in chain)


def _parameter(chain: list[Entry], entry: int, index: int, frame_is_cfa: bool, language: Language) -> Parameter:
    name = next((text for one in chain if (text := one.text(dw.NAME)) is not None), None)
    found = next((one.reference(dw.TYPE) for one in chain if one.has(dw.TYPE)), None)
    where = at_entry(chain[0], frame_is_cfa, entry)
    written = found.reference(dw.TYPE) if found is not None and found.tag == dw.CONST_TYPE else found  # its own const is the callee's affair
    return Parameter(name or f"arg{index}", found, type_name(written, language), where, any(one.has(dw.ARTIFICIAL) for one in chain))
