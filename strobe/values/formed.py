"""Forms as shapes: what a type is shown as whose formatter says what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from strobe.model.type_nodes import TypeId
from strobe.values import containers, forms, internet, moments, nodes, owners, times, trait_objects, wrappers
from strobe.values.floats import ComplexShape
from strobe.values.forms import Form
from strobe.values.view import CUT, Shape, Words

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_WORD: Final = 8
_SHAPES: Final[dict[type[Any], Callable[..., Shape]]] = {
    forms.Text: containers.TextShape,
    forms.Sequence: containers.SequenceShape,
    forms.Bits: containers.BitsShape,
    forms.Blocks: containers.BlocksShape,
    forms.Ring: containers.RingShape,
    forms.Nodes: nodes.NodesShape,
    forms.Tree: nodes.TreeShape,
    forms.Swiss: nodes.SwissShape,
    forms.BTree: nodes.BTreeShape,
    forms.Inner: wrappers.InnerShape,
    forms.Parts: wrappers.PartsShape,
    forms.Maybe: wrappers.MaybeShape,
    forms.Choice: wrappers.ChoiceShape,
    forms.Owner: owners.OwnerShape,
    forms.Erased: owners.ErasedShape,
    forms.Time: times.TimeShape,
    forms.Moment: moments.MomentShape,
    forms.Internet: internet.InternetShape,
}


def formed(shapes: Shapes, number: TypeId, form: Form) -> Shape:
    """`number`: of the type itself, behind typedefs."""
    size = shapes.bytes_of(number) or _extent(form)
    return _of(shapes, number, form, size)


def _of(shapes: Shapes, number: TypeId, form: Form, size: int) -> Shape:
    if isinstance(form, forms.Hidden):
        return Words(form.words, shapes.bytes_of(number))
    if isinstance(form, forms.Erased) and form.kind == "dyn":
        return trait_objects.TraitObjectShape(shapes, number, size, form)
    if isinstance(form, forms.Either):
        then, otherwise = (_of(shapes, number, one, size) for one in (form.then, form.otherwise))
        return wrappers.EitherShape(size, form, then, otherwise)
    if isinstance(form, forms.ImaginaryParts):
        part = shapes.of(form.type)
        last = max(form.real, form.imaginary) + (part.size or size + 1)
        return ComplexShape(size, form.real, form.imaginary, part) if last <= size else Words(CUT, size)
    return _SHAPES[type(form)](shapes, number, size, form)


def _extent(form: Form) -> int:
    """Of a type whose debug info tells no size: as far as the form reaches."""
    if isinstance(form, forms.Text) and form.length is not None:
        return max(form.data + _WORD, form.length.offset + form.length.size)
    return _WORD
