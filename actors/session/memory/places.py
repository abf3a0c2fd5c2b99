"""From what debug info says about names to values in the process."""

from __future__ import annotations

from actors.session.memory.debug_info import Known
from actors.session.memory.live import LiveMemory
from actors.session.memory.thread_locals import ThreadLocals
from strobe.expression import Unavailable
from strobe.model.type_nodes import VOID
from strobe.protocol.indexer import FoundVariable
from strobe.values.typed import TypedValue, value_at
from strobe.values.typed_rust import of_storage
from strobe.values.typed_world import World

_LISTED: int = 4
_PLACED = ("address", "thread_local", "constant")


class Places:
    """Of one look. `threads`: the thread-locals' owner for each name, by default `main`."""

    def __init__(self, known: Known, world: World, memory: LiveMemory, locals_: ThreadLocals, tid: int) -> None:
        self._known = known
        self._world = world
        self._memory = memory
        self._locals = locals_
        self._tid = tid

    def variables(self, typed_by_caller: frozenset[str]) -> dict[str, TypedValue | Unavailable]:
        """By name as written; names that are nowhere are left out. `typed_by_caller`: those that need no type of their own."""
        found: dict[str, TypedValue | Unavailable] = {}
        for name, candidates in self._known.reply.variables.items():
            chosen = choose(name, candidates)
            found[name] = chosen if isinstance(chosen, Unavailable) else self._value(chosen, name in typed_by_caller)
        for name, functions in self._known.reply.locals_of.items():
            if name not in found:
                of = ", ".join(functions)
                found[name] = Unavailable(f"`{name}` is a local variable (of {of}): it exists only while that runs, and is read where it is paused")
        return found

    def _value(self, found: FoundVariable, typed_by_caller: bool) -> TypedValue | Unavailable:
        if found.kind == "constant":
            return self._constant(found)
        if found.kind not in _PLACED or not isinstance(found.value, int):
            why = "was optimised out, or is declared and defined nowhere in what is loaded" if found.kind == "removed" else "is not in one place all the time"
            return Unavailable(f"`{found.name}` {why}")
        module = self._known.modules.get(found.module)
        if module is None:
            return Unavailable(f"{found.module} is not loaded any more")
        if found.type is None and not typed_by_caller:
            told = f" of {found.size} bytes" if found.size else ""
            return Unavailable(f"`{found.name}` is known by its symbol alone{told}: debug info says nothing of its type. Give `type`")
        if found.kind == "address":
            address: int | Unavailable = module.bias + found.value
        else:
            address = self._locals.address(self._memory, module, found.module == self._known.program, found.value, self._tid, self._known.layout)
        if isinstance(address, Unavailable):
            return address
        if found.type is None:
            return TypedValue(self._world, VOID, address)
        value = value_at(self._world, found.type, address)
        return of_storage(value) if found.kind == "thread_local" and isinstance(value, TypedValue) else value

    def _constant(self, found: FoundVariable) -> TypedValue | Unavailable:
        size = None if found.type is None else self._world.table.size(found.type)
        if found.type is None or size is None or found.value is None:
            return Unavailable(f"`{found.name}` is a constant of no known size")
        data = found.value if isinstance(found.value, bytes) else (found.value % (1 << (8 * size))).to_bytes(size, "little")
        return TypedValue(self._world, found.type, None, data)


def choose(name: str, candidates: list[FoundVariable]) -> FoundVariable | Unavailable:
    """The one that is meant: of exactly that name before others, global before a function's own, the program's before a library's."""
    placed = [one for one in candidates if one.kind in _PLACED] or candidates
    plain = name.removeprefix("::")
    order: dict[str, int] = {}
    for one in placed:
        order.setdefault(one.module, len(order))

    def rank(one: FoundVariable) -> tuple[bool, bool, int]:
        return one.name != plain, one.in_function, order[one.module]

    best = min(map(rank, placed))
    distinct = list({(one.module, one.kind, one.value): one for one in reversed(placed) if rank(one) == best}.values())[::-1]
    if len(distinct) == 1:
        return distinct[0]
    shown = "; ".join(_told(one, distinct) for one in distinct[:_LISTED])
    return Unavailable(f"`{name}` may be {len(distinct)} variables: {shown}{' …' if len(distinct) > _LISTED else ''}")


def _told(one: FoundVariable, all_: list[FoundVariable]) -> str:
    """How to name this one alone."""
    if sum(other.name == one.name for other in all_) == 1:
        return f"`{one.name}`"
    return f"`{one.file.rpartition('/')[2]}::{one.name}` (in backquotes)" if one.file else f"`{one.name}` of {one.module}"
