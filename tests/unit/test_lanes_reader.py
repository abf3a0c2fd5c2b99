"""The numpy reader against a plain one-entry-at-a-time model of the same layout."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from strobe.lanes.dtype import CHUNK_DTYPE, ENTRY_DTYPE, POOL_DTYPE
from strobe.lanes.layout import CHUNK, CHUNK_SLOTS, ENTRY, POOL, SLOT_BYTES
from strobe.lanes.reader import entries, gather, kinds, payload, payload_sizes, published


def plain_published(slot_map: NDArray[np.uint8], start: int, limit: int) -> tuple[list[int], int]:
    heads, at = [], start
    while at < limit and slot_map[at]:
        heads.append(at)
        at += int(slot_map[at])
    return heads, at


def chunk_with(sizes: list[int], holes: set[int]) -> tuple[NDArray[np.uint8], NDArray[np.uint8], list[int]]:
    slot_map = np.zeros(CHUNK_SLOTS, dtype=np.uint8)
    slots = np.zeros(CHUNK_SLOTS * SLOT_BYTES, dtype=np.uint8)
    heads, at = [], 0
    for number, size in enumerate(sizes):
        if at + size > CHUNK_SLOTS:
            break
        if number not in holes:
            slot_map[at] = size
        entry = slots[at * SLOT_BYTES : (at + 1) * SLOT_BYTES].view(ENTRY_DTYPE)[0]
        entry["ts"], entry["kind"], entry["slots"] = 1000 + number, 1 + number % 6, size
        slots[(at + 1) * SLOT_BYTES : (at + size) * SLOT_BYTES] = np.random.default_rng(number).integers(0, 256, (size - 1) * SLOT_BYTES, dtype=np.uint8)
        heads.append(at)
        at += size
    return slot_map, slots, heads


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(1, 255), max_size=300), st.sets(st.integers(0, 300), max_size=3), st.integers(0, 20))
def test_published_stops_at_the_first_gap_like_a_walk_does(sizes: list[int], holes: set[int], first: int) -> None:
    slot_map, _, heads = chunk_with(sizes, holes)
    starts = [0, *heads[first : first + 1]]
    for start in starts:
        for limit in (CHUNK_SLOTS, sum(sizes[: len(heads)])):
            found, end = published(slot_map, start, limit)
            assert (found.tolist(), end) == plain_published(slot_map, start, limit)


def test_nothing_published_and_a_gap_at_the_start() -> None:
    slot_map, _, heads = chunk_with([2, 3, 4], {0})
    assert published(slot_map, 0, CHUNK_SLOTS)[1] == 0
    assert published(slot_map, heads[1], CHUNK_SLOTS)[0].tolist() == heads[1:]
    assert published(np.zeros(CHUNK_SLOTS, dtype=np.uint8), 0, CHUNK_SLOTS)[1] == 0


def test_headers_and_payloads_are_those_written() -> None:
    slot_map, slots, heads = chunk_with([2, 1, 5, 255, 2, 3], set())
    found, end = published(slot_map, 0, CHUNK_SLOTS)
    assert found.tolist() == heads and end == 268
    assert entries(slots, found)["ts"].tolist() == [1000, 1001, 1002, 1003, 1004, 1005]
    assert kinds(slots, found).tolist() == [1, 2, 3, 4, 5, 6]
    assert payload_sizes(slot_map, found).tolist() == [32, 0, 128, 254 * 32, 32, 64]
    with_payload = found[payload_sizes(slot_map, found) > 0]
    for offset, dtype in [(0, np.uint64), (4, np.uint32), (3, np.uint64), (7, np.uint16), (31, np.uint8), (24, np.float64)]:
        wanted = [np.frombuffer(payload(slots, slot_map, int(head)), dtype=dtype, count=1, offset=offset)[0] for head in with_payload]
        got = gather(slots, with_payload, offset, dtype)
        assert got.tobytes() == np.array(wanted, dtype=dtype).tobytes()


def test_gather_reaches_the_very_last_bytes() -> None:
    _, slots, _ = chunk_with([255] * 31, set())
    last = np.array([CHUNK_SLOTS - 2])
    assert gather(slots, last, 24, np.uint64).tobytes() == slots[-8:].tobytes()
    assert gather(slots, last, 31, np.uint8)[0] == slots[-1]
    assert gather(slots, last, 27, np.uint32).tobytes() == slots[-5:-1].tobytes()


def test_numpy_types_lie_where_the_layout_says() -> None:
    for fields, dtype in ((POOL, POOL_DTYPE), (CHUNK, CHUNK_DTYPE), (ENTRY, ENTRY_DTYPE)):
        assert dtype.fields is not None
        assert {field.name: field.offset for field in fields} == {name: place[1] for name, place in dtype.fields.items()}
