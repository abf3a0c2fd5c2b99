"""Values that nobody should send, and good ones with something wrong in them."""

from __future__ import annotations

import copy
import math
from random import Random
from typing import Any, Final

_LONG: Final = 70_000
_DEEP: Final = 200
_TEXTS: Final = (
    "", " ", "\0", "a\0b", "../../etc/passwd", "/dev/null", "/", "~", "%s%n", "'; DROP TABLE events; --", "\ud83d\ude00", "\u202e", "*" * 300, "[" * 200,
    "a::" * 400, "${HOME}", "null", "NaN", "-1", "0x", "9" * 400, "x" * _LONG,
)  # fmt: skip
_NUMBERS: Final = (0, -1, 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63, -(2**63), 2**64 - 1, 0.5, -0.0, 1e308)


def deep(levels: int = _DEEP) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def strange(chance: Random) -> Any:
    """Of any JSON kind."""
    kind = chance.randrange(8)
    if kind == 0:
        return chance.choice((None, True, False))
    if kind == 1:
        return chance.choice(_NUMBERS)
    if kind == 2:
        return chance.choice(_TEXTS)
    if kind == 3:
        return "".join(chr(chance.choice((0, 9, 10, 34, 92, 127, 0x2028, 0xFFFD, chance.randrange(32, 0xD800)))) for _ in range(chance.randrange(40)))
    if kind == 4:
        return [strange(chance) for _ in range(chance.randrange(4))]
    if kind == 5:
        return {chance.choice(_TEXTS[:12]) or "x": strange(chance) for _ in range(chance.randrange(4))}
    if kind == 6:
        return deep(chance.choice((5, 60, _DEEP)))
    return chance.choice(([], {}, [None] * 1000, {"": {}}, [[]], "true"))


def strange_for_msgpack(chance: Random) -> Any:
    """What only msgpack can carry, too."""
    return chance.choice((math.inf, -math.inf, math.nan, b"", b"\xff\xfe", bytes(5000))) if chance.random() < 0.3 else strange(chance)


def spoiled(value: dict[str, Any], chance: Random, make: Any = strange) -> dict[str, Any]:
    """A copy of it with one to three things wrong, at any depth."""
    changed = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        at: Any = changed
        while isinstance(at, dict) and at and chance.random() < 0.5:
            inner = at[chance.choice(list(at))]
            if not isinstance(inner, dict):
                break
            at = inner
        way = chance.randrange(4)
        if way == 0 and at:
            del at[chance.choice(list(at))]
        elif way == 1 or not at:
            at[chance.choice(("extra", "session_id", "__class__", "sessionid", ""))] = make(chance)
        else:
            at[chance.choice(list(at))] = make(chance)
    return changed


def spoiled_bytes(data: bytes, chance: Random) -> bytes:
    """Cut, flipped, doubled, or with other bytes in between."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        way = chance.randrange(5)
        if way == 0:
            del changed[at:]
        elif way == 1 and changed:
            changed[min(at, len(changed) - 1)] ^= 1 << chance.randrange(8)
        elif way == 2:
            changed[at:at] = chance.randbytes(chance.choice((1, 3, 40)))
        elif way == 3:
            del changed[at : at + chance.randrange(20)]
        else:
            changed += changed[: chance.randrange(60)]
    return bytes(changed)
