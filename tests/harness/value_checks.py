"""Values of a running program compared with what it says about them."""

from __future__ import annotations

import json
import math
from typing import Any

from strobe.values.reader import Limits, Reader
from strobe.values.registry import Formatters
from tests.harness.live_values import Live, Types

_DEFAULT = Limits()


def compare(live: Live, types: Types, limits: Limits = _DEFAULT, formatters: Formatters | None = None) -> tuple[int, list[str]]:
    """(how many values are shown as the program says, the others in words)."""
    reader = Reader(types.table, live.memory, formatters or Formatters.built_in(), limits, types.symbols)
    right, wrong = 0, []
    for group, number in zip(live.groups, types.numbers, strict=True):
        for name, said in group.expected.items():
            member = types.table.member(number, name)
            if member is None:
                wrong.append(f"{group.type} has no member {name}")
                continue
            shown = reader.at(member.type, group.address + member.offset)
            if same(shown, json.loads(said)):
                right += 1
            else:
                kind = types.table[member.type].name
                wrong.append(f"{group.type}.{name}: {kind}\n  program {said[:600]}\n  reader  {json.dumps(shown, ensure_ascii=False)[:600]}")
    return right, wrong


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
