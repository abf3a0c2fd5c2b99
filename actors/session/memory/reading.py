"""debug_memory's read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from actors.session.memory.files import save_bytes
from actors.session.memory.looking import Look
from actors.session.memory.request import STRING_MAX, Wanted
from actors.session.memory.showing import LEAST_TOKENS, VALUES_SHARE, Result, Shower, failure, outcome_result
from strobe.expression import Outcome, Scalar, Unavailable
from strobe.model.type_nodes import VOID, Array, Pointer
from strobe.render.budget import json_tokens
from strobe.values.memory import Missing
from strobe.values.typed import TypedValue
from strobe.values.typed_scalars import decoded, text_at, text_end

_PROBED: Final = 4096  # bytes of a value that must be there for it to be shown
_CHARACTERS_A_TOKEN: Final = 2


def read_all(look: Look, folder: Path, tokens: int) -> list[Result]:
    """One result per target. Short values leave their room to the long ones, which are shortened to fit."""
    shower = look.shower()
    results = [_read_one(look, shower, wanted, folder) for wanted in look.request.wanted]
    costs = [json_tokens(result.get("value")) for result in results]
    left = int(tokens * VALUES_SHARE)
    order = sorted(range(len(results)), key=costs.__getitem__)
    for place, index in enumerate(order):
        share = max(LEAST_TOKENS, left // (len(order) - place))
        if costs[index] > share:
            results[index] = _shortened(look, shower, look.request.wanted[index], results[index], share)
            costs[index] = json_tokens(results[index].get("value"))
        left -= costs[index]
    return results


def _shortened(look: Look, shower: Shower, wanted: Wanted, result: Result, tokens: int) -> Result:
    if isinstance(result["value"], str):
        return {**result, "value": result["value"][: tokens * _CHARACTERS_A_TOKEN] + "…", "shortened": True}
    outcome = look.outcome(wanted)
    return {**result, "value": shower.fitted(outcome, tokens)[0], "shortened": True} if isinstance(outcome, TypedValue) else result


def _read_one(look: Look, shower: Shower, wanted: Wanted, folder: Path) -> Result:
    outcome = look.outcome(wanted)
    special = wanted.target.type if wanted.target.type in ("bytes", "string") else None
    if special is None and wanted.target.address is not None and wanted.target.type is None:
        special = "bytes"
    if isinstance(outcome, Unavailable):
        return failure(wanted.label, outcome.reason, wanted.next_step)
    if special is None:
        return _typed(shower, wanted, outcome)
    if isinstance(outcome, Scalar) or not isinstance(outcome, TypedValue) or outcome.at is None:
        return failure(wanted.label, "it is not in memory, so it has no bytes to show", "Read it without `type`.")
    if special == "bytes":
        size = wanted.target.size or outcome.size()
        if wanted.target.size is None and wanted.target.address is not None:
            return failure(wanted.label, "`size` is missing: how many bytes to read", 'Add "size", or a "type".')
        return save_bytes(look.memory, folder, wanted.label, outcome.at, size or 0)
    return _string(look, wanted, outcome)


def _typed(shower: Shower, wanted: Wanted, outcome: Outcome) -> Result:
    if isinstance(outcome, TypedValue):
        if outcome.type == VOID:
            return failure(wanted.label, f"debug info says nothing of the type of `{wanted.label}`. Give `type`")
        start = None if outcome.at is None else outcome.world.read(outcome.at, min(outcome.size() or 1, _PROBED))
        if isinstance(start, Unavailable):
            return failure(wanted.label, start.reason)
    return outcome_result(wanted.label, outcome, lambda value: (shower.value(value, shower.limits(0)), False))


def _string(look: Look, wanted: Wanted, value: TypedValue) -> Result:
    """At the address; behind a variable that is a pointer."""
    node = value.world.table.stripped(value.type)
    address = value.at or 0
    if wanted.target.variable is not None and isinstance(node, Pointer):
        pointer = value.pointer()
        if isinstance(pointer, Unavailable) or pointer == 0:
            return failure(wanted.label, pointer.reason if isinstance(pointer, Unavailable) else "the pointer is null")
        address = pointer
    size = wanted.target.size or (value.size() if isinstance(node, Array) else None)
    text: Any
    if size is not None and not 0 < size <= STRING_MAX:
        return failure(wanted.label, f"size {size:,} is out of range: 1 to {STRING_MAX:,} bytes", "Read it as bytes.")
    if size is None:
        text = text_at(look.memory, address, 1)
    else:
        raw = look.memory.read(address, size)
        text = raw if isinstance(raw, Missing) else decoded(raw[: text_end(raw, 1)], 1)
    if isinstance(text, Missing):
        return failure(wanted.label, f"memory at {text.address:#x} cannot be read")
    shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return {"target": wanted.label, "type": "string", "address": f"{address:#x}", "value": shown}
