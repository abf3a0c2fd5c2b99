"""What the collector needs of the data stream to the store; strobe.runtime.stream.StreamProducer is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Buffer = bytes | bytearray | memoryview


class BatchStream(Protocol):
    """Sends batches in order and keeps each until it is acknowledged. A frame's memory must not change before that."""

    @property
    def window_free(self) -> int:
        """How many batches may be sent now."""
        ...

    @property
    def acked(self) -> int:
        """Everything up to this seq is committed by the store."""
        ...

    @property
    def resume(self) -> bytes | None:
        """The `resume` of the last batch that the store committed before this stream began."""
        ...

    def hello(self, timeout_ms: int) -> bool:
        """True once the store has told where it stands; nothing can be sent before."""
        ...

    def send(self, kind: str, header: dict[str, Any], frames: Sequence[Buffer]) -> int | None:
        """The batch's seq, counted from 1; None when the window is full."""
        ...

    def poll(self, timeout_ms: int) -> int:
        """Waits for acknowledgements, at most so long; answers the last acknowledged seq."""
        ...

    def close(self) -> None: ...
