"""What Rust's types say that those of no other language do: which variant bytes are, fat pointers, tuples and newtypes. Pure: types only.

Facts: rustc's debug info (rustc_codegen_llvm, debuginfo/metadata). Fields of tuples and tuple structs are `__0`, `__1` …; `&[T]` is a record {data_ptr,
length}, `&dyn Trait` one of {pointer, vtable}; an enum with payload is a record with a variant part, of one member for each variant, whose type is a
record of the variant's fields that counts its offsets from the enum's start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from strobe.model.type_nodes import Array, Integer, Member, Pointer, Record, TypeId, Unspecified, Variant, VariantPart
from strobe.model.types import TypeTable
from strobe.values.forms import Erased, Form, Hidden, Inner, Number, Owner, Parts, Sequence, Text
from strobe.values.rust_counted import ENDED_TEXTS, TEXTS
from strobe.values.rust_std import std_form

_PHANTOM: Final = "core::marker::PhantomData<"
_FIELD: Final = re.compile(r"__\d+")
_CAPTURED: Final = re.compile(r"^_ref__(?=.)")
_POINTEE: Final = re.compile(r"&mut |&|\*const |\*mut |alloc::boxed::Box<(?=.*>$)")
_NESTING_MAX: Final = 16
OPTION: Final = "core::option::Option<"
TRANSPARENT: Final = ("alloc::borrow::Cow<",)  # whose variant says nothing that their user asks for


def fields(table: TypeTable, record: Record) -> tuple[Member, ...]:
    """Without markers, which hold nothing."""
    return tuple(member for member in record.members if not table[member.type].name.startswith(_PHANTOM))


def form(table: TypeTable, number: TypeId) -> Form | None:
    """Of a record that has no formatter of its own; None: an object of its fields, or an enum."""
    record = table.stripped(number)
    if not isinstance(record, Record) or record.variant_part is not None or record.form == "union":
        return None
    known = fat_pointer(table, record) or std_form(table, number)
    if known is not None:
        return known
    members = fields(table, record)
    if not members:
        return Hidden(last_name(record.name))
    if not all(_FIELD.fullmatch(member.name) for member in members):
        return None
    if len(members) == 1 and not record.name.startswith("("):  # `struct Meters(f64)`; `(f64,)` stays a tuple
        return Inner(members[0].type, members[0].offset)
    return Parts(tuple((member.type, member.offset) for member in members))


def plain(table: TypeTable, record: Record) -> Record:
    """With the fields that are shown, under the names that its user knows: what a closure borrows is called as the variable is."""
    return replace(record, members=tuple(replace(member, name=_CAPTURED.sub("", member.name)) for member in fields(table, record)))


def last_name(name: str) -> str:
    """`Unit` of `shop::Unit<a::b>`."""
    depth, start, end = 0, 0, len(name)
    for at, letter in enumerate(name):
        if letter in "<({[":
            end = at if depth == 0 and letter == "<" and at > start else end
            depth += 1
        elif letter in ">)}]" and name[at - 1 : at] != "-":
            depth -= 1
        elif depth == 0 and letter == ":":
            start, end = at + 1, len(name)
    return name[start:end] or name


@dataclass(frozen=True, slots=True)
class Case:
    """One variant. `values`: ranges of the discriminant as an unsigned number; None: all that no other case has. `payload`: a record of its fields."""

    name: str
    values: tuple[tuple[int, int], ...] | None
    payload: Member | None


@dataclass(frozen=True, slots=True)
class Cases:
    """The discriminant has `size` bytes at `offset`; 0: nothing tells variants apart, and there is one at most."""

    offset: int
    size: int
    cases: tuple[Case, ...]

    def of(self, value: int) -> Case | None:
        """The variant that a discriminant, read as an unsigned number, means."""
        other = None
        for case in self.cases:
            if case.values is None:
                other = case
            elif any(low <= value <= high for low, high in case.values):
                return case
        return other


def cases_of(table: TypeTable, part: VariantPart) -> Cases:
    told_by = part.discriminant
    size = table.size(told_by.type) if told_by is not None else None
    if told_by is None or not size or size > 16:
        there = [variant for variant in part.variants if not any(is_uninhabited(table, one.type) for one in variant.members)]
        return Cases(0, 0, tuple(_case(table, variant, 0) for variant in there[:1]))
    return Cases(told_by.offset, size, tuple(_case(table, variant, size) for variant in part.variants))


def _case(table: TypeTable, variant: Variant, size: int) -> Case:
    payload = variant.members[0] if variant.members else None
    values = None if variant.values is None or not size else tuple(_unsigned(low, high, size) for low, high in variant.values)
    name = "" if payload is None else payload.name
    if payload is not None and (not name or name.isdigit()):  # of coroutines: numbers, and the type's name says more
        name = last_name(table[payload.type].name)
    return Case(name or "?", values, payload)


def _unsigned(low: int, high: int, size: int) -> tuple[int, int]:
    full = 1 << 8 * size
    return (low % full, high % full) if (low < 0) == (high < 0) else (0, full - 1)  # rustc writes single values only


def is_uninhabited(table: TypeTable, number: TypeId, nesting: int = 0) -> bool:
    """Whether no value of the type can be: `!`, enums without variants, and all that needs one of these."""
    node = table.stripped(number)
    if isinstance(node, Unspecified):
        return node.name == "!"
    if isinstance(node, Array):
        return node.counts != (0,) and nesting < _NESTING_MAX and is_uninhabited(table, node.element, nesting + 1)
    if not isinstance(node, Record) or node.form == "union" or nesting > _NESTING_MAX:
        return False
    if any(is_uninhabited(table, member.type, nesting + 1) for member in node.members):
        return True
    part = node.variant_part
    return part is not None and all(any(is_uninhabited(table, one.type, nesting + 1) for one in variant.members) for variant in part.variants)


def fat_pointer(table: TypeTable, record: Record) -> Form | None:
    """The form of `&str`, `&[T]`, `Box<[T]>`, `*const [T]`, `&dyn Trait` …; None for what is none of these."""
    members = {member.name: member for member in record.members}
    if members.keys() == {"pointer", "vtable"}:
        return Erased("dyn", members["vtable"].offset, members["pointer"].offset, boxed=True, trait=record.name)
    if members.keys() != {"data_ptr", "length"}:
        return None
    data, length = members["data_ptr"], members["length"]
    target = table.stripped(data.type)
    if not isinstance(target, Pointer) or not isinstance(table.stripped(length.type), Integer):
        return None
    return _counted(table, record.name, data, target.target, Number(length.offset, table.size(length.type) or 8))


def _counted(table: TypeTable, name: str, data: Member, target: TypeId, length: Number) -> Form | None:
    match = _POINTEE.match(name)
    to = "" if match is None else name[match.end() : -1 if match[0].endswith("<") else None]
    if to in TEXTS:
        return Text(data.offset, length)
    if to in ENDED_TEXTS:
        return Text(data.offset, replace(length, plus=-1))
    stride = table.size(target)
    if not to.startswith("[") or stride is None:
        return Inner(data.type, data.offset)  # a struct with a tail of that many elements: without them
    if name.startswith("*"):
        return Owner(data.offset, target, length=length)
    return Sequence(data.offset, target, stride, length)
