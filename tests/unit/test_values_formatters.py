"""A project's own formatters: used before those that come with Strobe; what is wrong with their files is told, with file and line."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any, Final

import pytest

from strobe.model import type_nodes as nodes
from strobe.model.types import FIRST_NODES, TypeTable
from strobe.values import forms
from strobe.values.memory import Missing
from strobe.values.places import stem, steps_of
from strobe.values.reader import Reader
from strobe.values.registry import FOLDER, Formatters
from strobe.values.rules import FILE_BYTES_MAX, KINDS, read_folder, read_text

LIST, NODE, POINTER, INT, TEXT, CHAR, LONG, STRING = range(2, 10)
TABLE: Final = TypeTable((
    *FIRST_NODES,
    nodes.Record("struct list", "c", "struct", 24, (nodes.Member("head", POINTER, 0), nodes.Member("used", LONG, 8), nodes.Member("name", TEXT, 16))),
    nodes.Record("struct node", "c", "struct", 24, (nodes.Member("key", INT, 0), nodes.Member("next", POINTER, 8), nodes.Member("value", INT, 16))),
    nodes.Pointer("struct node *", "c", 8, NODE), nodes.Integer("int", "c", 4, True), nodes.Pointer("char *", "c", 8, CHAR),
    nodes.Integer("char", "c", 1, True, "char"), nodes.Integer("long", "c", 8, True),
    nodes.Record("std::vector<int>", "c++", "class", 16, (nodes.Member("data", POINTER, 0), nodes.Member("used", LONG, 8))),
))  # fmt: skip
MEMORY: Final = {
    0x1000: struct.pack("<QQQ", 0x2000, 2, 0x3000), 0x2000: struct.pack("<iiQii", 1, 0, 0x2100, 10, 0), 0x2100: struct.pack("<iiQii", 2, 0, 0, 20, 0),
    0x3000: b"a list\0" + bytes(80),
}  # fmt: skip


class Pieces:
    def read(self, address: int, size: int) -> bytes | Missing:
        for start, data in MEMORY.items():
            if start <= address < start + len(data):
                found = data[address - start :][:size]
                return found if len(found) == size else Missing("unreadable", address + len(found))
        return Missing("unreadable", address)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / ".strobe" / "formatters"
    made.mkdir(parents=True)
    return made


def _shown(formatters: Formatters, number: int = LIST) -> Any:
    return Reader(TABLE, Pieces(), formatters).at(number, 0x1000)


def test_a_projects_list(folder: Path) -> None:
    assert _shown(Formatters.built_in())["used"] == 2
    (folder / "list.toml").write_text(
        '[[type]]\nname = "list"\nhas = ["head.value"]\nform = { kind = "text", data = "name" }\n'
        '[[type]]\nname = "list"\nhas = ["head"]\n[type.form]\nkind = "list"\nfirst = "head"\nnode = "*head"\nnext = "next"\nvalue = "value"\ncount = "used"\n'
    )
    formatters, warnings = Formatters.of(folder.parent.parent)
    assert warnings == [] and formatters.form(TABLE, LIST) == forms.Nodes(0, 8, 16, INT, 20, None, forms.Number(8, 8))
    assert _shown(formatters) == [10, 20]


def test_a_projects_formatter_wins_and_others_stay(folder: Path) -> None:
    (folder / "mine.toml").write_text('[[type]]\nname = "std::vec*"\nform = { kind = "hidden", words = "mine" }\n')
    formatters, warnings = Formatters.of(folder.parent.parent)
    assert warnings == [] and _shown(formatters, STRING) == "mine" and _shown(formatters)["name"] == "a list"


def test_without_a_folder(tmp_path: Path) -> None:
    assert Formatters.of(tmp_path) == (Formatters.built_in(), []) and Formatters.of(None) == (Formatters.built_in(), [])


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[[type]]\nname = "a"\nform = { kind = "lists" }', 1, "`kind` must be one of"),
        ('[[type]]\nname = "good"\nform = { kind = "hidden", words = "1" }\n[[type]]\nname = "b"', 4, "`form` is missing"),
        ('[[type]]\nform = { kind = "hidden", words = "x" }', 1, "`name`"),
        ('[[type]]\nname = "a"\nfrom = 1\nform = { kind = "hidden", words = "x" }', 1, "`from` is no key"),
        ('[[type]]\nname = "a"\nform = { kind = "hidden" }', 1, "needs `words`"),
        ('[[type]]\nname = "a"\nform = { kind = "text", data = "a..b" }', 1, "`data` must be a place"),
        ('[[type]]\nname = "a"\nform = { kind = "text", data = "a", code = "import os" }', 1, "`code` is no key of a form of kind text"),
        ('[[type]]\nname = "a"\nform = { kind = "sequence", data = "a", count = { at = "n", size = 3 } }', 1, "`count`"),
        ('[[type]]\nname = "a"\nform = { kind = "either", test = "t", low = 0, high = 1, then = 5, otherwise = 6 }', 1, "`form` must be a table"),
        ('[[type]]\nname = "a"\nhas = "b"\nform = { kind = "hidden", words = "x" }', 1, "`has` must be a list"),
        ('[[type]]\nname = "a"\nopaque = { size = 0, alignment = 8 }\nform = { kind = "hidden", words = "x" }', 1, "`opaque`"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(text: str, line: int, said: str) -> None:
    good = '\n[[type]]\nname = "good"\nform = { kind = "hidden", words = "good" }\n'
    rules, warnings = read_text(text + good, "f.toml")
    assert {rule.names for rule in rules} == {("good",)}
    (warning,) = warnings
    assert warning.startswith(f"f.toml, line {line}, type ") and said in warning


def test_files_that_can_not_be_used(folder: Path) -> None:
    (folder / "a.toml").write_text('[[type]]\nname = "open\n')
    (folder / "b.toml").write_bytes(b"\xff\xfe")
    (folder / "c.toml").write_text("#" * (FILE_BYTES_MAX + 1))
    (folder / "d.toml").mkdir()
    (folder / "e.toml").write_text("x = " + "[" * 5000)
    (folder / "f.toml").write_text("other = 1\ntype = 3")
    os.mkfifo(folder / "g.toml")
    (folder / "h.txt").write_text("not looked at")
    rules, warnings = read_folder(folder)
    assert rules == []
    for name, said in (("a", "line 2"), ("b", "UTF-8"), ("c", "KiB"), ("d", "not a file"), ("e", ""), ("f", "`other`"), ("g", "not a file")):
        assert any(f"{name}.toml" in warning and said in warning for warning in warnings), name
    assert not any("h.txt" in warning for warning in warnings)


def test_too_many_files(folder: Path) -> None:
    for index in range(70):
        (folder / f"{index:02}.toml").write_text(f'[[type]]\nname = "t{index}"\nform = {{ kind = "hidden", words = "x" }}\n')
    rules, warnings = read_folder(folder)
    assert len(rules) == 64 and any("70 formatter files" in warning for warning in warnings)


def test_what_comes_with_strobe_is_sound_and_documented() -> None:
    rules, warnings = read_folder(FOLDER)
    assert warnings == [] and len(rules) > 90
    readme = (FOLDER / "README.md").read_text()
    for kind, (needed, allowed) in KINDS.items():
        row = next(line for line in readme.splitlines() if line.startswith(f"| `{kind}` |"))
        assert all(f"`{key}`" in row for key in (*needed, *allowed)), kind


def test_names_and_paths() -> None:
    assert stem("std::__1::vector<int, std::__1::allocator<int> >") == "std::vector" and stem("struct list") == "list"
    assert (
        stem("std::vector<int>::iterator") == "std::vector<int>::iterator"
        and stem("f<(a->b)>") == "f"
        and stem("std::filesystem::__cxx11::path") == "std::filesystem::path"
    )
    assert steps_of("a.b[2].@1") == ("a", "b", "[2]", "@1") and steps_of("") == () and steps_of("@0") == ("@0",)
    assert [steps_of(path) for path in (".a", "a.", "a..b", "a b", "a[x]", "a@0", "1a")] == [None] * 7
