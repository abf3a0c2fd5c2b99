"""Where showing a value ends: types that are only declared, or were left out for being beyond depth; arrays that are their own elements."""

from __future__ import annotations

from typing import Any

import pytest

from strobe.lanes.layout import RegionState
from strobe.model.type_nodes import Array, Node, Opaque, Pointer
from strobe.model.types import FIRST_NODES, TypeTable
from strobe.values.memory import Image, Region
from strobe.values.reader import Limits, Reader
from strobe.values.registry import Formatters
from strobe.values.view import CUT

BASE = 0x7F00_0000_1000


def shown(node: Node, number: int, words: list[int], depth: int) -> Any:
    """`node` is the table's type `number`, or the one before it; `words` are at BASE."""
    table = TypeTable((*FIRST_NODES, Opaque("Far", "c++", "class"), node))
    image = Image(b"", [Region(BASE, b"".join(word.to_bytes(8, "little") for word in words), RegionState.OK)])
    return Reader(table, image, Formatters.built_in(), Limits(depth=depth)).at(number, BASE)


@pytest.mark.parametrize(("depth", "said"), [(0, "<Far at 0x1234>"), (1, "0x1234"), (3, "0x1234")])
def test_a_pointer_to_what_is_only_declared(depth: int, said: str) -> None:
    far = len(FIRST_NODES)
    assert shown(Pointer("Far *", "c++", 8, far), far + 1, [0x1234], depth) == said
    assert shown(Pointer("Far *", "c++", 8, far), far + 1, [0], depth) is None


def test_a_reference_to_what_is_only_declared() -> None:
    far = len(FIRST_NODES)
    assert shown(Pointer("Far &", "c++", 8, far, "lvalue"), far + 1, [0x1234], 0) == "<Far at 0x1234>"


def test_an_array_that_is_its_own_element() -> None:
    number = len(FIRST_NODES) + 1
    value = shown(Array("damaged", "c", 8, number, (1,)), number, [7], 3)
    for _ in range(100):
        if value == CUT:
            return
        (value,) = value
    pytest.fail("it has no end")
