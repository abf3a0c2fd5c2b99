"""Which file's code is mapped where: a library may go, and another come to its place, between a look at a target and a change of its code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

Stretch = tuple[int, int, str]  # first address, end, and offset, device and inode as maps has them


@dataclass(frozen=True, slots=True)
class CodeMap:
    """Executable mappings."""

    stretches: frozenset[Stretch]

    @classmethod
    def parse(cls, text: str) -> CodeMap:
        """From the text of a maps file (proc(5))."""
        found = set()
        for line in text.splitlines():
            parts = line.split(maxsplit=5)
            if parts[1][2] == "x":
                start, end = parts[0].split("-")
                found.add((int(start, 16), int(end, 16), " ".join(parts[2:5])))
        return cls(frozenset(found))

    @classmethod
    def read(cls, maps: str) -> CodeMap:
        return cls.parse(Path(maps).read_text(errors="surrogateescape"))

    def gone(self, now: CodeMap) -> list[Stretch]:
        """What is not there any more as it was."""
        return sorted(self.stretches - now.stretches)
