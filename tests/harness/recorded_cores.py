"""Calls of a program's functions as gdb stops them: registers, and all memory as a core file (tests/targets/indexer/record_cores.py)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

from tests.harness.targets import TARGETS, require

GDB_S: Final = 120
_ADDRESS: Final = re.compile(r"0x[0-9a-f]{6,}")


def recorded(path: Path, functions: dict[str, int], folder: Path) -> list[dict[str, Any]]:
    asked = folder / "ask.json"
    asked.write_text(json.dumps({"functions": functions, "pie": path.read_bytes()[16] == 3}))
    script = TARGETS / "indexer" / "record_cores.py"
    environment = {**os.environ, "RECORD_IN": str(asked), "RECORD_OUT": str(folder)}
    command = [require("gdb"), "-nx", "-batch", "-iex", "set debuginfod enabled off", "-x", str(script), str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GDB_S, stdin=subprocess.DEVNULL, check=False)
    answered = folder / "calls.json"
    assert answered.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    calls: list[dict[str, Any]] = json.loads(answered.read_text())
    return calls


def without_addresses(value: Any) -> Any:
    """`0x…` for all but small ones."""
    if isinstance(value, dict):
        return {key: without_addresses(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_addresses(one) for one in value]
    return _ADDRESS.sub("0x…", value) if isinstance(value, str) else value
