"""Evidence bundles: what was put in comes out, and whatever somebody did to the file is refused with a reason."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import stat
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from strobe.errors import StrobeError
from strobe.evidence.manifest import MANIFEST, name_problem
from strobe.evidence.reading import Bundle, Refused
from strobe.evidence.traces import TraceWriter, first_events
from strobe.evidence.writing import BundleWriter
from strobe.redaction import Redactor

FACTS: dict[str, Any] = {
    "format": 1, "created_at": "2026-11-23T00:00:00+00:00", "strobe": "0.1.0", "python": "3.11", "platform": "Linux", "project": "demo",
    "command": ["strobe-ci"], "environment": ["PATH"],
}  # fmt: skip
SECRET = "password=hunter2hunter2"


def make(path: Path, **texts: str) -> str:
    with BundleWriter(path, Redactor()) as bundle:
        bundle.json("results.json", {"result": {"passed": 1}, "apiKey": "abcdefgh12345"})
        for name, text in {"sources/a.c": f"int x; // {SECRET}\n", **texts}.items():
            bundle.text(name, text)
        return bundle.finish(FACTS)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    make(tmp_path / "evidence.zip")
    return tmp_path / "evidence.zip"


def rewritten(path: Path, changes: dict[str, bytes | None], more: list[tuple[zipfile.ZipInfo, bytes]] | None = None) -> Path:
    """A copy in which members have other contents (None: are missing), and further ones."""
    other = path.with_name("other.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = changes.get(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
        for info, content in more or []:
            new.writestr(info, content)
    return other


def manifest_with(path: Path, name: str, content: bytes) -> bytes:
    """The bundle's manifest with one more member, as a forger would write it."""
    with zipfile.ZipFile(path) as file:
        manifest = json.loads(file.read(MANIFEST))
    manifest["members"].append({"path": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    return json.dumps(manifest).encode()


def test_what_was_put_in_comes_out(bundle: Path, tmp_path: Path) -> None:
    with Bundle(bundle) as opened:
        assert json.loads(opened.read("results.json")) == {"result": {"passed": 1}, "apiKey": "<redacted>"}
        assert opened.read("sources/a.c") == b"int x; // password=<redacted>\n"
        assert json.loads(opened.read("redaction.json")) == {"enabled": True, "redacted": 2, "byMember": {"results.json": 1, "sources/a.c": 1}}
        assert opened.unpack(tmp_path / "new") == 4
        with pytest.raises(StrobeError, match="cannot be made"):
            opened.unpack(tmp_path / "new")
        with pytest.raises(StrobeError, match="no member"):
            opened.read("sources/b.c")
    assert (tmp_path / "new/sources/a.c").read_text().startswith("int x;")
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new/sources/a.c").stat().st_mode) == 0o600


def test_the_digest_stands_for_the_whole(tmp_path: Path) -> None:
    digest = make(tmp_path / "a.zip")
    forged = make(tmp_path / "b.zip", **{"sources/b.c": "more"})
    with Bundle(tmp_path / "a.zip", digest):
        pass
    with pytest.raises(Refused, match=forged):
        Bundle(tmp_path / "b.zip", digest)


def test_nothing_is_left_of_one_that_was_not_finished(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), BundleWriter(tmp_path / "evidence.zip", None) as bundle:
        bundle.text("a.txt", "text")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/../../b", "a\\..\\b", "a//b", "", ".", "c:/x", "a\x00b", "a\nb", "x" * 2000])
def test_names_that_lead_elsewhere(bundle: Path, tmp_path: Path, name: str) -> None:
    assert name_problem(name) is not None
    info = zipfile.ZipInfo("placeholder")
    info.filename = name
    other = rewritten(bundle, {MANIFEST: manifest_with(bundle, name, b"evil")}, [(info, b"evil")])
    with pytest.raises(Refused):
        Bundle(other)
    assert not (tmp_path.parent / "up").exists()


def test_links_doubles_and_strangers(bundle: Path) -> None:
    link = zipfile.ZipInfo("sources/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    for info, named, why in (
        (link, True, "no ordinary file"),
        (zipfile.ZipInfo("sources/a.c"), False, "twice"),
        (zipfile.ZipInfo("sources/b.c"), False, "does not name"),
    ):
        changes: dict[str, bytes | None] = {MANIFEST: manifest_with(bundle, info.filename, b"/etc/passwd")} if named else {}
        with pytest.warns(UserWarning, match="Duplicate") if why == "twice" else contextlib.nullcontext():
            other = rewritten(bundle, changes, [(info, b"/etc/passwd")])
        with pytest.raises(Refused, match=why):
            Bundle(other)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"results.json": b"{}"}, "short|changed"),
        ({"sources/a.c": b"int y; // password=<redacted>\n"}, "was changed"),
        ({"sources/a.c": b"much more than it said" * 9}, "more than the"),
        ({"results.json": None}, "missing"),
        ({MANIFEST: None}, "no evidence bundle"),
        ({MANIFEST: b"{"}, "damaged"),
        ({MANIFEST: b"[" * 100_000}, "damaged"),
        ({MANIFEST: b'{"format": 1}'}, "damaged"),
    ],
)
def test_what_was_changed_is_refused(bundle: Path, changes: dict[str, bytes | None], why: str) -> None:
    with pytest.raises(Refused, match=why):
        Bundle(rewritten(bundle, changes))


def test_a_later_format_is_no_damage(bundle: Path) -> None:
    with pytest.raises(StrobeError, match="later version") as raised:
        Bundle(rewritten(bundle, {MANIFEST: b'{"format": 99}'}))
    assert not isinstance(raised.value, Refused) or "later" in raised.value.next_step


def test_a_bomb_unpacks_no_more_than_it_says(bundle: Path) -> None:
    """A gigabyte of zeros in a megabyte, of which the directory says that it has ten bytes; and one that admits ten terabytes."""
    zeros = b"\0" * (64 << 20)
    other = rewritten(bundle, {MANIFEST: manifest_with(bundle, "zeros", zeros[:10])}, [(zipfile.ZipInfo("zeros"), zeros)])
    content = bytearray(other.read_bytes())
    _declare(content, b"zeros", 10)
    other.write_bytes(content)
    with pytest.raises(Refused, match="zeros"):
        Bundle(other)
    _declare(content, b"zeros", 0xFFFF_FFF0)
    other.write_bytes(content)
    with pytest.raises(Refused, match="zeros"):
        Bundle(other)


def _declare(content: bytearray, name: bytes, size: int) -> None:
    """Another unpacked size for a member, in both of its headers (APPNOTE 4.3.7, 4.3.12)."""
    at = 0
    while (at := content.find(name, at)) >= 0:
        if content[at - 30 : at - 26] == b"PK\x03\x04":
            struct.pack_into("<I", content, at - 30 + 22, size)
        if content[at - 46 : at - 42] == b"PK\x01\x02":
            struct.pack_into("<I", content, at - 46 + 24, size)
        at += 1


def test_too_much_is_refused_unread(bundle: Path) -> None:
    many = [(zipfile.ZipInfo(f"sources/{number}"), b"") for number in range(10_050)]
    with pytest.raises(Refused, match="members, more than"):
        Bundle(rewritten(bundle, {}, many))


def test_cut_short_or_spoilt_anywhere(bundle: Path, tmp_path: Path) -> None:
    """Every shortening, and 400 files with random bytes changed: refused, or as it was (bytes that mean nothing)."""
    whole, other, choose = bundle.read_bytes(), tmp_path / "spoilt.zip", random.Random(3)
    spoilt = [whole[:length] for length in range(0, len(whole), 7)]
    for _ in range(400):
        changed = bytearray(whole)
        for _ in range(choose.randrange(1, 4)):
            changed[choose.randrange(len(changed))] = choose.randrange(256)
        spoilt.append(bytes(changed))
    refused = 0
    for content in spoilt:
        other.write_bytes(content)
        try:
            with Bundle(other) as opened:
                assert opened.read("sources/a.c") == b"int x; // password=<redacted>\n"
        except StrobeError as error:
            refused += 1
            assert error.what and error.next_step
    assert refused > len(spoilt) / 2


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip file", b"\x7fELF" + b"\0" * 500])
def test_what_is_no_bundle(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(Refused, match="no whole zip file"):
        Bundle(path)
    with pytest.raises(StrobeError, match="cannot be opened"):
        Bundle(tmp_path / "none")
    with pytest.raises(StrobeError, match="cannot be opened"):
        Bundle(tmp_path)


def test_traces_come_back_as_events(tmp_path: Path) -> None:
    events = [
        {"id": "a-1", "timestampNs": 5, "eventType": "function_enter", "function": "f", "arguments": [{"name": "x", "value": 3}], "sampled": True},
        {"id": "a-2", "timestampNs": 9, "eventType": "function_exit", "function": "f", "durationNs": 4, "returnValue": None},
        {"id": "a-3", "timestampNs": 9, "eventType": "stdout", "text": "line\n"},
    ]
    with TraceWriter(tmp_path / "t.parquet") as writer:
        writer.write(events[:2])
        writer.write(events[2:])
    shown, total = first_events((tmp_path / "t.parquet").read_bytes(), 10)
    assert total == 3 and shown == [{name: value for name, value in event.items() if name != "sampled"} for event in events]
    with pytest.raises(ValueError, match="no trace"):
        first_events(b"PAR1 no", 10)
