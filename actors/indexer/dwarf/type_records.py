"""Descriptions of structs, classes and unions, and of Rust's enums, which are structs with a variant part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.type_members import base, is_static, member, static, template_argument
from actors.indexer.dwarf.type_numbering import Numbering, key_of
from actors.indexer.dwarf.type_variants import variant_part
from actors.indexer.dwarf.types import AGGREGATE_TAGS, strip, type_of
from actors.indexer.dwarf.unit import Entry, Wanted
from strobe.model import type_nodes as nodes

_FORMS: Final[dict[int, Literal["struct", "class", "union"]]] = {dw.STRUCTURE_TYPE: "struct", dw.CLASS_TYPE: "class", dw.UNION_TYPE: "union"}
_TEMPLATE: Final = frozenset({dw.TEMPLATE_TYPE, dw.TEMPLATE_VALUE})
_INHERITANCE_MAX: Final = 64
_STATIC: Final = frozenset({dw.VARIABLE})
_PARTS: Final = frozenset({dw.MEMBER, dw.INHERITANCE, dw.VARIANT_PART, dw.GNU_TEMPLATE_PARAMETER_PACK}) | _TEMPLATE
_OF_DYNAMIC: Final = Wanted(frozenset({dw.MEMBER, dw.INHERITANCE}), frozenset({dw.SUBPROGRAM}), dw.VIRTUALITY)
_WITHOUT_STATICS: Final = Wanted(_PARTS, frozenset({dw.SUBPROGRAM}), dw.VIRTUALITY)
_ALL: Final = Wanted(_PARTS | _STATIC, frozenset({dw.SUBPROGRAM}), dw.VIRTUALITY)


class _Parts:
    """A record's children, sorted."""

    def __init__(self) -> None:
        self.members: list[nodes.Member] = []
        self.bases: list[nodes.Base] = []
        self.statics: list[nodes.Static] = []
        self.template: list[nodes.TemplateArgument] = []
        self.variants: nodes.VariantPart | None = None

    def take(self, child: Entry, numbering: Numbering) -> None:
        if is_static(child):
            if not numbering.limits.statics:
                return
            self.statics.append(static(child, numbering, numbering.linkage_name(child)))
        elif child.tag == dw.MEMBER:
            self.members.append(member(child, numbering))
        elif child.tag == dw.INHERITANCE:
            self.bases.append(base(child, numbering))
        elif child.tag in _TEMPLATE:
            self.template.append(template_argument(child, numbering))
        elif child.tag == dw.GNU_TEMPLATE_PARAMETER_PACK:
            self.template += [template_argument(part, numbering) for part in child.children() if part.tag in _TEMPLATE and numbering.room_for_part()]
        elif child.tag == dw.VARIANT_PART:
            self.variants = variant_part(child, numbering)


def record(entry: Entry, numbering: Numbering) -> nodes.Node:
    """Raises DwarfError."""
    parts = _Parts()
    children = list(entry.parts(_ALL if numbering.limits.statics else _WITHOUT_STATICS))
    for child in children:
        if not numbering.room_for_part():
            break
        parts.take(child, numbering)
    language = numbering.language(entry)
    rust_vtable = entry.reference(dw.CONTAINING_TYPE) if language == "rust" else None
    return nodes.Record(
        name=numbering.name(entry),
        language=language,
        form=_FORMS[entry.tag],
        size=entry.number(dw.BYTE_SIZE),
        members=tuple(parts.members),
        bases=tuple(parts.bases),
        alignment=entry.number(dw.ALIGNMENT),
        vtable=0 if is_dynamic_class(entry, children, numbering) else None,
        statics=tuple(parts.statics),
        template=tuple(parts.template),
        variant_part=parts.variants,
        vtable_of=None if rust_vtable is None else numbering.number(rust_vtable),
    )


def is_dynamic_class(entry: Entry, children: Iterable[Entry], numbering: Numbering, depth: int = 0) -> bool:
    """Whether it has a vtable pointer: then at its start, its own or its primary base's (Itanium C++ ABI §2.4)."""
    key = key_of(entry)
    if key not in numbering.dynamic:
        numbering.dynamic[key] = False  # what inherits from itself
        numbering.dynamic[key] = numbering.language(entry) == "c++" and any(_makes_dynamic(child, numbering, depth) for child in children)
    return numbering.dynamic[key]


def _makes_dynamic(child: Entry, numbering: Numbering, depth: int) -> bool:
    if child.tag in (dw.SUBPROGRAM, dw.INHERITANCE) and child.number(dw.VIRTUALITY):
        return True
    if child.tag == dw.MEMBER:
        return child.has(dw.ARTIFICIAL) and (child.text(dw.NAME) or "").startswith("_vptr")
    if child.tag != dw.INHERITANCE or depth > _INHERITANCE_MAX:
        return False
    parent = numbering.resolved(strip(type_of(child)))
    return parent is not None and parent.tag in AGGREGATE_TAGS and is_dynamic_class(parent, parent.parts(_OF_DYNAMIC), numbering, depth + 1)
