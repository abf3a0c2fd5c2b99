"""Elements of containers by number or key, and texts, by the form of their type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strobe.expression import Unavailable
from strobe.model.type_nodes import Integer, TypeId
from strobe.values.forms import Bits, Blocks, BTree, Form, Nodes, Owner, Parts, Ring, Sequence, Swiss, Text, Tree
from strobe.values.memory import Missing
from strobe.values.typed_elements import Element, block_address, elements, pointer_at, ring_address, sequence_count, word
from strobe.values.typed_numbers import calculated, number_at
from strobe.values.typed_scalars import BASIC, TEXT_BYTES_MAX, decoded, text_at, text_end
from strobe.values.typed_world import ADDRESSES

if TYPE_CHECKING:  # the value's own file needs this one
    from strobe.values.typed import TypedValue

_CHARACTERS: Final = {
    1: Integer("char", "c++", 1, True, "char"),
    2: Integer("char16_t", "c++", 2, False, "utf"),
    4: Integer("char32_t", "c++", 4, False, "utf"),
}
_CONTAINERS: Final = (Sequence, Bits, Nodes, Tree, Blocks, Ring, Swiss, BTree, Text)


def index(value: TypedValue, key: int | str) -> TypedValue | Unavailable:
    inner = value.inner()
    if inner is None:
        return Unavailable("it holds no value now")
    if isinstance(inner, Unavailable):
        return inner
    if inner is not value:
        return inner.index(key)
    form = value.form()
    if isinstance(form, Nodes | Tree | Swiss | BTree):
        return _by_key(value, form, key) if form.shown == "map" else _by_number(value, form, key)
    if isinstance(form, Owner):
        return _owned(value, form, key)
    if form is None or not isinstance(form, Sequence | Bits | Blocks | Ring | Text | Parts):
        return Unavailable(f"`{value.type_name}` has no elements")
    return Unavailable(f"`{value.type_name}` is indexed with a number") if isinstance(key, str) else _nth(value, form, key)


def text(value: TypedValue, form: Text) -> str | Unavailable:
    """Up to TEXT_BYTES_MAX bytes of it."""
    start = _text_start(value, form)
    if isinstance(start, Unavailable):
        return start
    length = None if form.length is None else number_at(value, form.length)
    if isinstance(length, Unavailable):
        return length
    if length is None:
        if start is None:
            held = (value.held or b"")[form.data :]
            return decoded(held[: text_end(held, form.unit)], form.unit)
        found = text_at(value.world.memory, start, form.unit)
        return Unavailable(f"the text is not whole: {found}") if isinstance(found, Missing) else found
    size = min(length * form.unit, TEXT_BYTES_MAX)
    if start is None:
        return decoded((value.held or b"")[form.data : form.data + size], form.unit)
    raw = value.world.read(start, size)
    return raw if isinstance(raw, Unavailable) else decoded(raw, form.unit)


def _text_start(value: TypedValue, form: Text) -> int | Unavailable | None:
    """None: in the bytes in hand."""
    if form.inline:
        return None if value.at is None else value.at + form.data
    start = word(value, form.data)
    return start if isinstance(start, Unavailable) else start + form.skip


def is_container(form: Form | None) -> bool:
    return isinstance(form, _CONTAINERS)


def is_expired(value: TypedValue, form: Owner) -> bool:
    """No owner of the object is left."""
    if form.control is None or not form.counts:
        return False
    control, owners = word(value, form.control), form.counts[0][1]
    if isinstance(control, Unavailable) or control == 0:
        return False
    raw = value.world.read(control + owners.offset, owners.size)
    return not isinstance(raw, Unavailable) and calculated(owners, raw) == 0


def _nth(value: TypedValue, form: Sequence | Bits | Blocks | Ring | Text | Parts, key: int) -> TypedValue | Unavailable:
    match form:
        case Sequence():
            count = sequence_count(value, form)
            if isinstance(count, Unavailable) or not 0 <= key < count:
                return count if isinstance(count, Unavailable) else _outside(key, count)
            return _placed(value, form.element, form.data, form.inline, key * form.stride)
        case Blocks() | Ring():
            at = block_address(value, form, key) if isinstance(form, Blocks) else ring_address(value, form, key)
            return at if isinstance(at, Unavailable) else value.world_value(form.element, at % ADDRESSES)
        case Bits():
            return _bit(value, form, key)
        case Text():
            return _character(value, form, key)
        case Parts():
            if not 0 <= key < len(form.parts):
                return _outside(key, len(form.parts))
            return value.part(*form.parts[key])


def _placed(value: TypedValue, element: TypeId, data: int, inline: bool, offset: int) -> TypedValue | Unavailable:
    if inline:
        return value.part(element, data + offset)
    start = word(value, data)
    return start if isinstance(start, Unavailable) else value.world_value(element, (start + offset) % ADDRESSES)


def _outside(key: int, count: int) -> Unavailable:
    return Unavailable(f"index {key} is outside: it has {count:,} elements")


def _bit(value: TypedValue, form: Bits, key: int) -> TypedValue | Unavailable:
    count = _bits_count(value, form)
    if isinstance(count, Unavailable):
        return count
    if not 0 <= key < count:
        return _outside(key, count)
    kind, bits = value.world.add(BASIC["bool"]), (1, key % 8)
    if form.inline:
        return value.part(kind, form.data + key // 8, bits)
    start = word(value, form.data)
    return start if isinstance(start, Unavailable) else value.world_value(kind, (start + key // 8) % ADDRESSES, bits)


def _bits_count(value: TypedValue, form: Bits) -> int | Unavailable:
    if form.count is not None:
        return number_at(value, form.count)
    start, end = word(value, form.data), word(value, form.end or 0)
    last = number_at(value, form.end_bit) if form.end_bit is not None else 0
    for number in (start, end, last):
        if isinstance(number, Unavailable):
            return number
    assert isinstance(start, int) and isinstance(end, int) and isinstance(last, int)
    return max(0, end - start) * 8 + last


def _character(value: TypedValue, form: Text, key: int) -> TypedValue | Unavailable:
    start = _text_start(value, form)
    length = None if form.length is None else number_at(value, form.length)
    if isinstance(start, Unavailable) or isinstance(length, Unavailable):
        return start if isinstance(start, Unavailable) else length if isinstance(length, Unavailable) else _outside(key, 0)
    if key < 0 or (length is not None and key >= length):
        return _outside(key, length or 0)
    kind = value.world.add(_CHARACTERS[form.unit])
    return value.part(kind, form.data + key * form.unit) if start is None else value.world_value(kind, (start + key * form.unit) % ADDRESSES)


def _owned(value: TypedValue, form: Owner, key: int | str) -> TypedValue | Unavailable:
    """An element of the array, or of the container, that it owns."""
    if isinstance(key, str) or is_container(value.world.form(form.target)):
        target = value.dereference()
        return target if isinstance(target, Unavailable) else target.index(key)
    if form.length is not None:
        length = number_at(value, form.length)
        if isinstance(length, Unavailable) or not 0 <= key < length:
            return length if isinstance(length, Unavailable) else _outside(key, length)
    address = value.pointer()
    if isinstance(address, Unavailable):
        return address
    if address == 0:
        return Unavailable("the pointer is null")
    return value.world_value(form.target, (address + key * value.world.stride(form.target)) % ADDRESSES)


def _by_number(value: TypedValue, form: Nodes | Tree | Swiss | BTree, key: int | str) -> TypedValue | Unavailable:
    if isinstance(key, str):
        return Unavailable(f"`{value.type_name}` is indexed with a number")
    count = 0
    for element in elements(value, form):
        if isinstance(element, Unavailable):
            return element
        if count == key:
            kind, at = element.key or (element.type, element.address)
            return value.world_value(kind, at)
        count += 1
    return _outside(key, count)


def _by_key(value: TypedValue, form: Nodes | Tree | Swiss | BTree, key: int | str) -> TypedValue | Unavailable:
    """The value of a map's key."""
    for element in elements(value, form):
        if isinstance(element, Unavailable):
            return element
        pair = _pair(value, element)
        if isinstance(pair, Unavailable):
            return pair
        found, mapped = pair
        if _is_key(found, key):
            return mapped
    shown = f'"{key}"' if isinstance(key, str) else key
    return Unavailable(f"it has no key {shown}")


def _pair(value: TypedValue, element: Element) -> tuple[TypedValue, TypedValue] | Unavailable:
    if element.key is not None:
        both = [value.world_value(*element.key), value.world_value(element.type, element.address)]
    else:
        whole = value.world_value(element.type, element.address)
        if isinstance(whole, Unavailable):
            return whole
        form = whole.form()
        if isinstance(form, Parts) and len(form.parts) == 2:
            both = [whole.part(*part) for part in form.parts]
        else:
            first, second = ("first", "second") if value.world.table.member(whole.type, "first") else ("__0", "__1")
            both = [whole.member(first), whole.member(second)]
    key, mapped = both
    if isinstance(key, Unavailable):
        return key
    return mapped if isinstance(mapped, Unavailable) else (key, mapped)


def _is_key(found: TypedValue, key: int | str) -> bool:
    if isinstance(key, int):
        scalar = found.scalar()
        return scalar is not None and not isinstance(scalar, Unavailable) and scalar.value == key
    if found.text() == key:
        return True
    number = found.enumerator(key)
    return number is not None and _is_key(found, number)


__all__ = ["index", "is_container", "pointer_at", "text", "word"]
