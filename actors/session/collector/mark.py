"""The resume mark: where a collector stands, in every batch it sends. The store commits it with the batch's rows, and a successor goes on from there.

msgpack of {v, chunks: {index: [serial, slots sent]}, file: offset in the output file, printed: Printed.state(), losses: Losses.state(),
crashes: [[page, ts]]}.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from strobe.runtime.envelope import pack, unpack

VERSION: Final = 3


@dataclass(frozen=True)
class ResumeMark:
    chunks: dict[int, tuple[int, int]] = field(default_factory=dict)
    file: int = 0
    printed: Any = None
    losses: Any = None
    crashes: tuple[tuple[int, int], ...] = ()

    def pack(self) -> bytes:
        return pack({"v": VERSION, "chunks": self.chunks, "file": self.file, "printed": self.printed, "losses": self.losses, "crashes": self.crashes})

    @classmethod
    def unpack(cls, content: bytes | None) -> ResumeMark:
        """A mark of the beginning when there is none. ValueError for one of another version."""
        if not content:
            return cls()
        found = unpack(content)
        if found["v"] != VERSION:
            raise ValueError(f"a resume mark of version {found['v']}, not {VERSION}")
        return cls(
            chunks={index: (serial, slots) for index, (serial, slots) in found["chunks"].items()},
            file=found["file"],
            printed=found["printed"],
            losses=found["losses"],
            crashes=tuple((page, ts) for page, ts in found["crashes"]),
        )
