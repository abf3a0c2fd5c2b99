"""Rust's own wrappers, as its debug info describes them: Option, and what thread_local! makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strobe.expression import Unavailable
from strobe.model.type_nodes import Enum, Record
from strobe.values.typed_members import active_members

if TYPE_CHECKING:  # the value's own file needs this one
    from strobe.values.typed import TypedValue

_OPTION: Final = "core::option::Option<"
_STORAGE: Final = "std::sys::thread_local::"
_WRAPPERS_MAX: Final = 8
_HOLDING: Final = frozenset({"Initial", "Alive"})


def is_option(value: TypedValue) -> bool:
    node = value.world.table.stripped(value.type)
    return isinstance(node, Record) and node.variant_part is not None and node.name.startswith(_OPTION)


def of_option(value: TypedValue) -> TypedValue | Unavailable | None:
    """What is in it; None: nothing."""
    node = value.world.table.stripped(value.type)
    assert isinstance(node, Record) and node.variant_part is not None
    active = active_members(value, node.variant_part)
    if isinstance(active, Unavailable) or not active or active[0].name != "Some":
        return active if isinstance(active, Unavailable) else None
    some = value.part(active[0].type, active[0].offset)
    return some if isinstance(some, Unavailable) else some.member("__0")


def of_storage(value: TypedValue) -> TypedValue | Unavailable:
    """The user's own value in what a thread_local! variable is; any other value itself."""
    table = value.world.table
    node = table.stripped(value.type)
    if not isinstance(node, Record) or not node.name.startswith(_STORAGE) or "::Storage<" not in node.name:
        return value
    wanted = next((one.type for one in node.template if one.name == "T"), None)
    held = table.member(value.type, "value") or table.member(value.type, "val")
    state = value.member("state")
    if wanted is None or held is None or isinstance(state, Unavailable):
        return value
    name = _variant(state)
    if name is not None and name not in _HOLDING:
        return Unavailable("the thread has not used the thread-local variable yet" if name == "Uninitialized" else "the thread has given it up already")
    return value.part(wanted, held.offset)


def _variant(value: TypedValue) -> str | None:
    """The name of what an enum inside of cells is now; None where it cannot be told."""
    for _ in range(_WRAPPERS_MAX):
        node = value.world.table.stripped(value.type)
        if isinstance(node, Enum):
            raw = value.raw()
            number = None if isinstance(raw, Unavailable) else int.from_bytes(raw, "little")
            return next((name for name, one in node.enumerators if one == number), None)
        if not isinstance(node, Record):
            return None
        if node.variant_part is not None:
            active = active_members(value, node.variant_part)
            return active[0].name if not isinstance(active, Unavailable) and active else None
        inner = value.member("value")
        if isinstance(inner, Unavailable):
            return None
        value = inner
    return None
