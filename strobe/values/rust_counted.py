"""Forms of Rust's Rc, Arc and their Weak: pointers to {strong, weak, value}."""

from __future__ import annotations

from dataclasses import replace

from strobe.model.type_nodes import Pointer
from strobe.values.forms import Erased, Form, Number, Owner, Text
from strobe.values.rust_parts import Part

Counts = tuple[tuple[str, Number], ...]
TEXTS = frozenset({"str", "std::path::Path", "std::ffi::os_str::OsStr"})
ENDED_TEXTS = frozenset({"core::ffi::c_str::CStr", "std::ffi::c_str::CStr"})


def counted(part: Part, argument: str) -> Form | None:
    """`argument`: what it is generic over, as text: `str` and `[u8]` have the same type argument."""
    pointer = part.path("ptr")
    pointer = None if pointer is None else pointer.unwrapped()
    if pointer is None:
        return None
    if isinstance(pointer.node, Pointer):
        return _thin(pointer, Part(part.table, pointer.node.target))
    data, length, vtable = pointer.path("data_ptr", "pointer"), pointer.member("length"), pointer.member("vtable")
    block = None if data is None else data.pointer()
    if data is None or block is None:
        return None
    value, counts = _value(block[1]), _counts(block[1])
    if value is None or not counts:
        return None
    if vtable is not None:
        return Erased("dyn", vtable.offset, data.offset, boxed=True, skip=value.offset, counts=counts, trait=argument)
    number = None if length is None else length.number()
    return None if number is None else _of_length(data, value, number, argument, counts)


def _of_length(data: Part, value: Part, number: Number, argument: str, counts: Counts) -> Form | None:
    if argument in TEXTS:
        return Text(data.offset, number, skip=value.offset)
    if argument in ENDED_TEXTS:
        return Text(data.offset, replace(number, plus=-1), skip=value.offset)
    if not argument.startswith("["):
        return None  # a struct with a tail
    return Owner(data.offset, value.type, value.offset, data.offset, counts, number)


def _thin(pointer: Part, block: Part) -> Form | None:
    value, counts = _value(block), _counts(block)
    if value is None or not counts:
        return None
    return Owner(pointer.offset, value.type, value.offset, pointer.offset, counts)


def _value(block: Part) -> Part | None:
    return block.path("value", "data")


def _counts(block: Part) -> Counts:
    """As `strong_count` and `weak_count` say them: all owners together hold one weak count."""
    strong, weak = (None if found is None else found.number() for found in (block.member("strong"), block.member("weak")))
    return () if strong is None or weak is None else (("strong", strong), ("weak", replace(weak, plus=-1)))
