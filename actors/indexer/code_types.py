"""Which type an address in code or constants stands for: where objects of a class point to (in its vtable), Rust's vtables, std::any's managers."""

from __future__ import annotations

import re
from typing import Final

from actors.indexer.binary import Binary
from actors.indexer.data_symbols import DataSymbols
from actors.indexer.demangle import itanium
from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.enclosing import entry_around
from actors.indexer.dwarf.type_graph import TypeGraph
from strobe.model.type_nodes import Record, TypeId

_VTABLE: Final = re.compile(r"vtable for (.+)")
_MANAGER: Final = re.compile(r"std::any::_Manager_(?:internal|external)<(.+)>::_S_manage")
_HANDLER: Final = re.compile(r"std::(?:__1::)?__any_imp::_(?:Small|Large)Handler<(.+)>::__handle")
_ADDRESS: Final = b"\x03"  # DW_OP_addr


def code_type(binary: Binary, symbols: DataSymbols, graph: TypeGraph, address: int) -> TypeId | None:
    """`address`: link-time. Raises DwarfError."""
    found = symbols.addresses.find(address)
    if found is not None and (name := itanium.demangle(found[0])) and (match := _VTABLE.fullmatch(name)):
        return graph.named(match[1])
    if found is None and (function := binary.addresses.find(address)) is not None and function[1] == 0:
        name = itanium.demangle(function[0]) or ""
        match = _MANAGER.search(name) or _HANDLER.search(name)
        return graph.named(match[1]) if match else None
    return _of_rust_vtable(binary, graph, address)


def _of_rust_vtable(binary: Binary, graph: TypeGraph, address: int) -> TypeId | None:
    """rustc describes each vtable as a variable at its address; its type tells the concrete one."""
    dwarf = binary.dwarf
    if dwarf is None:
        return None
    wanted = _ADDRESS + address.to_bytes(8, "little")
    at = dwarf.info.find(wanted)
    while at >= 0:
        entry = entry_around(dwarf.unit_at(at), at)
        if entry is not None and entry.block(dw.LOCATION) == wanted:
            number = graph.type(entry.reference(dw.TYPE))
            node = graph.table().stripped(number)
            if isinstance(node, Record) and node.vtable_of is not None:
                return node.vtable_of
        at = dwarf.info.find(wanted, at + 1)
    return None
