"""strobe-ci and strobe-ctl as commands, with a home of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.harness.mcp import ROOT

RUN_S: Final = 180.0


def environment(home: Path, **more: str) -> dict[str, str]:
    """`python` and `pytest` of this interpreter come first, as in an activated venv."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return {**kept, "PATH": path, "PYTHONPATH": str(ROOT), "STROBE_HOME": str(home), **more}


def command(module: str, *args: str | Path) -> list[str]:
    return [sys.executable, "-P", "-m", module, *map(str, args)]


def run(module: str, home: Path, *args: str | Path, env: dict[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """To its end; text of stdout and stderr."""
    env = environment(home, **(env or {}))
    return subprocess.run(command(module, *args), env=env, capture_output=True, text=True, timeout=RUN_S, check=False, stdin=subprocess.DEVNULL, **more)


def start(module: str, home: Path, *args: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(command(module, *args), env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
