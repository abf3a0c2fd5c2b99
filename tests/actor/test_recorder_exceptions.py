"""What UNWIND records say of the C++ exception or Rust panic that ended a call: its type and, where the layout tells, its message."""

from __future__ import annotations

import struct

import pytest

from strobe.lanes.layout import EntryFlag, Kind, StringState
from tests.harness.recorder import Run, run_preloaded, run_selftest
from tests.harness.targets import program

STRING = struct.Struct("<HHB")
Said = tuple[str, str | None]
STRINGS = {"libstdc++": "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", "libc++": "NSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEEE"}
BUILDS = {"libstdc++": ("g++", ("-O2", "-rdynamic")), "libc++": ("clang++", ("-O2", "-rdynamic", "-stdlib=libc++"))}


def said(payload: bytes) -> Said | None:
    """(type, message) of an UNWIND record; None: it has no payload."""
    texts: list[str | None] = []
    for at in (0, STRING.size + 3) if payload else ():
        offset, length, state = STRING.unpack_from(payload, at)
        known = state in (StringState.OK, StringState.TRUNCATED)
        texts.append(payload[offset : offset + length].decode() if known else None)
    return (texts[0] or "", texts[1]) if texts else None


def unwound(run: Run) -> list[tuple[int, Said | None, bool]]:
    """(hook, what it says, whether the message was cut) of each UNWIND record."""
    found = [(entry, payload) for entry, payload in run.recording.entries_with_payload() if entry["kind"] == Kind.UNWIND]
    return [(int(entry["hook"]), said(payload), bool(entry["flags"] & EntryFlag.TRUNCATED)) for entry, payload in found]


@pytest.mark.parametrize("library", BUILDS)
def test_types_and_messages(library: str) -> None:
    compiler, build = BUILDS[library]
    run = run_selftest("exceptions.cpp", "thrown", build=build, compiler=compiler)
    assert run.code == 0, run.stderr
    expected: list[Said] = [
        ("St12out_of_range", "no such index"),
        ("7Derived", "derived from one"),
        ("4Both", "the second of two bases"),
        ("6Shared", None),
        ("i", None),
        ("PKc", "a literal"),
        (STRINGS[library], "a string that is too long to lie in its own object" if library == "libstdc++" else None),
        ("4Bare", None),
        ("5Plain", None),
        ("St13runtime_error", "thrown again"),
        ("8VeryLong", "l" * 1024),
        ("NSt3__112system_errorE" if library == "libc++" else "St12system_error", "opening: No such file or directory"),
        ("St13runtime_error", ""),
        ("St9bad_alloc", None),
    ]
    assert unwound(run) == [(hook, one, (one[1] or "").startswith("lll")) for one in expected for hook in (1, 2)]


def test_rethrown_and_nested() -> None:
    """Calls that a rethrown exception left, with destructors that make calls on the way."""
    run = run_selftest("exceptions.cpp", "throwing", 21, build=("-O2", "-rdynamic"))
    assert {one for _, one, _ in unwound(run)} == {("St13runtime_error", f"odd {number}") for number in range(1, 22, 2)}


def test_what_is_no_exception_says_nothing() -> None:
    jumps = run_selftest("calls.c", "jumps", 20, environment={"SELFTEST_INTERNALS": "1"})
    cancelled = run_selftest("exceptions.cpp", "cancelling", build=("-O2", "-rdynamic"))
    for run in (jumps, cancelled):
        assert {one for _, one, _ in unwound(run)} == {None}


def test_panics() -> None:
    run = run_preloaded(program("native_selftest/panics.rs", "-O"), ["caught"], "selftest_*")
    assert run.code == 0, run.stderr
    messages = [one for _, one, _ in unwound(run)]
    literal = "odd, and the message is a literal"
    expected = [("panic", literal if number % 4 == 3 else f"odd {number}") for number in range(1, 20, 2)]
    assert messages == [one for one in expected for _ in range(2)]
