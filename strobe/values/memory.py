"""Where values are read from: the image of an event, a live process, or a few bytes; all behind one protocol."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from strobe.lanes.layout import REGION_BYTES, RegionState

_HEAD: Final = struct.Struct("<QII")
assert _HEAD.size == REGION_BYTES
PAYLOAD_BASE: Final = 0xFFFF_FF00_0000_0000  # where an entry's payload is "mapped": no user address of x86_64


@dataclass(frozen=True, slots=True)
class Missing:
    """Bytes that are not there. `unreadable`: the target had none at `address`. `cut`: a limit. `uncaptured`: nobody copied them."""

    reason: Literal["unreadable", "cut", "uncaptured"]
    address: int

    def __str__(self) -> str:
        return f"<unreadable {self.address:#x}>" if self.reason == "unreadable" else "<cut>" if self.reason == "cut" else "<not captured>"


class Memory(Protocol):
    def read(self, address: int, size: int) -> bytes | Missing:
        """Exactly `size` bytes, or why not (`address` in it is the first that is not there)."""


@dataclass(frozen=True, slots=True)
class Region:
    address: int
    data: bytes
    state: RegionState


class Image:
    """What an entry's capture plan copied: its payload, mapped at PAYLOAD_BASE, and its regions at their own addresses.

    Regions that touch or overlap read as one. Comes from memory that the target can write to: damaged regions end the image, never more.
    """

    def __init__(self, payload: bytes, regions: Sequence[Region] = ()) -> None:
        self._regions = sorted([Region(PAYLOAD_BASE, payload, RegionState.OK), *regions], key=lambda region: region.address)
        self._starts = [region.address for region in self._regions]
        self._longest = max(len(region.data) for region in self._regions)

    @classmethod
    def of(cls, payload: bytes, descriptor: int | None) -> Image:
        """`descriptor`: payload offset of the image's STRING descriptor (Plan.image); None: the payload alone."""
        if descriptor is None or descriptor + 8 > len(payload):
            return cls(payload)
        offset, length = struct.unpack_from("<HH", payload, descriptor)
        return cls(payload, parse_regions(payload[offset : offset + length]))

    def read(self, address: int, size: int) -> bytes | Missing:
        index = bisect.bisect_right(self._starts, address) - 1
        if index >= 0:  # nearly always one region has it all
            region = self._regions[index]
            found = region.data[address - region.address : address - region.address + size]
            if len(found) == size:
                return found
        return self._pieces(address, size)

    def _pieces(self, address: int, size: int) -> bytes | Missing:
        found = bytearray()
        at = address
        while len(found) < size:
            region = self._holding(at)
            if isinstance(region, Missing):
                return region
            taken = region.data[at - region.address : at - region.address + size - len(found)]
            found += taken
            at += len(taken)
        return bytes(found)

    def _holding(self, address: int) -> Region | Missing:
        """The region that has the byte at `address`; of several the one that begins last."""
        index = bisect.bisect_right(self._starts, address) - 1
        missing: Missing | None = None
        while index >= 0 and self._starts[index] + self._longest >= address:
            region = self._regions[index]
            over = address - region.address
            if over < len(region.data):
                return region
            if over == len(region.data) and region.state != RegionState.OK:
                missing = Missing("unreadable" if region.state == RegionState.UNREADABLE else "cut", address)
            index -= 1
        return missing or Missing("uncaptured", address)


def parse_regions(image: bytes) -> list[Region]:
    regions: list[Region] = []
    at = 0
    while at + REGION_BYTES <= len(image):
        address, size, state = _HEAD.unpack_from(image, at)
        at += REGION_BYTES
        if size > len(image) - at or state > max(RegionState):
            break
        regions.append(Region(address, image[at : at + size], RegionState(state)))
        at += (size + 7) & ~7
    return regions
