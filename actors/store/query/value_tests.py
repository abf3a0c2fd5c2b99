"""A ValueFilter resolved for each function that it can mean: tests of columns, in SQL, and tests of what only the payload holds."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from actors.store.query.bit_ranges import bounds_of, whole
from actors.store.query.compare import Condition, condition
from actors.store.query.path_types import PathTypes, Problem
from actors.store.query.typed_values import TypedValues
from actors.store.query.value_path import Path, parse_path, parse_result_path, root_of
from actors.store.scalars import Shape, result_of, shape_of
from strobe.errors import Code, StrobeError
from strobe.expression import Step
from strobe.model.probe import Hook, Value
from strobe.model.query import ValueFilter
from strobe.model.type_nodes import Pointer
from strobe.values.bundle import Bundle


@dataclass(frozen=True, slots=True)
class ValueTest:
    """Calls of `hooks` whose value at `position` (None: the result) meets `condition`."""

    hooks: tuple[int, ...]
    position: int | None
    condition: Condition


@dataclass(frozen=True, slots=True)
class DeepTest:
    """What `steps` lead to from a captured value. `position` None: the result."""

    position: int | None
    value: Value
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class DeepTests:
    """By hook id: one of them must meet `wanted`."""

    by_hook: dict[int, tuple[DeepTest, ...]]
    wanted: ValueFilter
    of_result: bool


@dataclass(frozen=True, slots=True)
class ValueTests:
    """`columns`, or `deep` and then `numbers`: those of the enters (of a result: exits) that met it, once they were looked for."""

    columns: tuple[ValueTest, ...]
    deep: DeepTests | None = None
    numbers: tuple[int, ...] = ()


def argument_tests(wanted: ValueFilter, hooks: Collection[Hook], typed: TypedValues) -> ValueTests:
    """Raises VALIDATION_ERROR when no function has what the path names."""
    path = None if wanted.name is None else parse_path(wanted.name, "argument.name")
    if path is not None and path.root is None:
        raise StrobeError(Code.VALIDATION_ERROR, f"argument.name {path.text!r} is about the result.", "Use returnValue for it.", value=path.text)
    resolving = _Resolving(wanted, typed, of_result=False)
    for hook in hooks:
        if path is None:
            for position, value in enumerate(hook.plan.arguments):
                resolving.add(hook, position, value, None)
        elif (root := root_of(hook, path)) is not None:
            resolving.add(hook, root[0], root[1], path)
    if path is not None and hooks and not resolving.any_has:
        raise resolving.refusal(path, [value.name for hook in hooks for value in hook.plan.arguments])
    return resolving.tests()


def result_tests(wanted: ValueFilter, hooks: Collection[Hook], typed: TypedValues) -> ValueTests:
    """Raises VALIDATION_ERROR when no function's result has what the path names."""
    path = None if wanted.name is None else parse_result_path(wanted.name, "returnValue.name")
    resolving = _Resolving(wanted, typed, of_result=True)
    for hook in hooks:
        if (value := result_of(hook.plan)) is not None:
            resolving.add(hook, None, value, path)
    if path is not None and path.steps and hooks and not resolving.any_has:
        raise resolving.refusal(path, [])
    return resolving.tests()


class _Resolving:
    def __init__(self, wanted: ValueFilter, typed: TypedValues, *, of_result: bool) -> None:
        self._wanted = wanted
        self._typed = typed
        self._of_result = of_result
        self._columns: list[tuple[int, int | None, Condition | None]] = []
        self._deep: dict[int, list[DeepTest]] = {}
        self._checkers: dict[str, PathTypes] = {}
        self._problems: list[Problem] = []
        self._untyped = False
        self.any_has = False

    def add(self, hook: Hook, position: int | None, value: Value, path: Path | None) -> None:
        bundle = None if value.type is None else self._typed.bundle(hook)
        steps = path.steps if path else ()
        if steps and not self._has(hook, value, bundle, steps):
            return
        self.any_has = True
        if not steps and _in_column(value, bundle, self._wanted):
            self._columns.append((hook.id, position, condition(value, self._wanted)))
        elif bundle is not None and value.type is not None:
            self._deep.setdefault(hook.id, []).append(DeepTest(position, value, steps))

    def _has(self, hook: Hook, value: Value, bundle: Bundle | None, steps: tuple[Step, ...]) -> bool:
        if bundle is None or value.type is None or value.type >= len(bundle.table):
            self._untyped = True
            return False
        checker = self._checkers.setdefault(hook.plan.types or "", PathTypes(bundle.table, self._typed.formatters))
        problem = checker.problem(value.type, steps)
        if problem is not None:
            self._problems.append(problem)
        return problem is None

    def tests(self) -> ValueTests:
        deep = DeepTests({hook: tuple(tests) for hook, tests in self._deep.items()}, self._wanted, self._of_result) if self._deep else None
        return ValueTests(_grouped(self._columns), deep)

    def refusal(self, path: Path, names: list[str]) -> StrobeError:
        if self._problems:
            problem = max(self._problems, key=lambda one: one.step)
            known = [name for one in self._problems if one.step == problem.step for name in one.names]
            key = path.steps[problem.step].key
            what = f"{path.text!r}: {problem.type_name} has no {_part(path, problem.step)}."
            return StrobeError(Code.VALIDATION_ERROR, what, _nearest(str(key), known), value=path.text)
        if self._untyped:
            what = f"{path.text!r}: the types of this value are not known."
            return StrobeError(
                Code.VALIDATION_ERROR, what, "Only functions with debug info have them; hooks are typed shortly after they are set.", value=path.text
            )
        what = f"{path.text!r}: no traced function that the other filters leave has {'a typed result' if self._of_result else f'an argument {path.root!r}'}."
        return StrobeError(Code.VALIDATION_ERROR, what, _nearest(str(path.root), names), value=path.text)


def _part(path: Path, step: int) -> str:
    kind, key = path.steps[step].kind, path.steps[step].key
    return "element [" + repr(key) + "]" if kind == "index" else "target: it is no pointer" if kind == "follow" else f"member {key!r}"


def _nearest(wrong: str, names: Iterable[str]) -> str:
    known = [name for name in dict.fromkeys(names) if name]
    near = difflib.get_close_matches(wrong, known, 3, 0.5)
    listed = ", ".join((near or known)[:8])
    return f"{'Nearest' if near else 'There is'}: {listed}." if listed else "Correct the path, or leave it out."


def _in_column(value: Value, bundle: Bundle | None, wanted: ValueFilter) -> bool:
    """The bits in the value's column tell. They do not of what is shown as more than its address."""
    if bundle is None or value.type is None or value.type >= len(bundle.table):
        return True
    if shape_of(value) is Shape.NONE or value.scalar == "opaque" or value.home == "pointed":
        return False
    node = bundle.table.stripped(value.type)
    if isinstance(node, Pointer) and node.form != "pointer":
        return False
    return value.scalar != "pointer" or (wanted.contains is None and all(whole(one) is not None for one in _compared(wanted)))


def _compared(wanted: ValueFilter) -> list[object]:
    given = [one for one in (wanted.equals, wanted.ne) if one is not None]
    return [*given, *(bound for _, bound in bounds_of(wanted))]


def _grouped(tests: list[tuple[int, int | None, Condition | None]]) -> tuple[ValueTest, ...]:
    groups: dict[tuple[int | None, Condition], list[int]] = {}
    for hook, position, found in tests:
        if found is not None:
            groups.setdefault((position, found), []).append(hook)
    return tuple(ValueTest(tuple(sorted(ids)), position, found) for (position, found), ids in groups.items())
