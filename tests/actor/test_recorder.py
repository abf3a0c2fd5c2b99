"""The native recorder without Frida or a session: calls, threads, handlers, values, losses. What leaves frames is in test_recorder_leaving."""

from __future__ import annotations

import re
import struct
import subprocess
from collections import Counter

import numpy as np
import pytest

from strobe.lanes.layout import EntryFlag, HookFlag, Kind, StringState
from tests.harness.recorder import recorder_library, run_selftest
from tests.harness.recording import check_calls
from tests.harness.targets import require

ENTER, EXIT, UNWIND, MARK = Kind.ENTER, Kind.EXIT, Kind.UNWIND, Kind.OUTPUT_MARK


def test_library_stands_alone() -> None:
    """No libc symbol, no string instruction (the direction flag may be set), no vector register but to store those that hold arguments or results."""
    undefined = subprocess.run([require("nm"), "-D", "--undefined-only", recorder_library()], capture_output=True, text=True, check=True)
    assert undefined.stdout.strip() == ""
    code = subprocess.run([require("objdump"), "-d", "--no-show-raw-insn", recorder_library()], capture_output=True, text=True, check=True).stdout
    instructions = [line.split("\t", 2)[1] for line in code.splitlines() if line.count("\t") >= 1]
    assert len(instructions) > 1000
    assert [text for text in instructions if re.match(r"(rep|movs[bwlq] +%ds|stos|lods|scas|cmps[bwlq] +%)", text)] == []
    vectors = [text for text in instructions if re.search(r"%[xyz]mm", text)]
    assert {text.split()[0] for text in vectors} == {"movq", "movups", "vextractf128"}
    assert [text for text in vectors if not re.match(r"(mov(q|ups) +%xmm[0-7]|vextractf128 +\$0x1,%ymm[0-7]),[-0-9a-fx]*\(", text)] == [], "none is written to"


def test_nested_calls_exactly() -> None:
    run = run_selftest("calls.c", "nesting", 1)
    [entries] = run.recording.threads.values()
    seen = [(int(e["kind"]), int(e["hook"])) for e in entries]
    leaf = [(ENTER, 1), (EXIT, 1)]
    middle = [(ENTER, 2), *leaf, *leaf, (EXIT, 2)]
    assert seen == [(ENTER, 3), *middle, *middle, *leaf, (EXIT, 3)]
    check_calls(entries)
    assert (np.diff(entries["ts"].astype(np.int64)) >= 0).all()
    values = [struct.unpack_from("<QQ", payload) for entry, payload in run.recording.entries_with_payload() if entry["kind"] == ENTER and entry["hook"] == 1]
    results = [int(e["word"]) for e in entries if e["kind"] == EXIT and e["hook"] == 1]
    assert values == [(0, 1), (0, 2), (1, 1), (1, 2), (0, 9)]
    assert results == [a * 3 + b for a, b in values]


def test_spans_are_counted_within_the_thread() -> None:
    run = run_selftest("calls.c", "nesting", 50)
    [(thread, entries)] = run.recording.threads.items()
    spans = entries[entries["kind"] == ENTER]["span"]
    assert spans.tolist() == [(thread << 40) + i + 1 for i in range(50 * 8)]


def test_recursion_deeper_than_200k() -> None:
    depth = 250_000
    run = run_selftest("calls.c", "recursion", depth, chunks=192)
    assert run.numbers() == {"depth": depth + 1}
    [entries] = run.recording.threads.values()
    enters, exits = entries[: depth + 1], entries[depth + 1 :]
    assert (enters["kind"] == ENTER).all()
    assert (exits["kind"] == EXIT).all()
    assert (enters["word"][1:] == enters["span"][:-1]).all()
    assert (exits["span"] == enters["span"][::-1]).all()
    assert exits["word"].tolist() == list(range(1, depth + 2))


def test_all_registers_are_kept() -> None:
    run = run_selftest("calls.c", "registers", 20_000)
    assert run.stdout == "wrong 0 0\n"
    assert run.recording.count(EXIT, 1) == 20_000


def test_tail_calls_end_together() -> None:
    run = run_selftest("calls.c", "tails", 30)
    assert run.numbers() == {"sum": sum(i + 123 for i in range(30))}
    [entries] = run.recording.threads.values()
    once = [(ENTER, 1, 0), (ENTER, 2, EntryFlag.TAIL_CALL), (ENTER, 3, EntryFlag.TAIL_CALL), (EXIT, 3, 0), (EXIT, 2, 0), (EXIT, 1, 0)]
    assert [(e["kind"], e["hook"], e["flags"]) for e in entries] == once * 30
    check_calls(entries)


def test_threads_lose_nothing_uncounted() -> None:
    """8 threads × 100k calls of a function that makes two more, into a pool that cannot hold them: recorded + dropped = calls."""
    run = run_selftest("calls.c", "threads", 100_000, chunks=32)
    recording = run.recording
    for hook, calls in ((1, 1_600_000), (2, 800_000)):
        enters, exits = recording.count(ENTER, hook), recording.count(EXIT, hook)
        lost_exits = enters - exits
        assert enters + recording.hooks[hook][1] - lost_exits == calls
    assert recording.count(ENTER) + recording.dropped_by_kind[ENTER] == 2_400_000
    assert recording.count(ENTER) - recording.count(EXIT) == recording.dropped_by_kind[EXIT]
    assert recording.dropped_by_kind[ENTER] > 0
    assert int(run.pool.header["chunks_free"]) >= int(run.pool.header["reserve_chunks"])


def test_threads_while_chunks_are_freed() -> None:
    """Chunks go round between threads and collector; every call that is recorded is whole and nested."""
    run = run_selftest("calls.c", "threads", 20_000, chunks=64, drained=True)
    recording = run.recording
    assert recording.count(ENTER) + recording.dropped_by_kind[ENTER] == 480_000
    assert recording.count(ENTER) - recording.count(EXIT) == recording.dropped_by_kind[EXIT]
    spans = recording.all
    assert np.unique(spans[spans["kind"] == ENTER]["span"]).size == recording.count(ENTER)
    if not recording.dropped_by_kind[ENTER] + recording.dropped_by_kind[EXIT]:
        for entries in recording.threads.values():
            check_calls(entries)


def test_full_pool_keeps_the_oldest() -> None:
    run = run_selftest("calls.c", "nesting", 20_000, chunks=8)
    recording = run.recording
    [entries] = recording.threads.values()
    enters = entries[entries["kind"] == ENTER]
    dropped = sum(hook[1] for hook in recording.hooks.values())
    assert dropped == recording.dropped_by_kind[ENTER] + recording.dropped_by_kind[EXIT]
    assert enters.size + recording.dropped_by_kind[ENTER] == 160_000
    assert enters["span"].tolist() == list(range(int(enters["span"][0]), int(enters["span"][0]) + enters.size)), "what was kept is the beginning"
    assert len(recording.chunks) == 7, "one chunk is the reserve"


def test_marks_use_the_reserve_when_traces_are_dropped() -> None:
    run = run_selftest("calls.c", "flood", 20_000, chunks=8, mark_streams=True)
    recording = run.recording
    assert recording.dropped_by_kind[ENTER] > 0
    assert recording.dropped_by_kind[MARK] == 0
    assert recording.count(MARK) == 101, "100 writes, and stdout at the end"
    reserve = [chunk for chunk in recording.chunks if (chunk.entries["kind"] == MARK).any()]
    assert all((chunk.entries["kind"] == MARK).all() for chunk in reserve), "no trace record took room from the reserve"


def test_successive_threads_start_afresh() -> None:
    """Each has the thread pointer of the one before."""
    run = run_selftest("calls.c", "successors", 60)
    assert len(run.recording.threads) == 60
    for entries in run.recording.threads.values():
        assert entries.size == 18
        check_calls(entries)
    assert len({chunk.tid for chunk in run.recording.chunks}) == 60


@pytest.mark.parametrize("scenario", ["handlers", "handlers_elsewhere"])
def test_signal_handlers_anywhere(scenario: str) -> None:
    """A 10 kHz timer whose handler makes traced calls, on the same stack and on one of its own."""
    run = run_selftest("calls.c", scenario, 500, chunks=256, drained=True)
    numbers = run.numbers()
    recording = run.recording
    assert numbers["wrong"] == 0
    assert recording.count(ENTER) + recording.dropped_by_kind[ENTER] == 3 * numbers["calls"] + 2 * numbers["handled"]
    assert recording.count(UNWIND) == 0
    assert recording.count(ENTER) - recording.count(EXIT) == recording.dropped_by_kind[EXIT]
    if not recording.dropped_by_kind[ENTER] + recording.dropped_by_kind[EXIT]:
        [entries] = recording.threads.values()
        check_calls(entries, anywhere=4)
        assert recording.count(ENTER, 4) == numbers["handled"]


def test_hook_flags() -> None:
    off = run_selftest("calls.c", "nesting", 50, flags=0)
    assert off.recording.all.size == 0
    assert run_selftest("calls.c", "nesting", 50, prepare={"recording": 0}).recording.all.size == 0
    enters = run_selftest("calls.c", "nesting", 50, flags=HookFlag.ENABLED).recording
    assert enters.count(ENTER) == 400
    assert enters.count(EXIT) == 0
    assert set(enters.all["flags"].tolist()) == {EntryFlag.NO_EXIT}


def test_sampling_counts_every_call() -> None:
    """One of a hundred calls of each of two kinds that come in turns; the others are counted."""
    run = run_selftest("calls.c", "sampled", 400_000)
    recording = run.recording
    enters = recording.count(ENTER, 1)
    assert enters == recording.count(EXIT, 1)
    assert enters + recording.hooks[1][0] == 400_000
    assert set(recording.all["flags"].tolist()) == {EntryFlag.SAMPLED}
    kinds = Counter(struct.unpack_from("<I", payload)[0] for entry, payload in recording.entries_with_payload() if entry["kind"] == ENTER)
    assert set(kinds) == {0, 1}
    assert all(1_500 < number < 2_500 for number in kinds.values()), kinds


def test_strings_are_read_without_faults() -> None:
    run = run_selftest("calls.c", "strings")
    assert run.code == 0
    seen = {}
    for entry, payload in run.recording.entries_with_payload():
        if entry["kind"] == ENTER:
            number, _, offset, length, state = struct.unpack_from("<IIHHB", payload)
            seen[number] = (StringState(state), payload[offset : offset + length], bool(entry["flags"] & EntryFlag.TRUNCATED))
    ok, unreadable = StringState.OK, StringState.UNREADABLE
    assert seen == {
        1: (ok, b"literal", False), 2: (ok, b"", False), 3: (StringState.NULL, b"", False), 4: (ok, b"end..", False), 5: (unreadable, b"yyyyyy", False),
        6: (unreadable, b"", False), 7: (unreadable, b"", False), 8: (ok, b"on the stack", False), 9: (StringState.TRUNCATED, b"h" * 64, True),
        10: (ok, b"e" * 64, False), 11: (unreadable, b"", False),
    }  # fmt: skip


def test_floating_point_and_stack_arguments() -> None:
    run = run_selftest("calls.c", "doubles", 10)
    enters = [(int(e["hook"]), p) for e, p in run.recording.entries_with_payload() if e["kind"] == ENTER]
    assert [struct.unpack_from("<dqfxxxxd", p) for hook, p in enters if hook == 1] == [(0.5, i, 2.25, -1e300) for i in range(10)]
    assert [struct.unpack_from("<qHxxxxxxqi", p) for hook, p in enters if hook == 2] == [(1, 0x2346, i, -2) for i in range(10)]
    exits = [(e, p) for e, p in run.recording.entries_with_payload() if e["kind"] == EXIT]
    assert {struct.pack("<Q", int(e["word"])) for e, _ in exits if e["hook"] == 1} == {struct.pack("<d", -1e300)}
    results = [1 + 2 + 3 + 4 + 5 + 0x12346 + i - 2 for i in range(10)]
    assert [struct.unpack_from("<I", p)[0] for e, p in exits if e["hook"] == 2] == results


def test_fallback_entry_points() -> None:
    run = run_selftest("calls.c", "managed", 20)
    [entries] = run.recording.threads.values()
    check_calls(entries)
    assert [(e["kind"], e["hook"]) for e in entries] == [(ENTER, 1), (ENTER, 2), (EXIT, 2), (EXIT, 1)] * 20
    assert [int(e["word"]) for e in entries if e["kind"] == EXIT and e["hook"] == 1] == [1000 + i for i in range(20)]


def test_output_marks_stand_among_the_calls() -> None:
    run = run_selftest("calls.c", "output", 5, mark_streams=True)
    assert run.code == 0, run.stderr
    [entries] = run.recording.threads.values()
    seen = [("call", 1) if e["kind"] == ENTER else (int(e["hook"]), int(e["word"])) for e in entries if e["kind"] in (ENTER, MARK)]
    assert seen == [("call", 1), (1, 7), ("call", 1), (2, 2), (1, 11)] * 5
    total = {stream: sum(int(e["word"]) for e in entries if e["kind"] == MARK and e["hook"] == stream) for stream in (1, 2)}
    assert total == {1: len(run.stdout), 2: len(run.stderr)}
