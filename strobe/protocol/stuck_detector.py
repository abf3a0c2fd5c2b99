"""What the stuck-detector answers. It samples the process trees it was told of."""

from __future__ import annotations

from typing import Any, ClassVar

from strobe.protocol.base import Ask, Reply


class DiagnoseReply(Reply):
    threads: list[dict[str, Any]]  # tid, name, state, wchan, syscall, cpuNs
    cpu_share: float  # of one core, over the sampling window
    idle_ms: int  # since the tree last used CPU


class Diagnose(Ask):
    """Samples the process tree of `pid` now."""

    TYPE: ClassVar = "stuck_detector.diagnose"
    REPLY: ClassVar[type[Reply]] = DiagnoseReply
    pid: int
