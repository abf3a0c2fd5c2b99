"""What to launch, and its file for the keeper (agent/native/KEEPER.md, `launch`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from strobe.errors import Code, StrobeError

LAUNCH_BYTES_MAX: Final = 16 << 20


@dataclass(frozen=True)
class Launch:
    """`argv` with argv[0]; `env` is the target's whole environment; `stdin` is a kind, or the bytes to be read. `stop`: at the first instruction,
    where it is killed when nobody has been connected to its keeper for `alone_s`."""

    path: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdin: Literal["null", "open"] | bytes = "null"
    pty: bool = False
    stop: bool = False
    alone_s: float = 60.0


@dataclass(frozen=True)
class Watch:
    """A process that runs already: `start_ticks` tell it from another that gets its pid (strobe.launch.keeper.process_start_ticks)."""

    pid: int
    start_ticks: int


def write_watch(directory: Path, watch: Watch) -> None:
    _write_private(directory / "launch", f"watch={watch.pid}\0start={watch.start_ticks}\0".encode())


def write_launch(directory: Path, launch: Launch) -> None:
    """Writes `launch` (and `stdin`) into the keeper's directory, 0600. VALIDATION_ERROR for what exec(2) could not take."""
    if not Path(launch.path).is_absolute():
        raise _refused("The program's path must be absolute", launch.path)
    if not launch.argv:
        raise _refused("A program needs its own name as first argument", launch.path)
    content = b"".join(item + b"\0" for item in _items(launch))
    if len(content) > LAUNCH_BYTES_MAX:
        raise StrobeError(
            Code.LIMIT_EXCEEDED, f"Arguments and environment hold {len(content)} bytes.", f"Pass less than {LAUNCH_BYTES_MAX} bytes.", value=len(content)
        )
    if isinstance(launch.stdin, bytes):
        _write_private(directory / "stdin", launch.stdin)
    _write_private(directory / "launch", content)


def _items(launch: Launch) -> Iterator[bytes]:
    yield _item("path", launch.path)
    for argument in launch.argv:
        yield _item("arg", argument)
    for name, value in launch.env.items():
        if not name or "=" in name:
            raise _refused("An environment variable has no usable name", name)
        yield _item("env", f"{name}={value}")
    yield _item("cwd", launch.cwd)
    yield _item("stdin", "file" if isinstance(launch.stdin, bytes) else launch.stdin)
    yield _item("pty", str(int(launch.pty)))
    yield _item("stop", str(int(launch.stop)))
    yield _item("alone", str(round(launch.alone_s * 1000)))


def _item(key: str, value: str) -> bytes:
    if "\0" in value:
        raise _refused(f"A NUL character in `{key}` cannot be passed to a program", value)
    try:
        return os.fsencode(f"{key}={value}")
    except UnicodeEncodeError:
        raise _refused(f"`{key}` cannot be encoded for this system", value) from None


def _refused(what: str, value: str) -> StrobeError:
    return StrobeError(Code.VALIDATION_ERROR, f"{what}: {value[:200]!r}.", "Correct it and launch again.", value=value[:200])


def _write_private(path: Path, content: bytes) -> None:
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
