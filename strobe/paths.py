"""Where everything lives (DESIGN §2). The only place that knows."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from pathlib import Path

from strobe.disk_trouble import named
from strobe.errors import Code, StrobeError

SOCKET_PATH_MAX = 107  # sun_path without its NUL, unix(7)
TEST_DETAILS = "details.json"  # in a test run's folder: every test and the end of the output
_SAFE_NAME = re.compile(r"[A-Za-z0-9._+@-]{1,180}")


def home() -> Path:
    return Path(os.environ.get("STROBE_HOME") or "~/.strobe").expanduser().absolute()


def private_folder(path: Path) -> Path:
    """Makes `path` (0700) and refuses one that another user owns or can enter."""
    with named(path):
        if not path.parent.exists():
            private_folder(path.parent)  # mkdir's own `parents` would leave them open to all
        path.mkdir(mode=0o700, exist_ok=True)
        facts = path.stat()
    if facts.st_uid != os.getuid():
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} belongs to uid {facts.st_uid}, not to you.", "Set STROBE_HOME to a folder of your own.")
    if stat.S_IMODE(facts.st_mode) & 0o077:
        path.chmod(0o700)
    return path


def safe_name(name: str, *, what: str = "name") -> str:
    """A name that may become a file name: it cannot leave its folder."""
    if not _SAFE_NAME.fullmatch(name) or name in (".", ".."):
        raise StrobeError(Code.VALIDATION_ERROR, f"{what} {name[:80]!r} is not a plain name.", "Use letters, digits and . _ + @ - only.", value=name[:80])
    return name


def run_folder(base: Path | None = None) -> Path:
    """Folder of sockets and lock: short enough for sun_path, private."""
    base = base or home()
    inside = base / "run"
    if len(str(inside)) + 8 <= SOCKET_PATH_MAX:
        return private_folder(inside)
    digest = hashlib.sha256(str(base).encode()).hexdigest()[:12]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    parent = Path(runtime) if runtime and len(runtime) < 60 else Path("/tmp")
    return private_folder(parent / f"strobe-{os.getuid()}-{digest}")


def bus_endpoint(base: Path | None = None) -> str:
    return f"ipc://{run_folder(base)}/bus"


def data_endpoint(base: Path | None = None) -> str:
    return f"ipc://{run_folder(base)}/data"


def mcp_endpoint(base: Path | None = None) -> str:
    return f"ipc://{run_folder(base)}/mcp"


def logs_folder() -> Path:
    return private_folder(home() / "logs")


def sessions_folder() -> Path:
    return private_folder(home() / "sessions")


def cache_folder() -> Path:
    return private_folder(home() / "cache")


def scratch_folder(name: str = "") -> Path:
    """TMPDIR of one process, swept after it; without a name, the folder that holds them all. Short: sockets are bound in it."""
    digest = hashlib.sha256(str(home()).encode()).hexdigest()[:8]
    folder = private_folder(Path(os.environ.get("TMPDIR") or "/tmp") / f"strobe-{os.getuid()}-{digest}.tmp")
    return private_folder(folder / hashlib.sha256(name.encode()).hexdigest()[:8]) if name else folder


def target_path(session_id: str) -> Path:
    """Where `target_folder` is, made or not."""
    return home() / "targets" / safe_name(session_id, what="session id")


def clear_target(session_id: str) -> None:
    """Removes a session's folder, but for the details of a test run: those go with the run (actors/store/testing.py). Nothing there is no error."""
    folder = target_path(session_id)
    if not (folder / TEST_DETAILS).exists():
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != TEST_DETAILS:
            path.unlink(missing_ok=True)


def target_folder(session_id: str) -> Path:
    return private_folder(target_path(session_id))


def pool_path(session_id: str) -> Path:
    digest = hashlib.sha256(str(home()).encode()).hexdigest()[:6]
    return Path("/dev/shm") / f"strobe-{os.getuid()}-{digest}-{safe_name(session_id, what='session id')}"
