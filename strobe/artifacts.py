"""Where the built parts that run in or around a target lie: the keeper, the recorder, the agent bundle.

From a checkout (and an editable install) they are where their own builds put them; a wheel carries them in `strobe/built`.
`STROBE_ARTIFACTS` (a list of folders, as in PATH) is searched first, to try a build of one's own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from strobe.errors import Code, StrobeError

_PACKAGE: Final = Path(__file__).resolve().parent
_CHECKOUT: Final = _PACKAGE.parent / "agent"


def artifact_folders() -> tuple[Path, ...]:
    override = os.environ.get("STROBE_ARTIFACTS", "")
    asked = tuple(Path(item) for item in override.split(os.pathsep) if item)
    return (*asked, _PACKAGE / "built", _CHECKOUT / "native" / "build", _CHECKOUT / "frida" / "dist")


def artifact_folder(name: str) -> Path:
    """Absolute path of a folder of ours that is used as it lies: `reporters`, which test runners load. StrobeError ACTOR_UNAVAILABLE when it is not there."""
    for folder in (*artifact_folders(), _CHECKOUT):
        path = folder / name
        if path.is_dir():
            return path.resolve()
    raise StrobeError(Code.ACTOR_UNAVAILABLE, f"{name} was not installed with Strobe.", "Install Strobe again.", value=name)


def artifact(name: str) -> Path:
    """Absolute path of `strobe-keeper`, `strobe-recorder.so` or `agent.js`; StrobeError ACTOR_UNAVAILABLE when it was never built."""
    for folder in artifact_folders():
        path = folder / name
        if path.is_file():
            return path.resolve()
    raise StrobeError(Code.ACTOR_UNAVAILABLE, f"{name} was not built.", "In a checkout run `make native`; otherwise install Strobe again.", value=name)
