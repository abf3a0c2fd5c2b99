"""Type tables without references to types that are not there: whatever is read with one may follow them unasked."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from strobe.model.type_nodes import (
    CUT,
    Array,
    Complex,
    Enum,
    Float,
    Function,
    Integer,
    Member,
    MemberPointer,
    Node,
    Pointer,
    Qualified,
    Record,
    Typedef,
    TypeId,
    Unspecified,
    VariantPart,
)
from strobe.model.types import TypeTable

_SCALARS: Final = (Integer, Float, Complex, Enum, Pointer, MemberPointer, Unspecified)
_SCALAR_MAX: Final = 64  # bytes: more than any has


def sound(table: TypeTable) -> TypeTable:
    """The table itself where nothing is wrong with it; else a copy in which `CUT` stands for what is not there, None for sizes that
    no type has, and nothing is in records that contain themselves."""
    count = len(table)
    repaired = [node if _is_sound(node, count) else _repaired(node, count) for node in table.nodes]
    for number in _containing_themselves(repaired):
        node = repaired[number]
        if isinstance(node, Record):
            repaired[number] = replace(node, members=(), bases=(), variant_part=None)
    return table if all(one is other for one, other in zip(repaired, table.nodes, strict=True)) else TypeTable(tuple(repaired), table.cut)


def _containing_themselves(nodes: list[Node]) -> set[TypeId]:
    """Types on circles of containment, and those between two circles: what is left when all that contain nothing, then all that are contained by nothing,
    are taken away again and again."""
    inside = {number: set(found) for number, node in enumerate(nodes) if (found := _contained(node))}
    around: dict[TypeId, set[TypeId]] = {}
    for number, ones in inside.items():
        for one in ones:
            around.setdefault(one, set()).add(number)
    left = set(inside)
    for down, up in ((inside, around), (around, inside)):
        waiting = [number for number in {*inside, *around} if not down.get(number)]
        while waiting:
            number = waiting.pop()
            left.discard(number)
            for other in up.pop(number, ()):
                if other in down:
                    down[other].discard(number)
                    if not down[other]:
                        waiting.append(other)
    return left


def _contained(node: Node) -> list[TypeId]:
    if isinstance(node, Record):
        found = [member.type for member in node.members] + [base.type for base in node.bases]
        return found + (_of_variants(node.variant_part) if node.variant_part is not None else [])
    if isinstance(node, Typedef | Qualified):
        return [node.target]
    return [node.element] if isinstance(node, Array) else []


def _is_sound(node: Node, count: int) -> bool:
    if isinstance(node, _SCALARS) and node.size is not None and not 0 <= node.size <= _SCALAR_MAX:
        return False
    if isinstance(node, Array | Record) and node.size is not None and node.size < 0:
        return False
    return all(0 <= number < count for number in _references(node))


def _references(node: Node) -> list[TypeId]:
    if isinstance(node, Record):
        found = [member.type for member in node.members]
        found += [base.type for base in node.bases]
        found += [argument.type for argument in node.template]
        found += [static.type for static in node.statics]
        found += [node.vtable_of] if node.vtable_of is not None else []
        return found + (_of_variants(node.variant_part) if node.variant_part is not None else [])
    if isinstance(node, Pointer | Typedef | Qualified):
        return [node.target]
    if isinstance(node, MemberPointer):
        return [node.target] if node.owner is None else [node.target, node.owner]
    if isinstance(node, Function):
        return [node.result, *node.parameters]
    if isinstance(node, Array):
        return [node.element]
    return [node.underlying] if isinstance(node, Enum) and node.underlying is not None else []


def _of_variants(part: VariantPart) -> list[TypeId]:
    found = [member.type for variant in part.variants for member in variant.members]
    return found if part.discriminant is None else [*found, part.discriminant.type]


def _repaired(node: Node, count: int) -> Node:
    def there(number: TypeId) -> TypeId:
        return number if 0 <= number < count else CUT

    def of(members: tuple[Member, ...]) -> tuple[Member, ...]:
        return tuple(replace(member, type=there(member.type)) for member in members)

    if isinstance(node, _SCALARS) and node.size is not None and not 0 <= node.size <= _SCALAR_MAX:
        return Unspecified(node.name, node.language, None)
    if isinstance(node, Array | Record) and node.size is not None and node.size < 0:
        node = replace(node, size=None)
    if isinstance(node, Record):
        part = node.variant_part
        if part is not None:
            told_by = None if part.discriminant is None else of((part.discriminant,))[0]
            part = VariantPart(told_by, tuple(replace(variant, members=of(variant.members)) for variant in part.variants))
        return replace(
            node, members=of(node.members), bases=tuple(replace(base, type=there(base.type)) for base in node.bases), variant_part=part,
            template=tuple(replace(one, type=there(one.type)) for one in node.template),
            statics=tuple(replace(one, type=there(one.type)) for one in node.statics),
            vtable_of=None if node.vtable_of is None else there(node.vtable_of),
        )  # fmt: skip
    if isinstance(node, Pointer | Typedef | Qualified):
        return replace(node, target=there(node.target))
    if isinstance(node, MemberPointer):
        return replace(node, target=there(node.target), owner=None if node.owner is None else there(node.owner))
    if isinstance(node, Function):
        return replace(node, result=there(node.result), parameters=tuple(map(there, node.parameters)))
    if isinstance(node, Array):
        return replace(node, element=there(node.element))
    return replace(node, underlying=there(node.underlying)) if isinstance(node, Enum) and node.underlying is not None else node
