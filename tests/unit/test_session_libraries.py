"""Which libraries came and went, from texts of maps files, and what becomes of the hooks in them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from actors.session.journal import Journal
from actors.session.libraries import ASLEEP_MAX, Libraries
from actors.session.not_loaded import candidates
from actors.session.probes import Installed
from actors.session.ptrace.code_map import CodeMap
from strobe.model.probe import Hook, Place, Plan, Refused
from strobe.modules import mapped_modules, parse_mapped, placed
from strobe.protocol.session import Launch
from strobe.protocol.spawner import Patch

RAW = Plan(ops=b"", typed=False, arguments=[], result=None)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Some ELF file of the machine's own, under a name of ours."""
    source = next(module.path for module in mapped_modules(os.getpid()) if "libc.so" in module.path)
    return Path(shutil.copy(source, tmp_path / "libown.so"))


def maps(path: Path, *bases: int, inode: int = 77) -> str:
    lines = []
    for base in bases:
        lines += [
            f"{base:x}-{base + 0x1000:x} r--p 00000000 08:01 {inode}    {path}",
            f"{base + 0x1000:x}-{base + 0x3000:x} r-xp 00001000 08:01 {inode}    {path}",
            f"{base + 0x3000:x}-{base + 0x4000:x} rw-p 00003000 08:01 {inode}    {path}",
        ]
    return "\n".join([*lines, "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0    [stack]"])


def place(path: Path, offset: int = 0x1100) -> Place:
    return Place(pattern="f", function="f", function_raw="f", full_name="f", module=str(path), offset=offset, size=40)


def patch(address: int) -> Patch:
    return Patch(hook=1, address=address, data=b"\xe9\x01\x02\x03\x04", original=b"\x55\x48\x89\xe5\x53", thunk=0x1000, entries=b"\x12")


def tracked(path: Path, *bases: int) -> tuple[Libraries, Journal]:
    """Libraries at `bases`, with one hook in each."""
    ask = Launch(session_id="s", command=str(path), args=[], cwd="/", project_root="", env={}, stdin=None, pty=False, symbols_path=None, patterns=[])
    journal = Journal(launch=ask)
    libraries = Libraries(journal)
    libraries.look(parse_mapped(maps(path, *bases)))
    for number, address in enumerate(placed([place(path)], libraries.known.values()), 1):
        hook = Hook(id=number, place=place(path), address=address, plan=RAW)
        journal.probes.installed[address] = Installed(hook, patch(address))
    return libraries, journal


def test_a_file_that_is_mapped_twice_is_there_twice(library: Path) -> None:
    found = parse_mapped(maps(library, 0x7F0000000000, 0x7F0000100000))
    assert [one.module.start for one in found] == [0x7F0000000000, 0x7F0000100000]
    assert sorted(placed([place(library)], [one.module for one in found])) == [0x7F0000001100, 0x7F0000101100]


def test_hooks_sleep_while_their_library_is_gone(library: Path) -> None:
    base = 0x7F0000000000
    libraries, journal = tracked(library, base, base + 0x100000)
    journal.probes.refused[base + 0x1200] = Refused(function="g", module=str(library), reason="small")
    assert libraries.look(parse_mapped(maps(library, base + 0x100000))) == []
    assert sorted(journal.probes.installed) == [base + 0x101100]
    assert not journal.probes.refused
    fresh = libraries.look(parse_mapped(maps(library, base, base + 0x100000)))
    assert [one.module.start for one in fresh] == [base]
    items, internal = libraries.wake(fresh, {base + 0x1100: place(library)})
    assert [item.hook.id for item in items] == [1]
    assert not internal
    assert sorted(journal.probes.installed) == [base + 0x1100, base + 0x101100]


def test_at_another_place_or_as_another_file_nothing_wakes(library: Path) -> None:
    base = 0x7F0000000000
    libraries, journal = tracked(library, base)
    assert libraries.look(parse_mapped("")) == []
    for text in (maps(library, base + 0x4000), maps(library, base, inode=78)):
        fresh = libraries.look(parse_mapped(text))
        assert len(fresh) == 1
        assert libraries.wake(fresh, {base + 0x1100: place(library), base + 0x5100: place(library)}) == ([], [])
    library.write_bytes(library.read_bytes() + b"\0")
    fresh = libraries.look(parse_mapped(maps(library, base)))
    assert len(fresh) == 1
    assert libraries.wake(fresh, {base + 0x1100: place(library)}) == ([], [])
    assert not journal.probes.installed


def test_gone_and_back_unseen_is_found_by_its_bytes(library: Path) -> None:
    base = 0x7F0000000000
    libraries, journal = tracked(library, base, base + 0x100000)
    mapped = parse_mapped(maps(library, base, base + 0x100000))
    assert libraries.look(mapped, lambda one: True) == []
    fresh = libraries.look(mapped, lambda one: one.address != base + 0x1100)
    assert [one.module.start for one in fresh] == [base]
    assert sorted(journal.probes.installed) == [base + 0x101100]
    items, _ = libraries.wake(fresh, {base + 0x1100: place(library)})
    assert len(items) == 1


def test_only_so_many_sleep(library: Path) -> None:
    bases = [0x7F0000000000 + n * 0x10000 for n in range(ASLEEP_MAX + 5)]
    libraries, _ = tracked(library, *bases)
    libraries.look([])
    fresh = libraries.look(parse_mapped(maps(library, *bases)))
    items, _ = libraries.wake(fresh, placed([place(library)], [one.module for one in fresh]))
    assert len(items) == ASLEEP_MAX


def test_code_that_is_not_mapped_as_it_was(library: Path) -> None:
    before = CodeMap.parse(maps(library, 0x7F0000000000, 0x7F0000100000))
    assert before.gone(before) == []
    after = CodeMap.parse(maps(library, 0x7F0000000000, inode=78))
    assert [stretch[:2] for stretch in before.gone(after)] == [(0x7F0000001000, 0x7F0000003000), (0x7F0000101000, 0x7F0000103000)]


def test_libraries_near_the_program_that_hold_a_name(library: Path, tmp_path: Path) -> None:
    deep = tmp_path / "plugins" / "more"
    deep.mkdir(parents=True)
    (deep / "libdeep.so.1.2").write_bytes(library.read_bytes())
    (tmp_path / "plugins" / "text.so").write_text("pthread_create is only mentioned here, in what is no library at all, however long it may get to be.")
    hidden = tmp_path / ".git"
    hidden.mkdir()
    (hidden / "libhidden.so").write_bytes(library.read_bytes())
    assert [path.name for path in candidates("pthread_create", [tmp_path], frozenset())] == ["libown.so", "libdeep.so.1.2"]
    assert [path.name for path in candidates("pthread_cre*", [tmp_path], frozenset([str(library)]))] == ["libdeep.so.1.2"]
    assert candidates("no_such_name_in_there", [tmp_path], frozenset()) == []
    assert candidates("@usercode", [tmp_path], frozenset()) == []
    assert candidates("*", [tmp_path], frozenset()) == []


def test_what_changed_since_the_last_save_is_saved(library: Path, tmp_path: Path) -> None:
    base = 0x7F0000000000
    _, journal = tracked(library, base, base + 0x100000)

    def saved() -> Journal:
        journal.save(tmp_path)
        return Journal.load(tmp_path)

    assert saved().probes == journal.probes
    first, second = journal.probes.installed.values()
    first.enabled, first.earlier = False, [7]
    assert saved().probes == journal.probes
    second.hook = second.hook.model_copy(update={"id": 9})
    assert saved().probes.installed[second.hook.address].hook.id == 9
    second.patch, second.base = None, RAW
    assert saved().probes == journal.probes
    del journal.probes.installed[first.hook.address]
    assert list(saved().probes.installed) == [second.hook.address]
