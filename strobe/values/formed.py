"""Forms as shapes: what a type is shown as whose formatter says what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.type_nodes import TypeId
from strobe.values.forms import Form
from strobe.values.view import Shape, Words

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes


def formed(shapes: Shapes, number: TypeId, form: Form) -> Shape:
    del form
    return Words(f"<{shapes.name(number)}>", shapes.bytes_of(number))
