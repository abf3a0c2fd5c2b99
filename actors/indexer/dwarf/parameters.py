"""The parameters that a function's entries list."""

from __future__ import annotations

from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.functions import origins
from actors.indexer.dwarf.unit import Entry

# What a function's entry lists after its parameters
_BODY: Final = frozenset({dw.LEXICAL_BLOCK, dw.INLINED_SUBROUTINE, dw.VARIABLE, dw.LABEL, dw.CALL_SITE, dw.GNU_CALL_SITE})
_PARAMETERS_MAX: Final = 256


def parameter_entries(chain: list[Entry]) -> list[list[Entry]]:
    """For each declared parameter, its entries from the nearest instance out."""
    concrete = _listed(chain[0])
    if len(chain) == 1:
        return [origins(one) for one in concrete]
    declared = max((_listed(one) for one in chain[1:]), key=len)
    by_origin = {origin.offset: one for one in concrete for origin in origins(one)[1:]}
    if by_origin or len(declared) > len(concrete):
        return [origins(by_origin.get(one.offset, one)) for one in declared]
    return [origins(one) for one in concrete]


def _listed(function: Entry) -> list[Entry]:
    found: list[Entry] = []
    for child in function.children():
        if child.tag == dw.FORMAL_PARAMETER:
            found.append(child)
        elif child.tag == dw.GNU_FORMAL_PARAMETER_PACK:
            found += [part for part in child.children() if part.tag == dw.FORMAL_PARAMETER]
        elif child.tag in _BODY:
            break
        if len(found) >= _PARAMETERS_MAX:
            break
    return found
