"""One JSON-lines log per actor, `logs/<actor>.jsonl`, 10 MB × 5. Lines written while a handler runs carry its `cause`."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, Final

import orjson

_hide_rich = "rich" not in sys.modules
if _hide_rich:  # structlog/__init__ imports structlog.dev, and that imports rich wherever it is installed: 60 ms that no actor needs
    sys.modules["rich"] = None  # type: ignore[assignment]
import structlog  # noqa: E402
from structlog.typing import FilteringBoundLogger  # noqa: E402

from strobe.redaction import Redactor  # noqa: E402

if _hide_rich:
    del sys.modules["rich"]

Logger = FilteringBoundLogger
BYTES_MAX: Final = 10 << 20
FILES_MAX: Final = 5


class RotatingFile:
    """Appends lines; at `bytes_max` file → file.1 → … A full disk loses log lines (counted), never the actor."""

    def __init__(self, path: Path, *, bytes_max: int = BYTES_MAX, files_max: int = FILES_MAX) -> None:
        self._lock = threading.Lock()
        self._bytes_max = bytes_max
        self._files_max = files_max
        self.lost = 0
        self._open(path)

    def _open(self, path: Path) -> None:
        self.path = path
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab", buffering=0)
        self._bytes = self._file.tell()

    def move_to(self, path: Path) -> None:
        """The file gets this name; where there is one of that name already, it goes on at its end."""
        if path == self.path:
            return
        with self._lock:
            self._file.close()
            if path.exists():
                with path.open("ab") as older:
                    older.write(self.path.read_bytes())
                self.path.unlink()
            else:
                self.path.rename(path)
            self._open(path)

    def write(self, line: bytes) -> None:
        with self._lock:
            try:
                if self._bytes + len(line) > self._bytes_max:
                    self._rotate()
                self._bytes += self._file.write(line)
            except OSError:
                self.lost += 1

    def _rotate(self) -> None:
        self._file.close()
        for number in range(self._files_max - 1, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            newer = self.path if number == 1 else self.path.with_name(f"{self.path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)
        self._open(self.path)


class _LineLogger:
    """structlog's last station: takes the rendered bytes of one line."""

    def __init__(self, file: RotatingFile) -> None:
        self._file = file

    def msg(self, line: bytes) -> None:
        self._file.write(line + b"\n")

    debug = info = warning = error = critical = exception = log = fatal = msg


def open_log(path: Path, **bound: Any) -> tuple[Logger, RotatingFile]:
    """A logger writing to `path`; `bound` fields are in each of its lines."""
    file = RotatingFile(path)
    logger: Logger = structlog.wrap_logger(
        _LineLogger(file),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.format_exc_info,
            _without_secrets,
            structlog.processors.JSONRenderer(serializer=_dumps),
        ],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        cache_logger_on_first_use=False,
        **bound,
    )
    return logger, file


def _without_secrets(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """An error names the value at fault, a traceback what was read: neither may hold what replies do not show."""
    redactor = Redactor()
    for key, value in line.items():
        if isinstance(value, str):
            line[key] = redactor.text(value)
    return line


def _dumps(event: Any, **_: Any) -> bytes:
    return orjson.dumps(event, default=repr, option=orjson.OPT_NON_STR_KEYS)


def log_name(actor: str) -> str:
    """File stem of an actor's log: `session:hello-1` → `session-hello-1`."""
    return actor.replace(":", "-")
