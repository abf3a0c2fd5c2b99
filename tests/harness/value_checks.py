"""Values of a running program compared with what it says about them."""

from __future__ import annotations

import json
import math
from typing import Any

from strobe.values.memory import Memory
from strobe.values.reader import Reader
from strobe.values.registry import Formatters
from tests.harness.live_values import Live, Types
from tests.harness.value_images import copied


def compare(live: Live, types: Types, *, from_image: bool = False) -> tuple[int, dict[str, str]]:
    """(how many values are shown as the program says, the others by name, in words). `from_image`: from what the recorder copies of each."""
    memory: Memory = live.memory
    right: int = 0
    wrong: dict[str, str] = {}
    for group, number in zip(live.groups, types.numbers, strict=True):
        for name, said in group.expected.items():
            member = types.table.member(number, name)
            if member is None:
                wrong[f"{group.type}.{name}"] = "no such member"
                continue
            address = group.address + member.offset
            if from_image:
                memory = copied(live.memory, types, member.type, address)
            shown = Reader(types.table, memory, Formatters.built_in(), symbols=types.symbols).at(member.type, address)
            if same(shown, json.loads(said)):
                right += 1
            else:
                kind = types.table[member.type].name
                wrong[f"{group.type}.{name}"] = f"{kind}\n  program {said[:600]}\n  reader  {json.dumps(shown, ensure_ascii=False)[:600]}"
    return right, wrong


def described(right: int, wrong: dict[str, str]) -> str:
    return f"{len(wrong)} of {right + len(wrong)} are not as the program says:\n" + "\n".join(f"{name}: {words}" for name, words in wrong.items())


def same(ours: Any, theirs: Any) -> bool:
    """`true` is not 1, 1.0 is 1 (a program prints no zeros), and keys have an order."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(same(value, theirs[name]) for name, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs)
    return type(ours) is type(theirs) and ours == theirs
