"""Texts from outside on their way to logs and reports: no control character does anything there. Pure."""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ANSI: Final = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def visible(text: str) -> str:
    """Without colours; other control characters as `\\x07`. Lines and tabs stay."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", _ANSI.sub("", text.replace("\r\n", "\n"))).encode("utf-8", "backslashreplace").decode()


def one_line(text: str, characters: int = 200) -> str:
    """The first line that says anything."""
    line = next((line.strip() for line in visible(text).replace("\r", "\n").splitlines() if line.strip()), "")
    return line if len(line) <= characters else line[: characters - 1] + "…"


def xml_text(text: str) -> str:
    """Only characters that XML 1.0 (§2.2) allows; the others as `\\x00`. What is markup the writer escapes."""
    return _NOT_XML.sub(lambda match: f"\\x{ord(match[0]):02x}", _ANSI.sub("", text))
