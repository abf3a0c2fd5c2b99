"""Paths to captured values: `order.items[0].id`, `this->state`, `args[1]`, `ret.name`. Access paths of the expression language, nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strobe.errors import Code, StrobeError
from strobe.expression import Argument, Name, Result, Step, Unavailable, chain, parse
from strobe.model.probe import Hook, Value
from strobe.values.typed import TypedValue

_NEXT = "Write a path such as order.items[0].id, this->state, args[0] or ret.name."


@dataclass(frozen=True, slots=True)
class Path:
    """`root`: an argument's name or number; None: the result. `steps` are of the kinds member, index and follow; a member follows pointers itself."""

    text: str
    root: str | int | None
    steps: tuple[Step, ...]


def parse_path(text: str, field: str) -> Path:
    """Raises VALIDATION_ERROR naming `field`, or the position (ExpressionError)."""
    found = chain(parse(text))
    if found is None:
        raise StrobeError(Code.VALIDATION_ERROR, f"{field} {text!r} is more than a path.", _NEXT, value=text)
    following = (*found.steps[1:], None)[: len(found.steps)]
    steps = tuple(step for step, behind in zip(found.steps, following, strict=True) if not _is_arrow(step, behind))
    match found.root:
        case Result():
            return Path(text, None, steps)
        case Argument(key=key):
            return Path(text, key, steps)
        case Name(text=name):
            return Path(text, name, steps)


def parse_result_path(text: str, field: str) -> Path:
    """Of a result: `ret.name`, or `name` alone for its member."""
    path = parse_path(text, field)
    if path.root is None:
        return path
    if isinstance(path.root, int):
        raise StrobeError(Code.VALIDATION_ERROR, f"{field} {text!r} names an argument.", "Filter by `argument`, or begin with ret.", value=text)
    inner = parse_path(f"ret.{text}", field)
    return Path(inner.text, None, inner.steps)


def _is_arrow(step: Step, following: Step | None) -> bool:
    return step.kind == "follow" and following is not None and following.kind == "member"


def root_of(hook: Hook, path: Path) -> tuple[int | None, Value] | None:
    """(position, or None for the result; what is captured there); None: the function has no such value."""
    if path.root is None:
        return None if hook.plan.result is None else (None, hook.plan.result)
    for position, value in enumerate(hook.plan.arguments):
        if path.root in (position, value.name):
            return position, value
    return None


def follow(value: TypedValue, steps: Sequence[Step]) -> TypedValue | Unavailable:
    """Where the steps lead."""
    found: TypedValue | Unavailable = value
    for step in steps:
        if isinstance(found, Unavailable):
            return found
        found = _step(found, step)
    return found


def _step(value: TypedValue, step: Step) -> TypedValue | Unavailable:
    if step.kind == "follow":
        return value.dereference()
    if step.kind == "index":
        return value.index(step.key if step.key is not None else 0)
    scalar = value.scalar()
    if isinstance(scalar, Unavailable):
        return scalar
    if scalar is not None and scalar.pointee_bytes is not None:
        target = value.dereference()
        return target if isinstance(target, Unavailable) else target.member(str(step.key))
    return value.member(str(step.key))
