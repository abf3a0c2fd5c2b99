"""`trace-request`: everything every actor logged in the name of one request, in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from strobe import paths
from strobe.ctl.output import AsJson, command, show_json, show_table
from strobe.errors import Code, StrobeError

LINES_MAX: Final = 10_000
_SHOWN_APART: Final = frozenset({"at", "actor", "event", "level", "cause"})


@command
async def trace_request(request: Annotated[str, typer.Argument(help="Id of the request: strobe/requestId of a reply.")], as_json: AsJson = False) -> None:
    """What every actor did for one request, from all logs, in time order."""
    lines = story(paths.logs_folder(), request)
    if not lines:
        next_step = "Its id is in the reply's _meta, strobe/requestId; logs keep the newest 50 MB of each actor."
        raise StrobeError(Code.VALIDATION_ERROR, f"No log line names the request {request!r}.", next_step, value=request)
    if as_json:
        show_json(lines)
        return
    rows = [(line["at"][11:23], line.get("actor", ""), line.get("level", ""), line.get("event", ""), _rest(line)) for line in lines]
    show_table(("time (UTC)", "actor", "level", "event", "details"), rows, empty="")


def story(folder: Path, request: str) -> list[dict[str, Any]]:
    """Log lines whose cause or id is `request`, oldest first; at most 10,000."""
    found = []
    for line in _lines_with(folder, request):
        if request in (line.get("cause"), line.get("id")):
            found.append(line)
            if len(found) == LINES_MAX:
                break
    return sorted(found, key=lambda line: str(line.get("at", "")))


def _lines_with(folder: Path, text: str) -> Iterator[dict[str, Any]]:
    """Parsed lines that contain `text`. A line cut short by a kill is left out."""
    for file in sorted(folder.glob("*.jsonl*")):
        with file.open(errors="replace") as lines:
            for line in lines:
                if text in line:
                    try:
                        yield json.loads(line)
                    except ValueError:
                        continue


def _rest(line: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in line.items() if key not in _SHOWN_APART)[:400]
