"""What native_selftest programs say of their images (walk_plans.h) against what was recorded."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable

from strobe.lanes.layout import REGION_BYTES, EntryFlag, Kind, RegionState
from strobe.values.memory import Image, Region, parse_regions
from tests.harness.recorder import Run

DESCRIPTOR = 16  # payload offset; before it the object's address and the call's number


class Images:
    """The images of a run's calls, by the number that a call was given."""

    def __init__(self, run: Run, hook: int = 1) -> None:
        self.payloads: dict[int, bytes] = {}
        self.flags: dict[int, EntryFlag] = {}
        for entry, payload in run.recording.entries_with_payload():
            if entry["kind"] == Kind.ENTER and entry["hook"] == hook:
                number = struct.unpack_from("<q", payload, 8)[0]
                self.payloads[number] = payload
                self.flags[number] = EntryFlag(int(entry["flags"]))

    def regions(self, call: int) -> list[Region]:
        payload = self.payloads[call]
        offset, length = struct.unpack_from("<HH", payload, DESCRIPTOR)
        found = parse_regions(payload[offset : offset + length])
        assert sum(REGION_BYTES + (len(region.data) + 7) // 8 * 8 for region in found) == length, "the image is regions and nothing else"
        return found

    def image(self, call: int) -> Image:
        return Image.of(self.payloads[call], DESCRIPTOR)

    def expect(self, call: int, address: str, content: str) -> None:
        wanted = bytes.fromhex(content)
        assert self.image(call).read(int(address, 16), len(wanted)) == wanted, f"call {call}: {address}"

    def absent(self, call: int, address: str) -> None:
        assert not isinstance(self.image(call).read(int(address, 16), 1), bytes), f"call {call}: {address}"

    def state(self, call: int, address: str, state: str, size: str) -> None:
        found = [(region.state, len(region.data)) for region in self.regions(call) if region.address == int(address, 16)]
        assert (RegionState(int(state)), int(size)) in found, f"call {call}: {address} is {found}"

    def count(self, call: int, number: str) -> None:
        assert len(self.regions(call)) == int(number), f"call {call}: {self.regions(call)}"


def check(run: Run) -> tuple[Images, Counter[str]]:
    """Holds everything a program says against its images; answers them and how often each word was said."""
    assert run.code == 0, run.stderr
    images = Images(run)
    words: dict[str, Callable[..., None]] = {"expect": images.expect, "absent": images.absent, "state": images.state, "regions": images.count}
    said: Counter[str] = Counter()
    truncated = set()
    for line in run.stdout.splitlines():
        word, *rest = line.split()
        if word in words:
            words[word](int(rest[0]), *rest[1:])
            said[word] += 1
        elif word == "truncated":
            truncated.add(int(rest[0]))
    if "budget" not in run.stdout:
        assert {call for call, flags in images.flags.items() if flags & EntryFlag.TRUNCATED} == truncated
    return images, said
