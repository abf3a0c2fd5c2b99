"""Watches put into capture plans. Pure: what variables there are, and of what types, is told by debug info's owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from strobe.expression import Argument, Chain, Name, Result
from strobe.lanes.layout import WalkFlag, WalkOp
from strobe.model.probe import Plan, WatchValue
from strobe.model.type_nodes import Float, Integer, Pointer, TypeId
from strobe.model.types import FIRST_NODES, TypeTable
from strobe.model.watch import Watch
from strobe.values.bundle import Bundle
from strobe.values.plan_parts import Extra, with_walks
from strobe.values.registry import Formatters
from strobe.values.walk_steps import NOTHING, Step
from strobe.values.walks import WalkCompiler
from strobe.values.watch_walks import Unwatchable, hops, program

ELEMENTS: Final = 16
TEXT: Final = 256
# SPEC §4: types that every program has, whatever its debug info says
BASIC: Final = TypeTable(
    (
        *FIRST_NODES,
        *(Integer(f"{'iu'[not signed]}{8 * size}", "", size, signed) for size in (1, 2, 4, 8) for signed in (True, False)),
        Float("f32", "", 4, "single"),
        Float("f64", "", 8, "double"),
        Pointer("pointer", "", 8, 0),
    )
)
BASIC_NUMBERS: Final = {node.name: number for number, node in enumerate(BASIC.nodes) if number >= len(FIRST_NODES)}


@dataclass(frozen=True, slots=True)
class Root:
    """Where a watch begins: a variable at `address` of the running process."""

    name: str
    address: int
    type: TypeId
    bundle: Bundle
    key: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """`path` None: the root itself. `root` None: it begins at an argument, or at nothing that was found (`problem`)."""

    watch: Watch
    path: Chain | None
    root: Root | None
    problem: str | None = None

    def described(self, forms: Formatters) -> tuple[int | None, int | None, str | None]:
        """(address of the root, size of the value, its type's name). Raises Unwatchable."""
        if self.root is None:
            return None, None, None
        table = self.root.bundle.table
        end = self.root.type if self.path is None else hops(WalkCompiler(table, forms), self.root.type, self.path)[-1].type
        return self.root.address, table.size(end), table[end].name


def watched(plan: Plan, watches: Sequence[Resolved], own: Bundle | None, forms: Formatters, depth: int) -> tuple[Plan, dict[str, str]]:
    """(the plan that reads these too, why those that it can't read are left out, by label). `own`: the types that the plan's values count in."""
    values: list[WatchValue] = []
    problems: dict[str, str] = {}
    for one in watches:
        try:
            plan, value = _added(plan, one, own, forms, depth)
            values.append(value)
        except Unwatchable as reason:
            problems[one.watch.label] = str(reason)
    return plan.model_copy(update={"watches": values}), problems


def _added(plan: Plan, one: Resolved, own: Bundle | None, forms: Formatters, depth: int) -> tuple[Plan, WatchValue]:
    argument = _argument(plan, one.path)
    if argument is not None:
        return _argument_added(plan, one, argument, own, forms, depth)
    if one.root is None:
        raise Unwatchable(one.problem or f"`{one.watch.expr}` begins at no variable, and this function has no such argument")
    root = one.root
    compiler = WalkCompiler(root.bundle.table, forms, ELEMENTS, TEXT)
    steps, reach = _steps(compiler, root.type, one.path, depth)
    at = Step(WalkOp.AT, size=reach, target=compiler.anonymous(steps) if steps else NOTHING, flags=WalkFlag(0), a=root.address)
    made = _with(plan, compiler, [at], 0, entry_only=False)
    return made, WatchValue(label=one.watch.label, expr=one.watch.expr if one.path else None, types=root.key, type=root.type, address=root.address)


def _argument_added(plan: Plan, one: Resolved, number: int, own: Bundle | None, forms: Formatters, depth: int) -> tuple[Plan, WatchValue]:
    value = plan.arguments[number]
    if own is None or value.type is None or plan.types is None:
        raise Unwatchable(f"`{value.name}` is not captured by its type here")
    compiler = WalkCompiler(own.table, forms, ELEMENTS, TEXT)
    steps, reach = _steps(compiler, value.type, one.path, depth)
    if value.home == "pointed":
        steps = [Step(WalkOp.POINT, 0, reach, compiler.anonymous(steps) if steps else NOTHING)]
    made = _with(plan, compiler, steps, value.offset, entry_only=True) if steps else plan
    return made, WatchValue(label=one.watch.label, expr=one.watch.expr, types=plan.types, type=value.type, argument=number)


def _steps(compiler: WalkCompiler, root: TypeId, path: Chain | None, depth: int) -> tuple[list[Step], int]:
    """(steps on the root object, bytes of it that they need)."""
    if path is None:
        size = compiler.table.size(root)
        if not size:
            raise Unwatchable(f"`{compiler.table[root].name}` has no size")
        return compiler.object(root, 0, depth), size
    way = hops(compiler, root, path)
    return program(compiler, way, depth), way[0].needs


def _with(plan: Plan, compiler: WalkCompiler, steps: list[Step], dst: int, *, entry_only: bool) -> Plan:
    start = compiler.place(steps)
    made = with_walks(plan, compiler.section(), [Extra(start, dst, entry_only)])
    if made is None:
        raise Unwatchable("this function's arguments leave no room for it")
    return made


def _argument(plan: Plan, path: Chain | None) -> int | None:
    """The argument that a path begins at; a name is an argument's before it is a variable's."""
    if path is None:
        return None
    root = path.root
    if isinstance(root, Result):
        raise Unwatchable("a watch can't begin at what the call returned; its value is in the exit event")
    if isinstance(root, Argument) and isinstance(root.key, int):
        if root.key >= len(plan.arguments):
            raise Unwatchable(f"this function has {len(plan.arguments)} arguments")
        return root.key
    name = root.key if isinstance(root, Argument) else root.text if isinstance(root, Name) else None
    found = next((number for number, value in enumerate(plan.arguments) if value.name == name), None)
    if found is None and isinstance(root, Argument):
        raise Unwatchable(f"this function has no argument `{name}`")
    return found
