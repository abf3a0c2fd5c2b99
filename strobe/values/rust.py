"""How Rust's own kinds of types are shown: enums with payload, tuples, trait objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.type_nodes import Record, TypeId
from strobe.model.types import TypeTable
from strobe.values.forms import Form
from strobe.values.view import Shape

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes


def form(table: TypeTable, number: TypeId) -> Form | None:
    """Asked for each record of the language "rust" that no formatter of a project has a form for."""
    del table, number
    return None


def shape(shapes: Shapes, number: TypeId, record: Record) -> Shape | None:
    """Asked for each record of the language "rust" that has no form. None: it is shown as an object of its members.

    What is returned is a `Shape` of `record.size` bytes: its `show` gets the object's bytes, its `apart` what is missing of them. Members' types are
    shown through `shapes.of(member.type)`.
    """
    del shapes, number, record
    return None
