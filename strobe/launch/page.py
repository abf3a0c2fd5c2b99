"""Reading a keeper's status page (strobe.launch.status) while the keeper writes it."""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from strobe.errors import Code, StrobeError
from strobe.launch.status import STATUS, STATUS_BYTES, STATUS_MAGIC, LaunchStage, TargetState

_READ_BYTES: Final = max(field.offset + 8 * field.count for field in STATUS)
_TRIES: Final = 20
_CODES: Final = {"u32": "I", "i32": "i", "u64": "Q"}
_OFFSETS: Final = {field.name: field.offset for field in STATUS}
_CHANGES: Final = _OFFSETS["changes"]
_OUTPUT_BYTES: Final = _OFFSETS["output_bytes"]


@dataclass(frozen=True)
class KeeperStatus:
    """One look at the page. Times are ns of CLOCK_MONOTONIC, 0 while there is none; stream pairs are (stdout, stderr)."""

    changes: int
    state: TargetState
    keeper_pid: int
    pid: int
    stage: LaunchStage
    errno: int
    wait_status: int
    started_ns: int
    exited_ns: int
    output_bytes: int
    stream_bytes: tuple[int, int]
    stream_ended: tuple[int, int]
    stream_dev: tuple[int, int]
    stream_ino: tuple[int, int]
    reaped: int
    disk_full_ns: int
    start_ticks: int
    wait_known: int

    @property
    def exit_code(self) -> int | None:
        """0–255 once the target has exited by itself, where that is known."""
        return os.WEXITSTATUS(self.wait_status) if self._how and os.WIFEXITED(self.wait_status) else None

    @property
    def signal(self) -> int | None:
        """The signal that ended the target."""
        return os.WTERMSIG(self.wait_status) if self._how and os.WIFSIGNALED(self.wait_status) else None

    @property
    def _how(self) -> bool:
        return self.state is TargetState.EXITED and bool(self.wait_known)

    @property
    def core_dumped(self) -> bool:
        return self.signal is not None and os.WCOREDUMP(self.wait_status)

    @property
    def ended(self) -> bool:
        """Nothing more will come: the target is gone (or never was) and its pipes are at their end."""
        return self.state is TargetState.FAILED or (self.state is TargetState.EXITED and all(self.stream_ended))


class StatusPage:
    """The page of one keeper directory, mapped. It stays readable after the keeper is gone."""

    def __init__(self, directory: Path) -> None:
        path = directory / "status"
        try:
            with path.open("rb") as file:
                self._memory = mmap.mmap(file.fileno(), STATUS_BYTES, prot=mmap.PROT_READ)
        except (OSError, ValueError) as error:
            raise _no_page(path, str(error)) from None
        self._changes = memoryview(self._memory).cast("Q")  # native order and size: one load
        if self._changes[0] != STATUS_MAGIC:
            raise _no_page(path, "it is not written yet")

    @property
    def changes(self) -> int:
        """Moves with every change: cheap to poll."""
        return self._changes[_CHANGES // 8]

    @property
    def output_bytes(self) -> int:
        """Size of the output file, all of it complete records. Cheap to poll."""
        return self._changes[_OUTPUT_BYTES // 8]

    def read(self) -> KeeperStatus:
        for _ in range(_TRIES):
            before = self.changes
            page = self._memory[:_READ_BYTES]
            if self.changes == before:
                break
        # After so many tries the keeper is just busy with output: each field is right by itself, as the keeper orders them.
        return _parse(page)


def _parse(page: bytes) -> KeeperStatus:
    values: dict[str, Any] = {}
    for field in STATUS:
        found = struct.unpack_from(f"={field.count}{_CODES[field.type]}", page, field.offset)
        values[field.name] = found if field.count > 1 else found[0]
    del values["magic"]
    values["state"] = TargetState(values["state"])
    values["stage"] = LaunchStage(values["stage"])
    return KeeperStatus(**values)


def _no_page(path: Path, reason: str) -> StrobeError:
    return StrobeError(Code.PROCESS_EXITED, f"{path} is no keeper's status page: {reason}.", "Launch the program again.", value=str(path))


def write_ended(directory: Path, pid: int, wait_status: int | None) -> None:
    """The page and the empty output of a keeper that is gone, whose target `pid` ended like that: what there is of a core dump's."""
    values = {
        "magic": STATUS_MAGIC, "changes": 1, "state": TargetState.EXITED, "pid": pid, "wait_status": wait_status or 0,
        "wait_known": int(wait_status is not None), "exited_ns": time.monotonic_ns(), "stream_ended": (1, 1),
    }  # fmt: skip
    page = bytearray(STATUS_BYTES)
    for field in STATUS:
        found = values.get(field.name, (0,) * field.count)
        struct.pack_into(f"={field.count}{_CODES[field.type]}", page, field.offset, *(found if isinstance(found, tuple) else (found,)))
    for name, content in (("status", bytes(page)), ("output", b"")):
        (directory / name).write_bytes(content)
        (directory / name).chmod(0o600)
