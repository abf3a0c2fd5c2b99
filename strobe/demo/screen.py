"""The demo's output: plain text, 100 columns, no colours."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import Any, Final

WIDTH: Final = 100
LINES_MAX: Final = 16


def line(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def heading(number: int, text: str) -> None:
    line()
    line(f"{number}. {text}")


def call(tool: str, arguments: dict[str, Any]) -> None:
    line(f"   -> {tool} {json.dumps(arguments)}")


def answer(text: str) -> None:
    lines = text.splitlines()
    for shown in lines[:LINES_MAX]:
        line(f"      {shown}")
    if len(lines) > LINES_MAX:
        line(f"      ... {len(lines) - LINES_MAX} more lines")


def finding(text: str) -> None:
    for number, part in enumerate(textwrap.wrap(text, WIDTH - 12)):
        line(f"   {'Found:' if number == 0 else '      '} {part}")
