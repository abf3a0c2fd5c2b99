"""A type graph that pauses when time is up, and goes on later, ends with the types of one that had time."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from actors.indexer.dwarf.functions import FunctionFinder
from actors.indexer.dwarf.type_graph import TypeGraph
from actors.indexer.dwarf.type_numbering import Limits
from strobe.model.type_nodes import Opaque
from tests.harness.gdb import entries
from tests.harness.targets import program
from tests.harness.type_facts import Typed

ROUNDS = 2000


@pytest.mark.parametrize("flags", [("-O0", "-gdwarf-4"), ("-O2", "-gdwarf-5")], ids=" ".join)
def test_pauses_change_nothing_but_the_order(flags: tuple[str, ...]) -> None:
    path = program("indexer/abi.cpp", *flags)
    typed = Typed.open(path)
    finder = FunctionFinder(typed.file)
    functions = [entry for name, address in entries(path).items() if "case_" in name and (entry := finder.find(address, name))]
    assert len(functions) > 20
    limits = Limits(nodes=6000, pointers=3, statics=False, pauses=True)
    at_once, by_and_by = TypeGraph(typed.index, limits), TypeGraph(typed.index, limits)
    by_and_by.limit(time.monotonic() - 1)
    paused = 0
    for function in functions:
        at_once.function(function)
        for _ in range(ROUNDS):
            before = by_and_by.size
            told = by_and_by.function(function)
            if not by_and_by.paused:
                break
            paused += 1
            assert all(parameter.type < len(by_and_by.table().nodes) for parameter in told.parameters) and by_and_by.size >= before
        assert not by_and_by.paused, "it never gets to an end"
    assert paused > 10 and not at_once.paused
    assert _nodes(by_and_by) == _nodes(at_once)


def _nodes(graph: TypeGraph) -> Counter[tuple[str, str]]:
    assert not any(isinstance(node, Opaque) and node.name == "?" for node in graph.table().nodes), "a type was not described"
    return Counter((type(node).__name__, node.name) for node in graph.table().nodes)
