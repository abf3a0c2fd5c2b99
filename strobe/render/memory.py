"""debug_memory's reply as text: one line a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strobe.render.events import left_out_lines
from strobe.render.values import plain


def memory_text(reply: Mapping[str, Any]) -> str:
    lines = [_line(one) for one in reply["results"]]
    if reply.get("poll"):
        pace = f"each {reply['intervalMs']} ms" if reply["achievedIntervalMs"] <= reply["intervalMs"] else f"each {reply['achievedIntervalMs']:g} ms at best"
        lines.append(f"{reply['poll']}: about {reply['expectedSamples']:,} samples, {pace}, as variable_snapshot events.")
    lines += [f"Next: {step}" for step in reply.get("nextSteps", [])]
    lines += [f"Note: {text}" for text in reply.get("warnings", [])]
    return "\n".join([*lines, *left_out_lines(reply)])


def _line(one: Mapping[str, Any]) -> str:
    """`gTempo: int = 120` · `gTempo: int = 120 → 90` · `gTempi: there is no …`."""
    if "error" in one:
        return f"{one['target']}: {one['error']}. {one['nextStep']}"
    head = f"{one['target']}: {one['type']}"
    if "newValue" in one:
        line = f"{head} = {plain(one['previousValue'])} → {plain(one['newValue'])}"
    elif "file" in one:
        line = f"{head}, {one['size']:,} from {one['address']} in {one['file']}: {one['preview']}{'…' if one['size'] * 2 > len(one['preview']) else ''}"
    else:
        line = f"{head} = {plain(one['value'])}"
    line += " (shortened: raise maxTokens, or read a part of it)" if one.get("shortened") else ""
    return f"{line}. {one['note']}." if one.get("note") else line
