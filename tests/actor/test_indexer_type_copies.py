"""Copies of one type in several units are taken for one in capture plans; types that only look alike are not."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from actors.indexer.binary import Library
from actors.indexer.project_formatters import project_formatters
from strobe.model.type_nodes import Record
from strobe.values.bundle import Bundle
from tests.harness.gdb import entries
from tests.harness.targets import program


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("version", ["4", "5"])
def test_nested_types_of_a_template_are_those_of_their_instance(compiler: str, version: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(home))
    path = program("types/copies.cpp", "-O1", f"-gdwarf-{version}", compiler=compiler)
    name, address = next((name, address) for name, address in entries(path).items() if "both" in name)
    done = Library().open(str(path)).plans.planned([(address, name)], math.inf, 3, project_formatters(None))
    assert done.plans[address].depth == 3
    (body,) = done.types.values()
    table = Bundle.unpack(body).table
    nodes = [node for node in table.nodes if isinstance(node, Record) and node.name.endswith("::Node")]
    values = {node.name: table.nodes[member.type].name for node in nodes for member in node.members if member.name == "value"}
    assert sorted(values.values()) == ["double", "long" if compiler == "clang++" else "long int"], values
