"""A crash as debug_session's status shows it: the stack as lines, the locals of the frame where it happened, and where to look further."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strobe.render.budget import json_tokens
from strobe.render.shorten import shorten
from strobe.render.values import argument_list, place

FRAMES_SHOWN: Final = 12
_SHARE: Final = 0.3  # of a reply's tokens, for its locals: structured content and text have no more than that between them
_BEFORE: Final = 50
_ALONG: Final = ("code", "exitCode", "threadName", "framesMissing")


def crash_shown(summary: Mapping[str, Any] | None, data: Mapping[str, Any], max_tokens: int) -> dict[str, Any] | None:
    """`summary`: the store's, None while the event is under way; `data`: the event's."""
    if summary is None and not data:
        return None
    shown: dict[str, Any] = dict(summary or {"text": data.get("summary"), "signal": data.get("signal"), "cause": data.get("cause")})
    shown |= {key: data[key] for key in _ALONG if data.get(key) is not None}
    if data.get("report"):
        shown["report"] = {key: value for key, value in data["report"].items() if key != "frames"}
    frames = data.get("frames") or (data.get("report") or {}).get("frames") or []
    if frames:
        shown["frames"] = [frame_line(frame) for frame in _around(frames, data.get("culprit") or 0)]
        found: list[dict[str, Any]] = next((frame["locals"] for frame in frames if frame.get("locals")), [])
        values = {one["name"]: one["value"] for one in found}
        if values:
            tokens = int(max_tokens * _SHARE)
            shown["locals"] = values if json_tokens(values) <= tokens else shorten(values, tokens)[0]
    return {key: value for key, value in shown.items() if value is not None}


def crash_steps(session_id: str, summary: Mapping[str, Any] | None) -> list[str]:
    if not summary:
        return []
    event, at = summary["id"], summary["timestampNs"]
    before = f"SELECT n, ts, event_type, function, thread_id, text FROM events_v WHERE ts <= {at} ORDER BY ts DESC LIMIT {_BEFORE}"
    return [
        f'All of the crash (registers, frames with arguments, locals, stack memory): debug_query {{"sessionId": "{session_id}", "eventId": "{event}"}}.',
        f'The {_BEFORE} events before it: debug_query {{"sessionId": "{session_id}", "sql": "{before}"}}.',
    ]


def frame_line(frame: Mapping[str, Any]) -> str:
    """`#1 push(ring={…}, value=7) ring.c:21`."""
    name = frame.get("function") or frame.get("address") or "?"
    arguments = argument_list(frame["arguments"]) if frame.get("arguments") else ""
    where = place(frame.get("file"), frame.get("line")) or (str(frame.get("module") or "").rpartition("/")[2])
    return f"#{frame['frame']} {name}{arguments} {where}".rstrip()


def _around(frames: list[Mapping[str, Any]], culprit: int) -> list[Mapping[str, Any]]:
    """Of a deep stack those from shortly before the culprit on."""
    first = max(0, min(culprit - 3, len(frames) - FRAMES_SHOWN))
    return frames[first : first + FRAMES_SHOWN]
