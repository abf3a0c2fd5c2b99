"""Network addresses."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from strobe.model.type_nodes import TypeId
from strobe.values.forms import Internet
from strobe.values.inside import FormShape
from strobe.values.view import Json, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes


class InternetShape(FormShape):
    __slots__ = ("form",)
    is_key = True

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Internet) -> None:
        super().__init__(shapes, number, size)
        self.form = form

    def shown(self, _view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        start = at + self.form.offset
        raw = data[start : start + self.form.size]
        return str(ipaddress.ip_address(raw)) if len(raw) == self.form.size else self.invalid()
