"""Stage 1 on real files: functions, aliases, clones, indirect functions; damaged and foreign files."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from actors.indexer.binary import Library
from actors.indexer.elf import ElfFile
from actors.indexer.resolver import Resolver
from actors.indexer.symbols import read_table
from strobe.errors import Code, StrobeError
from strobe.protocol.indexer import ResolveReply
from tests.harness.gdb import entries
from tests.harness.targets import program, require

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path / "home"))


def _resolve(
    path: Path | str, *patterns: str, others: tuple[str, ...] = (), limit: int = 10_000, symbols_path: str | None = None, root: str = "/nonexistent"
) -> ResolveReply:
    library = Library()
    resolver = Resolver(lambda one: library.open(one, symbols_path), [str(path), *others], [str(path)], root, limit)
    return resolver.resolve(patterns)


def test_every_function_of_nm_is_found() -> None:
    path = program("indexer/symbols.c", "-O2")
    table = read_table(ElfFile.open(str(path)), ".symtab")
    assert table is not None
    ours = {table.name(row): int(table.values[row]) for row in range(len(table)) if not table.indirect[row]}
    theirs = {name: address for name, address in entries(path).items() if name not in ("indirect", "data_start")}  # the latter is weak data
    assert {name: ours.get(name) for name in theirs} == theirs


def test_aliases_are_one_place_under_the_plainest_name_that_answers() -> None:
    path = program("indexer/symbols.c", "-O2")
    assert [place.function for place in _resolve(path, "*plain*").places] == ["plain"]
    assert [place.function for place in _resolve(path, "__plain_internal").places] == ["__plain_internal"]
    assert [place.function for place in _resolve(path, "plain", "weak_plain").places] == ["plain"]


def test_shared_string_tails() -> None:
    path = program("indexer/symbols.c", "-O2")
    assert [place.function for place in _resolve(path, "name").places] == ["name"]
    assert {place.function for place in _resolve(path, "*name").places} == {"name", "tail_of_name"}


def test_clones_are_told_by_name_and_cold_parts_left_out() -> None:
    path = program("indexer/symbols.c", "-O2", "-fno-inline")
    names = [name for name in entries(path) if name.startswith("cloned")]
    assert any("." in name for name in names), "this compiler makes no clone here"
    places = _resolve(path, "cloned").places
    assert {place.function_raw for place in places} == set(names)
    assert {place.function for place in places} == {"cloned"}
    path = program("indexer/abi.cpp", "-O2")
    assert any(name.endswith(".cold") for name in entries(path))
    assert not [place for place in _resolve(path, "**").places if ".cold" in place.function_raw]


def test_nested_functions_answer_to_both_names() -> None:
    path = program("indexer/symbols.c", "-O0")
    raw = next(name for name in entries(path) if name.startswith("counter."))
    assert [place.function for place in _resolve(path, "counter").places] == [raw]
    assert [place.function for place in _resolve(path, raw).places] == [raw]


def test_indirect_functions_are_refused_with_the_reason() -> None:
    reply = _resolve(program("indexer/symbols.c", "-O2"), "indirect")
    assert not reply.places
    assert "IFUNC" in (reply.patterns[0].explanation or "")


def test_start_files_answer_to_their_exact_name_only() -> None:
    path = program("indexer/symbols.c", "-O2")
    assert not {"_start", "frame_dummy"} & {place.function for place in _resolve(path, "**").places}
    assert [place.function for place in _resolve(path, "_start").places] == ["_start"]


def test_other_modules_are_asked_after_the_program() -> None:
    path = program("indexer/symbols.c", "-O2")
    assert {place.module for place in _resolve(path, "printf", others=(LIBC,)).places} == {LIBC}
    assert {place.module for place in _resolve(path, "*plain*", others=(LIBC,)).places} == {str(path)}
    assert {place.module for place in _resolve(path, "**", others=(LIBC,)).places} == {str(path)}


def test_limit() -> None:
    reply = _resolve(program("indexer/names.cpp", "-O0"), "**", limit=10)
    assert len(reply.places) == 10 and reply.truncated and reply.patterns[0].matched > 10


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("validate", ["scopes", "`auth::validate`", "`**::validate`"]),
        ("net::Conection::send", ["`net::Connection::send`"]),
        ("parse_heder", ["`parse_header`"]),
        ("zzzzzzzzzz", ["stays"]),
        ("@file:nosuch.c", ["names.cpp"]),
    ],
)
def test_no_match_is_explained(pattern: str, words: list[str]) -> None:
    reply = _resolve(program("indexer/names.cpp", "-O0"), pattern)
    assert not reply.places
    explanation = reply.patterns[0].explanation or ""
    assert not [word for word in words if word not in explanation], explanation


def test_inlined_function_is_explained_with_its_callers(tmp_path: Path) -> None:
    reply = _resolve(program("indexer/deep_crash.cpp", "-O2"), "poke")
    explanation = reply.patterns[0].explanation or ""
    assert "inlined" in explanation and "on_signal (line 25)" in explanation


def _compiled(folder: Path, source: str, *options: str) -> Path:
    (folder / "shop.c").write_text(source)
    subprocess.run([require("gcc"), *options, "-o", str(folder / "shop"), str(folder / "shop.c")], check=True)
    return folder / "shop"


def test_a_program_older_than_its_source_is_told(tmp_path: Path) -> None:
    path = _compiled(tmp_path, "int main(void) { return 0; }", "-g")
    (tmp_path / "shop.c").write_text("int other(int a)\n{\n    return refund(a);\n}\nint refund(int cents)\n{\n    return cents;\n}\n")
    os.utime(tmp_path / "shop.c", (time.time() + 60, time.time() + 60))
    explanation = _resolve(path, "refund", root=str(tmp_path)).patterns[0].explanation or ""
    assert "`refund` is in shop.c:5" in explanation and "build it again" in explanation, explanation
    os.utime(tmp_path / "shop.c", (1, 1))
    explanation = _resolve(path, "refund", root=str(tmp_path)).patterns[0].explanation or ""
    assert "but not in shop" in explanation and "build it again" not in explanation, explanation


def test_without_debug_info_what_to_do_is_told(tmp_path: Path) -> None:
    path = _compiled(tmp_path, "static inline int refund(int a) { return a * 3 + 1; }\nint main(int c, char **v) { (void)v; return refund(c); }", "-O2")
    explanation = _resolve(path, "refund").patterns[0].explanation or ""
    build_id = ElfFile.open(str(path)).build_id
    assert "no debug info" in explanation and "symbolsPath" in explanation and "-g" in explanation
    assert build_id is None or f".build-id/{build_id[:2]}/{build_id[2:]}.debug" in explanation
    source = "static inline int refund(int a) { return a * 3 + 1; }\nint main(int c, char **v) { (void)v; return refund(c); }"
    debugged = _compiled(tmp_path, source, "-O2", "-g")
    explanation = _resolve(debugged, "refund").patterns[0].explanation or ""
    assert "inlined" in explanation and "no debug info" not in explanation


def test_stripped_and_separate_debug_file(tmp_path: Path) -> None:
    path, stripped = program("indexer/names.cpp", "-O0"), tmp_path / "names"
    shutil.copy(path, stripped)
    subprocess.run([require("strip"), str(stripped)], check=True)
    reply = _resolve(stripped, "auth::validate")
    assert not reply.places and "stripped" in (reply.patterns[0].explanation or "")

    subprocess.run([require("objcopy"), "--only-keep-debug", str(path), str(tmp_path / "names.debug")], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={tmp_path / 'names.debug'}", str(stripped)], check=True, cwd=tmp_path)
    assert [place.function for place in _resolve(stripped, "auth::validate").places] == ["auth::validate"]  # beside it, by .gnu_debuglink
    elsewhere = tmp_path / "symbols"
    elsewhere.mkdir()
    (tmp_path / "names.debug").rename(elsewhere / "names.debug")
    assert not _resolve(stripped, "auth::validate").places
    found = _resolve(stripped, "auth::validate", symbols_path=str(elsewhere)).places
    assert [(place.function, place.file is not None) for place in found] == [("auth::validate", True)]
    build_id = ElfFile.open(str(stripped)).build_id
    assert build_id
    by_id = tmp_path / "store" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    by_id.parent.mkdir(parents=True)
    (elsewhere / "names.debug").rename(by_id)
    assert _resolve(stripped, "auth::validate", symbols_path=str(tmp_path / "store")).places
    wrong = program("indexer/names.cpp", "-O1")
    assert not _resolve(stripped, "auth::validate", symbols_path=str(wrong)).places, "another build's file is not believed"


def test_foreign_files_are_refused_in_words(tmp_path: Path) -> None:
    real = program("indexer/symbols.c", "-O2").read_bytes()
    cases = {
        "32-bit": real[:4] + b"\1" + real[5:],
        "aarch64": real[:18] + (183).to_bytes(2, "little") + real[20:],
        "not an ELF": b"#!/bin/sh\n",
        "cut short": real[:40],
        "empty": b"",
    }
    for words, content in cases.items():
        path = tmp_path / "file"
        path.write_bytes(content)
        with pytest.raises(StrobeError) as caught:
            ElfFile.open(str(path))
        assert caught.value.code == Code.VALIDATION_ERROR
        assert words in caught.value.what and str(path) in caught.value.what


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_give_answers_or_errors_never_a_crash(seed: int, tmp_path: Path) -> None:
    """Bytes flipped and files cut at random: names, types and lines of entries are read all the same, or refused in words."""
    chance = random.Random(seed)
    real = program("indexer/symbols.c", "-O2", *(["-gdwarf-4"] if seed % 2 else [])).read_bytes()
    for number in range(40):
        content = bytearray(real)
        if number % 4 == 0:
            del content[chance.randrange(64, len(content)) :]
        for _ in range(chance.choice([1, 10, 200])):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path = tmp_path / f"damaged{number}"
        path.write_bytes(content)
        begin = time.monotonic()
        try:
            binary = Library().open(str(path))
            found = [(int(table.values[row]), table.name(row)) for table in binary.tables for row in range(len(table))]
            binary.plans.get(found[:200], begin + 5)
            _resolve(path, "main", "nosuch", "split*")
        except StrobeError as error:
            assert error.what and error.next_step
        assert time.monotonic() - begin < 20


@pytest.mark.parametrize("kind", ["zlib", "zlib-gnu", "zstd"])
def test_compressed_debug_sections(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "compressed"
    command = [require("objcopy"), f"--compress-debug-sections={kind}", str(program("indexer/names.cpp", "-O0")), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this objcopy knows no {kind}")
    library = Library()
    binary = library.open(str(path))
    address = entries(path)["_ZN4auth8validateEPKc"]
    plans, _ = binary.plans.get([(address, "_ZN4auth8validateEPKc")], time.monotonic() + 60)
    assert plans[address].typed and plans[address].arguments[0].scalar == "cstring"
    assert not binary.plans.problems and not binary.elf.problems
