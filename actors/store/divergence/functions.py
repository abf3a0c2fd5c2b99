"""Which hook of one session stands for the same function as which of the other, and how its values compare."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import PurePosixPath

from actors.store.query.selection import Selection
from actors.store.scalars import result_of
from actors.store.schema import VALUE_COLUMNS
from actors.store.session_file import SessionFile
from strobe.model.probe import Hook, Value


class Look(enum.IntEnum):
    """How a value's 64 bits are compared."""

    NONE = 0  # there are none, or only what they show counts (`deep`)
    NUMBER = 1
    WIDE = 2  # eight bytes of an integer: may hold an address or a thread's id
    FLOAT = 3
    POINTER = 4  # null or not
    TEXT = 5


@dataclass(frozen=True, slots=True)
class Compared:
    """A hook: its function's number in both sessions, the looks at its arguments' columns and at its result; `deep`: what it shows counts too."""

    key: int
    arguments: tuple[Look, ...]
    result: Look
    deep: bool
    skipped: frozenset[str] = frozenset()  # names of values that are not compared; `ret` the result


@dataclass(frozen=True, slots=True)
class Functions:
    """`ours`, `theirs`: by hook. `left_out`: names of functions that are traced in one session only, or of which not every call was recorded."""

    ours: dict[int, Compared]
    theirs: dict[int, Compared]
    names: list[str]  # by key
    one_sided: list[str]
    sampled: list[str]


def functions_of(ours: SessionFile, theirs: SessionFile, our_selection: Selection, their_selection: Selection, ignored: frozenset[str]) -> Functions:
    """`ignored`: `function`, `function(argument)` or `function.ret`, which are not compared."""
    left, right = _by_name(ours, our_selection), _by_name(theirs, their_selection)
    sampled = {one.function for file in (ours, theirs) for one in file.sampled()}
    both = sorted(name for name in left.keys() & right.keys() if _shown_name(left[name]) not in ignored)
    wanted = [name for name in both if _shown_name(left[name]) not in sampled]
    keys = {name: number for number, name in enumerate(wanted)}
    return Functions(
        ours={hook.id: _compared(hook, keys[name], ignored) for name, hooks in left.items() if name in keys for hook in hooks},
        theirs={hook.id: _compared(hook, keys[name], ignored) for name, hooks in right.items() if name in keys for hook in hooks},
        names=[_shown_name(left[name]) for name in wanted],
        one_sided=sorted({_shown_name(left.get(name) or right[name]) for name in left.keys() ^ right.keys()}),
        sampled=sorted({_shown_name(left[name]) for name in both} & sampled),
    )


def _shown_name(hooks: list[Hook]) -> str:
    return hooks[0].place.function


def _by_name(file: SessionFile, selection: Selection) -> dict[tuple[str, str], list[Hook]]:
    """By full name and source file's name: module names and addresses may be those of another build."""
    found: dict[tuple[str, str], list[Hook]] = {}
    for hook in list(file.hooks.values()):
        if selection.hooks is None or hook.id in selection.hooks:
            place = hook.place
            found.setdefault((place.full_name or place.function, PurePosixPath(place.file or "").name), []).append(hook)
    return found


def _compared(hook: Hook, key: int, ignored: frozenset[str]) -> Compared:
    function, values = hook.place.function, hook.plan.arguments
    named = [(value, f"{function}({value.name})" in ignored) for value in values]
    result = result_of(hook.plan)
    result_ignored = f"{function}.ret" in ignored
    deep = any(_is_deep(value) or position >= VALUE_COLUMNS for position, (value, skipped) in enumerate(named) if not skipped)
    deep = deep or (result is not None and not result_ignored and _is_deep(result))
    looks = tuple(Look.NONE if skipped else look_of(value) for value, skipped in named[:VALUE_COLUMNS])
    skips = frozenset([*(value.name for value, skipped in named if skipped), *(["ret"] if result_ignored else [])])
    return Compared(key, looks, Look.NONE if result is None or result_ignored else look_of(result), deep, skips)


def look_of(value: Value) -> Look:
    if value.scalar == "cstring":
        return Look.TEXT
    if value.size == 0 or value.source == "none":
        return Look.NONE
    match value.scalar:
        case "opaque":
            return Look.NONE
        case "pointer":
            return Look.POINTER
        case "float":
            return Look.FLOAT
        case _:
            return Look.WIDE if value.size == 8 else Look.NUMBER


def _is_deep(value: Value) -> bool:
    """It shows more than its bits say."""
    return value.type is not None and value.scalar in ("pointer", "opaque")
