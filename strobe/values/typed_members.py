"""Members by name: own, inherited, in anonymous and virtual bases, of tuples and of Rust's enums; enumerators by name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from strobe.expression import Scalar, Unavailable
from strobe.model.type_nodes import Base, Cut, Enum, Member, Opaque, Record, TypeId, VariantPart
from strobe.model.types import TypeTable
from strobe.values import typed_numbers as numbers
from strobe.values.forms import Choice, Number, Owner, Parts

if TYPE_CHECKING:  # the value's own file needs this one
    from strobe.values.typed import TypedValue

_DEPTH_MAX: Final = 32
_NEAR: Final = 5


def enumerator(node: Enum, name: str) -> int | None:
    """`Red`, or `Color::Red` and `ns::Color::Red`; of an unscoped enum `ns::Red` too."""
    scope, _, own = name.rpartition("::")
    number = dict(node.enumerators).get(own)
    if number is None or not scope:
        return number
    outer = node.name.rpartition("::")[0]
    scopes = [node.name] if node.scoped else [node.name, outer]
    return number if any(full == scope or full.endswith(f"::{scope}") for full in scopes) else None


def named_enumerator(table: TypeTable, name: str) -> Scalar | None:
    for node in table.nodes:
        if isinstance(node, Enum) and ("::" in name or not node.scoped) and (number := enumerator(node, name.removeprefix("::"))) is not None:
            return Scalar(number, unsigned=not node.signed, bits=8 * (node.size or 4))
    return None


def member(value: TypedValue, name: str) -> TypedValue | Unavailable:
    found = _own(value, name, 0)
    if found is not None:
        return found
    inner = value.inner()
    if inner is None:
        return Unavailable(f"it holds no value now, so there is no `{name}`")
    if isinstance(inner, Unavailable):
        return inner
    if inner is not value:
        return inner.member(name)
    if isinstance(value.form(), Owner):
        target = value.dereference()
        return target if isinstance(target, Unavailable) else target.member(name)
    return _nothing(value, name)


def _own(value: TypedValue, name: str, depth: int) -> TypedValue | Unavailable | None:
    """None: no such member."""
    table = value.world.table
    record = table.stripped(value.type)
    if isinstance(record, Opaque | Cut) or not isinstance(record, Record) or depth > _DEPTH_MAX:
        return None
    scope, own = _split(name)
    if scope:
        return _of_base(value, record, scope, own, depth)
    found = table.member(value.type, name)
    if found is None and name.isdecimal():
        found = table.member(value.type, f"__{name}")
    if found is not None:
        return value.part(found.type, found.offset, None if found.bit_size is None else (found.bit_size, found.bit_offset))
    for attempt in (_part_of_tuple(value, name), _of_variants(value, record, name, depth), _of_virtual(value, record, name, depth)):
        if attempt is not None:
            return attempt
    return _static(value, record, name)


def _split(name: str) -> tuple[str, str]:
    """(`ns::Base<a::b>`, `x`)."""
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += {">": 1, "<": -1}.get(name[at], 0)
        if depth == 0 and name[at - 1 : at + 1] == "::":
            return name[: at - 1], name[at + 1 :]
    return "", name


def _part_of_tuple(value: TypedValue, name: str) -> TypedValue | Unavailable | None:
    form = value.form() if name.isdecimal() else None
    if not isinstance(form, Parts) or int(name) >= len(form.parts):
        return None
    type_, offset = form.parts[int(name)]
    return value.part(type_, offset)


def _of_base(value: TypedValue, record: Record, scope: str, name: str, depth: int) -> TypedValue | Unavailable | None:
    if _called(record.name, scope):
        return _own(value, name, depth + 1)
    for base in record.bases:
        part = _base(value, base)
        if isinstance(part, Unavailable):
            continue
        found = _own(part, f"{scope}::{name}", depth + 1)
        if found is not None:
            return found
    return None


def _of_virtual(value: TypedValue, record: Record, name: str, depth: int) -> TypedValue | Unavailable | None:
    """Bases at no fixed offset are not among the table's members."""
    for base in record.bases:
        part = _base(value, base)
        if isinstance(part, Unavailable):
            if base.offset is None and value.world.table.member(base.type, name) is not None:
                return part
            continue
        found = _own(part, name, depth + 1)
        if found is not None:
            return found
    return None


def _base(value: TypedValue, base: Base) -> TypedValue | Unavailable:
    """Itanium C++ ABI §2.5: a virtual base's offset stands in the vtable."""
    if base.offset is not None:
        return value.part(base.type, base.offset)
    if base.slot is None or value.at is None:
        return Unavailable(f"where its base `{value.world.name(base.type)}` is, is not known")
    vtable = value.world.read(value.at, 8)
    if isinstance(vtable, Unavailable):
        return vtable
    slot = value.world.read(int.from_bytes(vtable, "little") + base.slot, 8)
    if isinstance(slot, Unavailable):
        return Unavailable(f"its vtable pointer is no pointer to a vtable: {slot.reason}")
    return value.part(base.type, int.from_bytes(slot, "little", signed=True))


def _called(full: str, wanted: str) -> bool:
    plain = full.removeprefix("struct ").removeprefix("class ").removeprefix("union ")
    return wanted in (full, plain) or plain.endswith(f"::{wanted}")


def _of_variants(value: TypedValue, record: Record, name: str, depth: int) -> TypedValue | Unavailable | None:
    """`shape.Circle` of a Rust enum, and the active variant's own members: `shape.0`; `v.int` of a std::variant."""
    part = record.variant_part
    if part is None:
        return _of_choice(value, name)
    active = active_members(value, part)
    if isinstance(active, Unavailable):
        return active
    every = [one for variant in part.variants for one in variant.members]
    for one in active:
        if one.name == name:
            return value.part(one.type, one.offset)
    if any(one.name == name for one in every):
        return Unavailable(f"it is `{active[0].name if active else '?'}` now, not `{name}`")
    for one in active:
        inner = value.part(one.type, one.offset)
        if not isinstance(inner, Unavailable) and (found := _own(inner, name, depth + 1)) is not None:
            return found
    return None


def active_members(value: TypedValue, part: VariantPart) -> tuple[Member, ...] | Unavailable:
    tag = part.discriminant
    if tag is None:
        return part.variants[0].members if part.variants else ()
    size = value.world.table.size(tag.type) or 0
    number = numbers.number_at(value, Number(tag.offset, size))
    if isinstance(number, Unavailable):
        return number
    both = (number, number - (1 << 8 * size))  # values may be written signed
    rest: tuple[Member, ...] = ()
    for variant in part.variants:
        if variant.values is None:
            rest = variant.members
        elif any(low <= one <= high for low, high in variant.values for one in both):
            return variant.members
    return rest


def _of_choice(value: TypedValue, name: str) -> TypedValue | Unavailable | None:
    form = value.form()
    if not isinstance(form, Choice):
        return None
    names = [value.world.name(one) for one in form.types]
    if name not in names and not (name.isdecimal() and int(name) < len(names)):
        return None
    wanted = names.index(name) if name in names else int(name)
    index = numbers.number_at(value, form.index)
    if isinstance(index, Unavailable):
        return index
    if index != wanted:
        return Unavailable(f"it holds `{names[index]}` now, not `{names[wanted]}`" if index < len(names) else "it holds no value now")
    return value.part(form.types[wanted], form.offset)


def _static(value: TypedValue, record: Record, name: str) -> TypedValue | Unavailable | None:
    static = next((one for one in record.statics if one.name == name), None)
    if static is None:
        return None
    if static.constant is None:
        return Unavailable(f"`{name}` is static: write `{record.name}::{name}`")
    size = value.world.table.size(static.type) or 0
    held = static.constant if isinstance(static.constant, bytes) else (static.constant % (1 << 8 * max(1, size))).to_bytes(max(1, size), "little")
    return type(value)(value.world, static.type, None, held)


def _nothing(value: TypedValue, name: str) -> Unavailable:
    record = value.world.table.stripped(value.type)
    if isinstance(record, Opaque):
        return Unavailable(f"`{value.type_name}` is only declared where debug info tells of it: its members are not known")
    if isinstance(record, Cut):
        return Unavailable("its type was left out: a limit on the types of one request was reached")
    if not isinstance(record, Record):
        return Unavailable(f"`{value.type_name}` has no members")
    known = _names(value.world.table, value.type, record)
    near = difflib.get_close_matches(name, known, _NEAR, 0.5) or known[:_NEAR]
    listed = ", ".join(f"`{one}`" for one in near)
    return Unavailable(f"`{value.type_name}` has no member `{name}`" + (f"; there is {listed}" if listed else ""))


def _names(table: TypeTable, number: TypeId, record: Record) -> list[str]:
    variants = record.variant_part.variants if record.variant_part else ()
    return [*(found.name for found in table.members(number)), *(one.name for variant in variants for one in variant.members)]
