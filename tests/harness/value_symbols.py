"""Which type the vtables and std::any's managers of a C++ program stand for, by their symbols: the Reader's Symbols, made apart from the indexer's."""

from __future__ import annotations

import re
import subprocess
from typing import Final

from actors.indexer.dwarf.type_graph import TypeGraph
from strobe.model.type_nodes import TypeId
from tests.harness.live_values import Live, LiveSymbols, Types, codes_of
from tests.harness.targets import require
from tests.harness.type_facts import Typed

_SYMBOL: Final = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) \w (.+)$", re.MULTILINE)
_MANAGER: Final = re.compile(r"^std::any::_Manager_(?:internal|external)<(.+)>::_S_manage")
_HANDLER: Final = re.compile(r"^std::__1::__any_imp::_(?:Small|Large)Handler<(.+)>::__handle")
_WORD: Final = 8


def typed(live: Live) -> Types:
    """Of the groups' types, with all classes that have a vtable and all types that an any holds."""
    debug_info = Typed.open(live.path)
    graph = debug_info.graph(nodes=50_000)
    numbers = [graph.named(group.type) for group in live.groups]
    functions, types = _codes(live, graph)
    codes = codes_of(debug_info, graph)
    table = graph.table()
    found = [number for number in numbers if number is not None]
    assert len(found) == len(live.groups) and not table.cut
    return Types(table, found, LiveSymbols(functions, types), codes)


def _codes(live: Live, graph: TypeGraph) -> tuple[dict[int, str], dict[int, TypeId]]:
    listing = subprocess.run([require("nm"), "-C", "-S", str(live.path)], capture_output=True, text=True, check=True, timeout=120).stdout
    functions: dict[int, str] = {}
    types: dict[int, TypeId] = {}
    for address, size, name in _SYMBOL.findall(listing):
        start = live.bias + int(address, 16)
        if name.startswith("vtable for "):
            number = graph.named(name.removeprefix("vtable for "))
            places = range(start + _WORD, start + int(size, 16), _WORD)  # an object may point anywhere in it: it has a part for each base
        else:
            functions[start] = name
            match = _MANAGER.match(name) or _HANDLER.match(name)
            number, places = graph.named(match[1]) if match else None, range(start, start + 1)
        if number is not None:
            types.update(dict.fromkeys(places, number))
    return functions, types
