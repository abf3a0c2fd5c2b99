"""The keeper's status page (agent/native/KEEPER.md): one layout for its C writer and its Python readers."""

from __future__ import annotations

import enum
from typing import Final

from strobe.lanes.layout import Field

STATUS_MAGIC: Final = 0x5453504545_4B5453  # "STKEEPST"
STATUS_BYTES: Final = 4096
STATUS: Final = (
    Field("magic", 0, "u64"),
    Field("changes", 8, "u64"),  # incremented after every change
    Field("state", 16, "u32"),  # TargetState
    Field("keeper_pid", 20, "u32"),
    Field("pid", 24, "u32"),  # the target's, 0 before the fork
    Field("stage", 28, "u32"),  # LaunchStage, where errno happened
    Field("errno", 32, "i32"),
    Field("wait_status", 36, "u32"),  # as of wait(2), valid once EXITED
    Field("started_ns", 40, "u64"),  # CLOCK_MONOTONIC just before exec
    Field("exited_ns", 48, "u64"),
    Field("output_bytes", 56, "u64"),  # size of the output file, all of it complete records
    Field("stream_bytes", 64, "u64", 2),  # bytes of stdout, stderr
    Field("stream_ended", 80, "u32", 2),
    Field("stream_dev", 88, "u64", 2),  # st_dev, st_ino of the target's ends of the pipes or pty
    Field("stream_ino", 104, "u64", 2),
    Field("reaped", 120, "u64"),  # orphans of the tree reaped so far
    Field("disk_full_ns", 128, "u64"),  # since when output waits for disk space; 0 when it does not
    Field("start_ticks", 136, "u64"),  # field 22 of /proc/PID/stat: tells a reused pid
    Field("wait_known", 144, "u32"),  # 0 once EXITED: how it ended is not known (a process that was watched, not launched)
)


class TargetState(enum.IntEnum):
    STARTING = 0
    STOPPED = 1  # at its first instruction, waiting for SIGCONT
    RUNNING = 2
    EXITED = 3
    FAILED = 4  # never ran: see stage and errno


class LaunchStage(enum.IntEnum):
    NONE = 0
    READ_LAUNCH = 1
    PIPES = 2
    FORK = 3
    CHDIR = 4
    EXEC = 5
    TRACE = 6
    WATCH = 7
