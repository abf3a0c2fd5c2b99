"""The memory of running processes: read, written, thread-locals found, names looked up. No session: the parts on real programs."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actors.indexer.binary import Library
from actors.indexer.variables_ask import VariablesAnswer
from actors.session.memory.live import PAGE, LiveMemory
from actors.session.memory.mappings import Mappings
from actors.session.memory.thread_locals import DESCRIPTORS, ThreadLocals
from strobe.errors import Code, StrobeError
from strobe.expression import Unavailable
from strobe.model.probe import Module
from strobe.modules import is_own, mapped_modules
from strobe.protocol.indexer import Variables, VariablesReply
from strobe.values.bundle import Bundle
from strobe.values.memory import Missing
from tests.harness.targets import program, require

RUST = "memory/things.rs"


def c_program(*flags: str) -> Path:
    return program("memory/globals.c", "-O0", *flags)


def cpp_program() -> Path:
    library = program("memory/library.c", "-O0", "-shared", "-fPIC", name="libthings.so")
    return program("memory/things.cpp", "-O0", "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}")


@contextmanager
def running(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Up to its `ready` line."""
    process = subprocess.Popen([str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"ready")
        yield process
    finally:
        process.kill()
        process.communicate()


class Asked:
    """One process and what debug info says of it."""

    def __init__(self, process: subprocess.Popen[bytes], path: Path) -> None:
        self.pid, self.path = process.pid, str(path)
        self.modules = mapped_modules(process.pid)
        self.answer = VariablesAnswer(Library().open)
        self.memory = LiveMemory(process.pid)

    def variables(self, *names: str, types: tuple[str, ...] = (), codes: tuple[tuple[str, int], ...] = ()) -> VariablesReply:
        paths = [self.path, *(module.path for module in self.modules if module.path != self.path)]
        own = [path for path in paths if is_own(path, self.path)]
        return self.answer.answer(Variables(names=list(names), types=list(types), codes=list(codes), modules=paths, main_modules=own, budget_ms=30_000))

    def module(self, path: str) -> Module:
        return next(module for module in self.modules if module.path == path)

    def address(self, name: str) -> int:
        (one,) = [one for one in self.variables(name).variables[name] if one.kind == "address"]
        assert isinstance(one.value, int)
        return self.module(one.module).bias + one.value

    def number(self, address: int | Unavailable, size: int = 4) -> int:
        assert isinstance(address, int), address
        raw = self.memory.read(address, size)
        assert isinstance(raw, bytes)
        return int.from_bytes(raw, "little", signed=True)


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STROBE_HOME", str(tmp_path_factory.mktemp("home")))
        path = c_program()
        with running(path) as process:
            yield Asked(process, path)


@pytest.fixture(scope="module")
def in_cpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STROBE_HOME", str(tmp_path_factory.mktemp("home")))
        path = cpp_program()
        with running(path) as process:
            yield Asked(process, path)


def test_reads_across_pages_and_stops_where_nothing_is(in_c: Asked) -> None:
    mappings = Mappings.of(in_c.pid)
    heap = next(one for one in mappings._all if one.name == "[heap]")
    memory = in_c.memory
    direct = memory.prefix(heap.start, heap.end - heap.start)
    assert len(direct) == heap.end - heap.start > 2 * PAGE
    memory.forget()
    assert memory.read(heap.start + PAGE - 5, 10) == direct[PAGE - 5 : PAGE + 5]
    assert memory.read(heap.start, len(direct)) == direct
    for start, size in ((heap.end - 4, 8), (heap.end - PAGE - 1, 2 * PAGE), (heap.start, len(direct) + 1), (heap.start, 1 << 30)):
        assert memory.read(start, size) == Missing("unreadable", heap.end)
    for wild in (0, 0x10, (1 << 47) - 4, 1 << 47, (1 << 64) - 1, -5):
        assert memory.read(wild, 8) == Missing("unreadable", wild)
    assert memory.read(heap.start, 0) == b""
    assert len(memory.prefix(heap.end - 100, 1 << 20)) == 100


def test_one_look_shows_one_moment_and_the_next_look_another(in_c: Asked) -> None:
    address = in_c.address("ticking")
    before = in_c.number(address, 8)
    for _ in range(1000):
        assert in_c.number(address, 8) == before
    while in_c.number(address, 8) == before:
        in_c.memory.forget()


def test_writes_respect_page_protection(in_c: Asked) -> None:
    address, constant = in_c.address("gTempo"), in_c.address("gConst")
    in_c.memory.write(address, (77).to_bytes(4, "little"))
    assert in_c.number(address) == 77
    with pytest.raises(OSError, match=r".") as refused:
        in_c.memory.write(constant, b"\0\0\0\0")
    assert refused.value.errno == errno.EFAULT
    assert in_c.number(constant) == 42
    assert "read-only" in (Mappings.of(in_c.pid).refusal(constant, 4, "/none") or "")


def test_a_process_that_is_gone_is_told() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    memory = LiveMemory(process.pid)
    process.wait()
    for use in (lambda: memory.read(4096, 1), lambda: memory.prefix(4096, 1), lambda: memory.write(4096, b"x")):
        with pytest.raises(StrobeError) as gone:
            use()
        assert gone.value.code == Code.PROCESS_EXITED


def local_of(asked: Asked, locals_: ThreadLocals, name: str, tid: int, layout: dict[str, int]) -> int | Unavailable:
    one = next(one for one in asked.variables(name).variables[name] if one.kind == "thread_local")
    assert isinstance(one.value, int)
    return locals_.address(asked.memory, asked.module(one.module), one.module == asked.path, one.value, tid, layout)


def layout_of(asked: Asked) -> dict[str, int]:
    libc = next(module for module in asked.modules if module.path.endswith("/libc.so.6"))
    reply = asked.answer.answer(Variables(names=list(DESCRIPTORS), modules=[libc.path], main_modules=[libc.path]))
    return {name: found[0].value + libc.bias for name, found in reply.variables.items() if isinstance(found[0].value, int)}


@pytest.mark.parametrize("flags", [(), ("-static",), ("-no-pie",)], ids=["pie", "static", "no-pie"])
def test_each_thread_s_own_copy(flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path))
    path = c_program(*flags)
    with running(path) as process:
        asked, locals_ = Asked(process, path), ThreadLocals(process.pid)
        worker = asked.number(asked.address("workerTid"))
        for name, main, other in (("gLocal", 1000, 2000), ("tNode", 31, 62)):
            assert asked.number(local_of(asked, locals_, name, process.pid, {})) == main
            assert asked.number(local_of(asked, locals_, name, worker, {})) == other
        nobody = local_of(asked, locals_, "gLocal", 1, {})
        assert isinstance(nobody, Unavailable)
        assert "no thread 1" in nobody.reason


def test_musl_s_threads_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("musl-gcc")
    monkeypatch.setenv("STROBE_HOME", str(tmp_path))
    path = program("memory/globals.c", "-O0", "-static", compiler="musl-gcc")
    with running(path) as process:
        asked, locals_ = Asked(process, path), ThreadLocals(process.pid)
        worker = asked.number(asked.address("workerTid"))
        assert asked.number(local_of(asked, locals_, "gLocal", process.pid, {})) == 1000
        assert asked.number(local_of(asked, locals_, "gLocal", worker, {})) == 2000


def test_thread_locals_of_a_library(in_cpp: Asked) -> None:
    locals_, layout = ThreadLocals(in_cpp.pid), layout_of(in_cpp)
    assert set(layout) == set(DESCRIPTORS)
    worker = in_cpp.number(in_cpp.address("workerTid"))
    assert in_cpp.number(local_of(in_cpp, locals_, "libLocal", in_cpp.pid, layout)) == 51
    assert in_cpp.number(local_of(in_cpp, locals_, "libLocal", worker, layout)) == 60
    assert in_cpp.number(local_of(in_cpp, locals_, "libStatic", worker, layout)) == 50
    unknown = local_of(in_cpp, locals_, "libLocal", worker, {})
    assert isinstance(unknown, Unavailable)
    assert "glibc" in unknown.reason


@pytest.mark.parametrize(("name", "qualified", "kind"), [
    ("gTempo", "gTempo", "address"), ("calls", "counted::calls", "address"), ("counted::calls", "counted::calls", "address"), ("globals.c::fileStatic",
    "fileStatic", "address"),
    ("memory/globals.c::fileStatic", "fileStatic", "address"), ("gLocal", "gLocal", "thread_local"), ("::gTempo", "gTempo", "address"), ("stdout", "stdout",
    "address"),
])  # fmt: skip
def test_names_in_c(in_c: Asked, name: str, qualified: str, kind: str) -> None:
    places = [one for one in in_c.variables(name).variables[name] if one.kind != "removed"]
    assert [(one.name, one.kind) for one in places][:1] == [(qualified, kind)]


def test_names_that_are_nowhere(in_c: Asked) -> None:
    reply = in_c.variables("gTempi", "line", "other.c::fileStatic", "completely_unlike_anything")
    assert reply.variables == {}
    assert reply.near["gTempi"][0] == "gTempo"
    assert reply.locals_of == {"line": ["main"]}
    assert reply.near["completely_unlike_anything"] == []
    assert reply.complete


@pytest.mark.parametrize(("name", "qualified"), [
    ("orders", "shop::orders"), ("shop::Order::count", "shop::Order::count"), ("Order::count", "shop::Order::count"), ("version", "shop::version"),
    ("hidden", "shop::(anonymous namespace)::hidden"), ("shop::hidden", "shop::(anonymous namespace)::hidden"), ("next::counter", "shop::next::counter"),
    ("shop::next::counter", "shop::next::counter"), ("shop::next::calls", "shop::next::calls"), ("hiddenCounter", "hiddenCounter"),
])  # fmt: skip
def test_names_in_cpp(in_cpp: Asked, name: str, qualified: str) -> None:
    assert {one.name for one in in_cpp.variables(name).variables[name]} == {qualified}


def test_a_variable_that_the_program_copied_from_a_library_is_the_program_s(in_cpp: Asked) -> None:
    (one,) = [one for one in in_cpp.variables("sharedCounter").variables["sharedCounter"] if one.kind == "address"]
    assert one.module == in_cpp.path
    assert in_cpp.number(in_cpp.address("sharedCounter")) == 7
    assert in_cpp.number(in_cpp.address("hiddenCounter")) == 8


def test_types_of_several_files_are_in_one_table(in_cpp: Asked) -> None:
    reply = in_cpp.variables("shop::orders", "hiddenCounter", types=("shop::Order", "Order *[4]", "nonsense"))
    table = Bundle.unpack(reply.bundle).table
    for name, type_name in (("shop::orders", "std::vector<shop::Order>"), ("hiddenCounter", "int")):
        number = reply.variables[name][0].type
        assert number is not None
        assert table[number].name == type_name
    assert {name: table[number].name for name, number in reply.types.items()} == {"shop::Order": "shop::Order", "Order *[4]": "shop::Order *[4]"}


def test_vtables_tell_the_class(in_cpp: Asked) -> None:
    shape = in_cpp.number(in_cpp.address("shape"), 8)
    vtable = in_cpp.number(shape, 8)
    program_ = in_cpp.module(in_cpp.path)
    bundle = Bundle.unpack(in_cpp.variables("shape", codes=((in_cpp.path, vtable - program_.bias),)).bundle)
    (code,) = bundle.codes
    assert (code.address, bundle.table[code.type].name) == (vtable - program_.bias, "shop::Circle")
    nothing = Bundle.unpack(in_cpp.variables("shape", codes=((in_cpp.path, 0x10),)).bundle)
    assert nothing.codes == ()


@pytest.mark.parametrize(("name", "qualified"), [
    ("LEVEL", "things::shop::LEVEL"), ("shop::TOTAL", "things::shop::TOTAL"), ("things::TABLE", "things::TABLE"), ("COUNTER", "things::next::COUNTER"),
    ("next::COUNTER", "things::next::COUNTER"), ("DEPTH", "things::DEPTH"), ("things::WORDS", "things::WORDS"),
])  # fmt: skip
def test_names_in_rust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, qualified: str) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path))
    path = str(program(RUST))
    reply = VariablesAnswer(Library().open).answer(Variables(names=[name], modules=[path], main_modules=[path], budget_ms=30_000))
    placed = [one for one in reply.variables[name] if one.kind in ("address", "thread_local")]
    assert [one.name for one in placed] == [qualified]


def test_without_debug_info_symbols_still_tell_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path))
    path = str(c_program("-g0"))
    answer = VariablesAnswer(Library().open)
    reply = answer.answer(Variables(names=["gTempo", "gLocal", "gTempi"], modules=[path], main_modules=[path]))
    (tempo,), (local,) = reply.variables["gTempo"], reply.variables["gLocal"]
    assert (tempo.kind, tempo.type, tempo.size) == ("address", None, 4)
    assert (local.kind, local.type, local.size) == ("thread_local", None, 4)
    assert reply.near["gTempi"][0] == "gTempo"


def test_a_budget_is_kept(in_cpp: Asked) -> None:
    ask = Variables(names=["shop::orders", "hidden"], modules=[in_cpp.path], main_modules=[in_cpp.path], budget_ms=0)
    reply = VariablesAnswer(Library().open).answer(ask)
    assert not reply.complete
