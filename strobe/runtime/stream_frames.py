"""What travels on a data stream. Producer (DEALER) → consumer (ROUTER):

    [H][{session, epoch, seq}]                 HELLO: first, after 250 ms without progress, and when asked (N). seq: last sent
    [B][{session, epoch, seq, kind, …}][raw]…  a batch; the first of an epoch also has base: [epoch, seq] it continues from
Consumer → producer:
    [H][{epoch, seq, resume, received, heard}] what is committed for the session; `received`: last seq taken of the producer's epoch;
                                               `heard`: the seq its HELLO named
    [A][{epoch, seq}]                          committed up to seq, cumulative
    [N][{epoch, seq}]                          a gap: say HELLO
    [S][{epoch}]                               superseded: a later epoch of this session exists

Headers are msgpack maps. An epoch is one producer's life (ns since the Unix epoch at its start: later is larger), seq counts from 1 in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

WINDOW: Final = 64
HELLO: Final = b"H"
BATCH: Final = b"B"
ACK: Final = b"A"
GAP: Final = b"N"
SUPERSEDED: Final = b"S"

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Position:
    """What is committed of one session: everything up to `seq` of `epoch`; `resume` came with that batch. (0, 0): nothing yet."""

    epoch: int = 0
    seq: int = 0
    resume: bytes | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    session: str
    epoch: int
    seq: int
    kind: str
    header: dict[str, Any]  # the whole of it: what the producer gave to `send`, and session, epoch, seq, kind
    frames: list[memoryview]  # valid as long as they are referenced
    peer: bytes


class SupersededError(Exception):
    """A later producer of this session exists: this one must end and touch nothing more."""
