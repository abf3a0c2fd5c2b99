"""Captured values within a budget: what lies outermost and first stays, and whatever is left out is counted where it was.

A list ends in "… 97 more", an object in "…": "5 more", a text in "… 900 more"; what is too deep is "[… 12 elements]" or "{… 5 members}".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from strobe.render.budget import compact_json, json_tokens

_LEVELS: Final = (  # depth, elements and members, characters of a text; the most that fits is taken
    (8, 50, 400), (6, 25, 240), (5, 16, 160), (4, 10, 100), (3, 8, 80), (3, 5, 48), (2, 5, 40), (2, 3, 24), (1, 4, 24), (1, 2, 12), (0, 0, 12),
)  # fmt: skip
_BYTES_A_TOKEN: Final = 8  # no JSON has more
_MORE: Final = re.compile(r"… (\d+) more")
_TEXT_CUT: Final = re.compile(r"(.*)… (\d+) more", re.DOTALL)
# Never cut: addresses, what could not be captured, what was cut already.
_WHOLE: Final = re.compile(r"0x[0-9a-f]+( <.*>)?|<.*>|\[… \d+ elements\]|\{… \d+ members( at 0x[0-9a-f]+)?\}", re.DOTALL)
_FIRST: Final = ("class", "@")  # of an object: what it is, where it is
_HEAD_MAX: Final = 80  # characters of those
_KEY_MAX: Final = 40  # of a member's name, or a map's key


def shorten(value: Any, tokens: int) -> tuple[Any, bool]:
    """The value within about `tokens` tokens as JSON, and whether anything is left out of it."""
    if _fits(value, tokens):
        return value, False
    shown = value
    for depth, elements, characters in _LEVELS:
        shown = _limited(value, depth, elements, characters)
        if _fits(shown, tokens):
            break
    return shown, True


def shorten_all(values: Sequence[Any], tokens: int) -> tuple[list[Any], list[bool]]:
    """Several values within `tokens` together: those that are small stay whole, the others share the rest."""
    costs = [_cost(value, tokens) for value in values]
    left, waiting = tokens, len(values)
    shares = [0] * len(values)
    for index in sorted(range(len(values)), key=lambda index: costs[index]):
        shares[index] = min(costs[index], left // waiting)
        left -= shares[index]
        waiting -= 1
    done = [(value, False) if cost <= share else shorten(value, share) for value, cost, share in zip(values, costs, shares, strict=True)]
    return [value for value, _ in done], [cut for _, cut in done]


def first_elements(value: list[Any], count: int) -> list[Any]:
    """A list's beginning, with what is left out counted."""
    more = _MORE.fullmatch(value[-1]) if value and isinstance(value[-1], str) else None
    own = value[:-1] if more else value
    left = len(own) - count + (int(more[1]) if more else 0)
    return [*own[:count], f"… {left} more"] if count < len(own) else value


def _cost(value: Any, most: int) -> int:
    """Its tokens, or more than `most` where it is so large that counting them would take long."""
    size = len(compact_json(value))
    return most + size if size > _BYTES_A_TOKEN * most else json_tokens(value)


def _fits(value: Any, tokens: int) -> bool:
    return _cost(value, tokens) <= tokens


def _limited(value: Any, depth: int, elements: int, characters: int) -> Any:
    if isinstance(value, str):
        return _text(value, characters)
    if isinstance(value, list):
        return _list(value, depth, elements, characters)
    return _object(value, depth, elements, characters) if isinstance(value, dict) else value


def _text(value: str, characters: int) -> str:
    if len(value) <= characters or _WHOLE.fullmatch(value) or _MORE.fullmatch(value):
        return value
    cut = _TEXT_CUT.fullmatch(value)
    own, before = (cut[1], int(cut[2])) if cut else (value, 0)
    return value if len(own) <= characters else f"{own[:characters]}… {len(own) - characters + before} more"


def _list(value: list[Any], depth: int, elements: int, characters: int) -> Any:
    if depth <= 0 and value:
        more = _MORE.fullmatch(value[-1]) if isinstance(value[-1], str) else None
        return f"[… {len(value) - 1 + int(more[1]) if more else len(value)} elements]"
    kept = first_elements(value, elements)
    return [_limited(one, depth - 1, elements, characters) for one in kept]


def _object(value: dict[str, Any], depth: int, members: int, characters: int) -> Any:
    head = {name: value[name] for name in _FIRST if isinstance(value.get(name), str) and len(value[name]) <= _HEAD_MAX}
    rest = {name: one for name, one in value.items() if name not in head and name != "…"}
    if depth <= 0 and rest:
        where = f" at {head['@']}" if "@" in head else ""
        return f"{{… {len(rest)} members{where}}}"
    kept = {_shown_key(name): one for name, one in list(rest.items())[:members]}
    shown = head | {name: _limited(one, depth - 1, members, characters) for name, one in kept.items()}
    left = len(rest) - len(kept)
    before = re.match(r"\d+", str(value.get("…", "")))
    if left or "…" in value:
        shown["…"] = f"{left + int(before[0])} more" if before else f"{left} more" if left and "…" not in value else value["…"]
    return shown


def _shown_key(name: str) -> str:
    return name if len(name) <= _KEY_MAX else f"{name[:_KEY_MAX]}…"
