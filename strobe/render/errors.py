"""An error as text: what happened, then what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def error_text(wire: Mapping[str, Any]) -> str:
    """From StrobeError.to_wire()."""
    return f"{wire['code']}: {wire['what']}\nNext: {wire['nextStep']}"
