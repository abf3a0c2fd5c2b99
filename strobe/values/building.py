"""From what a formatter's file says to a form: with the offsets, types and sizes that a type has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from strobe.model.type_nodes import Array, Opaque, Pointer, Record, TypeId
from strobe.values import forms
from strobe.values.forms import Form, Number
from strobe.values.places import Place, Places
from strobe.values.rules import Rule

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_WORD: Final = 8
_SIZES: Final = (1, 2, 4, 8)
_PARTS_MAX: Final = 128


class _Unfit(Exception):
    """The type is not made as the formatter says."""


def build(shapes: Shapes, number: TypeId, rule: Rule) -> Form | None:
    """None: the rule is not for this type."""
    places = Places(shapes)
    if isinstance(shapes.node(number), Opaque) is not (rule.opaque is not None):
        return None
    if any(places.at(number, path) is None for path in rule.has) or any(places.at(number, path) is not None for path in rule.lacks):
        return None
    for path, offset in rule.where:
        place = places.at(number, path)
        if place is None or place.offset != offset:
            return None
    try:
        return _Builder(shapes, number, places, rule.form).form()
    except _Unfit:
        return None


class _Builder:
    def __init__(self, shapes: Shapes, number: TypeId, places: Places, said: Any) -> None:
        self.shapes, self.number, self.places, self.said = shapes, number, places, said

    def form(self) -> Form:
        """Raises _Unfit."""
        kind = getattr(self, f"_{self.said['kind']}")
        return cast(Form, kind())

    def place(self, key: str, within: TypeId | None = None) -> Place:
        found = self.place_if(key, within)
        if found is None:
            raise _Unfit
        return found

    def place_if(self, key: str, within: TypeId | None = None) -> Place | None:
        """None where the key is not given."""
        said = self.said.get(key)
        return None if said is None else self._placed(said, within)

    def _placed(self, said: Any, within: TypeId | None = None) -> Place:
        owner = self.number if within is None else within
        if isinstance(said, int):
            return Place(owner, said)
        found = self.places.at(owner, said)
        if found is None or found.offset < 0:
            raise _Unfit
        return found

    def offset_if(self, key: str) -> int | None:
        place = self.place_if(key)
        return None if place is None else place.offset

    def type(self, said: str) -> TypeId:
        found = self.places.type(self.number, said)
        if found is None:
            raise _Unfit
        return self.shapes.checked(found)

    def number_if(self, key: str, within: TypeId | None = None) -> Number | None:
        said = self.said.get(key)
        return None if said is None else self.counted(said, within)

    def counted(self, said: Any, within: TypeId | None = None) -> Number:
        if isinstance(said, int):
            return Number(size=0, fixed=said)
        if isinstance(said, dict):
            return self._described(said, within)
        fixed = self.places.constant(self.number if within is None else within, said)
        return Number(size=0, fixed=fixed) if fixed is not None else self._described({"at": said}, within)

    def _described(self, said: dict[str, Any], within: TypeId | None) -> Number:
        place = self._placed(said["at"], within)
        size = said.get("size", _WORD if isinstance(said["at"], int) else self.shapes.bytes_of(place.type))
        mask, shift = said.get("mask", 0), said.get("shift", 0)
        if place.bits:
            size = next((one for one in _SIZES if 8 * one >= place.shift + place.bits), 0)
            mask, shift = ((1 << place.bits) - 1) << place.shift, place.shift
        if size not in _SIZES:
            raise _Unfit
        return Number(place.offset, size, mask, shift, said.get("scale", 1), plus=said.get("plus", 0))

    def _text(self) -> Form:
        data = self.place("data")
        node = self.shapes.node(data.type)
        inner = node.target if isinstance(node, Pointer) else node.element if isinstance(node, Array) else data.type
        said = self.said.get("unit", 1 if isinstance(self.said["data"], int) else None)
        unit = said if isinstance(said, int) else self.shapes.bytes_of(inner if said is None else self.type(said))
        if unit not in (1, 2, 4):
            raise _Unfit
        return forms.Text(data.offset, self.number_if("length"), cast(Literal[1, 2, 4], unit), self.said.get("inline", False), self.said.get("skip", 0))

    def _sequence(self) -> Form:
        data = self.place("data")
        node = self.shapes.node(data.type)
        if "element" in self.said:
            element = self.type(self.said["element"])
        elif isinstance(node, Pointer | Array):
            element = node.target if isinstance(node, Pointer) else node.element
        else:
            raise _Unfit
        stride = self.shapes.bytes_of(self.shapes.checked(element))
        if stride == 0 or ("count" not in self.said and "end" not in self.said):
            raise _Unfit
        is_text = self.shapes.unit(element) is not None
        return forms.Sequence(data.offset, element, stride, self.number_if("count"), self.offset_if("end"), self.said.get("inline", False), is_text)

    def _bits(self) -> Form:
        inline = self.said.get("inline", False)
        return forms.Bits(self.place("data").offset, self.number_if("count"), self.offset_if("end"), self.number_if("end_bit"), inline)

    def _element(self) -> tuple[TypeId, TypeId | None, int, int]:
        """(element, node type where it is told, where a node has its element, bytes of a node up to its element's end)."""
        node = self.type(self.said["node"]) if "node" in self.said else None
        if node is not None and "value" in self.said:
            value = self.place("value", node)
            element = self.type(self.said["element"]) if "element" in self.said else value.type
            start = value.offset
        elif "element" in self.said:
            element = self.type(self.said["element"])
            alignment = self.shapes.alignment(element)
            start = self.place("value").offset if "value" in self.said else -(-self.said.get("header", 0) // alignment) * alignment
        else:
            raise _Unfit
        size = self.shapes.bytes_of(element)
        if size == 0:
            raise _Unfit
        return element, node, start, start + size

    def _list(self) -> Form:
        element, node, value, size = self._element()
        following = self.place("next", node).offset if "next" in self.said else 0
        shown = self.said.get("shown", "list")
        reach = max(size, following + _WORD)
        return forms.Nodes(self.place("first").offset, following, value, element, reach, self.offset_if("sentinel"), self.number_if("count"), shown)

    def _tree(self) -> Form:
        element, node, value, size = self._element()
        left, right = self.place("left", node).offset, self.place("right", node).offset
        reach = max(size, left + _WORD, right + _WORD)
        shown = self.said.get("shown", "set")
        return forms.Tree(self.place("root").offset, left, right, value, element, reach, self.number_if("count"), shown)

    def _blocks(self) -> Form:
        element = self.type(self.said["element"])
        stride = self.shapes.bytes_of(element)
        if stride == 0:
            raise _Unfit
        per_block = max(self.said.get("block_least", 1), self.said.get("block_bytes", 0) // stride)
        start, finish = self.place("start").offset, self.offset_if("finish")
        return forms.Blocks(element, stride, per_block, start, finish, self.number_if("first"), self.number_if("count"))

    def _inner(self) -> Form:
        value = self.place("value")
        if value.bits or self.shapes.resolved(value.type) == self.shapes.resolved(self.number):
            raise _Unfit
        return forms.Inner(value.type, value.offset)

    def _parts(self) -> Form:
        said = self.said["parts"]
        places = self._tuple(said.removesuffix("[*]")) if isinstance(said, str) else [self._placed(one) for one in said]
        return forms.Parts(tuple((place.type, place.offset) for place in places))

    def _tuple(self, path: str) -> list[Place]:
        """Elements as long as there is a next one: GCC does not say how many arguments a tuple has."""
        found: list[Place] = []
        while len(found) < _PARTS_MAX and (place := self.places.at(self.number, f"{path}[{len(found)}]")) is not None:
            found.append(place)
        return found

    def _maybe(self) -> Form:
        there, value = self.counted(self.said["there"]), self.place("value")
        return forms.Maybe(there, self.type(self.said["type"]) if "type" in self.said else value.type, value.offset)

    def _choice(self) -> Form:
        index = self.counted(self.said["index"])
        said = self.said["types"]
        owner = self.shapes.node(self.number)
        if said == "@*":
            arguments = owner.template if isinstance(owner, Record) else ()
            types = tuple(argument.type for argument in arguments if not argument.is_value)
        else:
            types = tuple(self.type(one) for one in said)
        none = self.said.get("none", -1)
        return forms.Choice(index, types, self.place("value").offset, none if none >= 0 else (1 << 8 * index.size) + none)

    def _either(self) -> Form:
        then, otherwise = (_Builder(self.shapes, self.number, self.places, self.said[key]).form() for key in ("then", "otherwise"))
        return forms.Either(self.counted(self.said["test"]), self.said["low"], self.said["high"], then, otherwise)

    def _owner(self) -> Form:
        pointer = self.place("pointer")
        node = self.shapes.node(pointer.type)
        target = self.type(self.said["target"]) if "target" in self.said else node.target if isinstance(node, Pointer) else None
        if target is None:
            raise _Unfit
        control = self.place_if("control")
        counts: tuple[tuple[str, Number], ...] = ()
        if control is not None:
            block = self.shapes.node(control.type)
            within = block.target if isinstance(block, Pointer) else None
            counts = tuple((name, self.counted(said, within)) for name, said in self.said.get("counts", {}).items())
        place = None if control is None else control.offset
        return forms.Owner(pointer.offset, self.shapes.checked(target), self.said.get("skip", 0), place, counts, self.number_if("length"))

    def _erased(self) -> Form:
        said = self.said
        return forms.Erased(said["what"], self.place("code").offset, self.place("value").offset, said.get("boxed", False), said.get("small", 0))

    def _time(self) -> Form:
        value = self.place("value")
        numerator, denominator = self.said.get("numerator", 1), self.said.get("denominator", 1)
        if "period" in self.said:
            period = self.type(self.said["period"])
            ratio = [self.places.constant(period, f"@{index}") for index in (0, 1)]
            if ratio[0] is None:
                raise _Unfit
            numerator, denominator = ratio[0], ratio[1] if ratio[1] is not None else 1
        if numerator <= 0 or denominator <= 0:
            raise _Unfit
        clock = self.shapes.name(self.type(self.said["clock"])) if "clock" in self.said else None
        return forms.Time(value.type, value.offset, numerator, denominator, clock)

    def _complex(self) -> Form:
        real = self.place("real")
        return forms.ImaginaryParts(real.type, real.offset, self.place("imaginary").offset)

    def _hidden(self) -> Form:
        return forms.Hidden(self.said["words"])
