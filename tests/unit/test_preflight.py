"""Preflight on real programs of every kind that the compilers here can build, and on headers crafted where they cannot."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from strobe.errors import Code, StrobeError
from strobe.preflight.elf import BrokenElf, Elf
from strobe.preflight.facts import FileKind, Preflight
from strobe.preflight.inspection import inspect_file, inspect_process
from tests.harness.targets import program, require

PLAIN = ("-O1",)


def copy_of(path: Path, folder: Path, name: str = "copy") -> Path:
    return Path(shutil.copy2(path, folder / name))


def build_id_by_readelf(path: Path) -> str | None:
    text = subprocess.run([require("readelf"), "-n", str(path)], capture_output=True, text=True, check=True, timeout=30).stdout
    return next((line.split(":")[1].strip() for line in text.splitlines() if "Build ID" in line), None)


def test_an_ordinary_program_may_be_injected() -> None:
    path = program("exits.c", *PLAIN)
    found = inspect_file(path)
    assert (found.kind, found.injectable, found.reason, found.runtime) == (FileKind.ELF, True, None, "native")
    assert (found.linking, found.libc, found.language, found.pie) == ("dynamic", "glibc", "c", True)
    assert found.has_debug_info and not found.stripped and not found.sanitizers and not found.privileged
    assert found.build_id == build_id_by_readelf(path) is not None
    assert found.runnable
    found.check_runnable()


def test_position_dependent_and_cet_programs() -> None:
    assert not inspect_file(program("exits.c", "-no-pie", "-fno-pie", "-fcf-protection=none")).pie
    text = subprocess.run([require("readelf"), "-n", str(program("exits.c", "-fcf-protection=full"))], capture_output=True, text=True, timeout=30).stdout
    assert inspect_file(program("exits.c", "-fcf-protection=full")).cet == ("IBT" in text or "SHSTK" in text)
    assert not inspect_file(program("exits.c", "-fcf-protection=none")).cet


def test_cet_marks_are_read_where_the_linker_writes_them(tmp_path: Path) -> None:
    source = tmp_path / "cet.c"
    source.write_text("int main(void) { return 0; }\n")
    for flags, wanted in ((["-Wl,-z,ibt", "-Wl,-z,shstk"], True), (["-fcf-protection=none"], False)):
        path = tmp_path / f"cet{wanted}"
        subprocess.run([require("gcc"), *flags, "-o", str(path), str(source)], check=True, timeout=60)
        assert inspect_file(path).cet is wanted


@pytest.mark.parametrize(("flags", "linking"), [(("-static",), "static"), (("-static-pie",), "static-pie")])
def test_static_programs_are_left_alone(flags: tuple[str, ...], linking: str) -> None:
    found = inspect_file(program("recursion.c", *flags))
    assert (found.injectable, found.linking, found.libc, found.kind) == (False, linking, "none", FileKind.ELF)
    assert found.reason and "static" in found.reason


@pytest.mark.parametrize("flags", [(), ("-static",)])
def test_musl_programs_are_left_alone(flags: tuple[str, ...]) -> None:
    found = inspect_file(program("recursion.c", *flags, compiler="musl-gcc"))
    assert not found.injectable and found.runnable
    assert found.libc == ("none" if flags else "musl")


def test_sanitizers_are_seen_and_thread_sanitizer_refused(tmp_path: Path) -> None:
    for name, compiler, flags in [
        ("thread", "gcc", ()),
        ("address", "gcc", ()),
        ("undefined", "gcc", ()),
        ("leak", "gcc", ()),
        ("thread", "clang", ()),
        ("address", "clang", ()),
        ("address", "gcc", ("-static-libasan",)),
        ("thread", "gcc", ("-static-libtsan",)),
    ]:
        source = tmp_path / "s.c"
        source.write_text("int main(int argc, char **argv) { (void)argv; int a[4] = {0}; a[argc & 3] = argc << argc; return a[0]; }\n")
        path = tmp_path / f"{compiler}-{name}{len(flags)}"
        subprocess.run([require(compiler), f"-fsanitize={name}", *flags, "-o", str(path), str(source)], check=True, timeout=60)
        found = inspect_file(path)
        assert name in found.sanitizers, f"{compiler} {name} {flags}"
        assert found.injectable == (name != "thread")


def test_languages() -> None:
    assert inspect_file(program("exceptions.cpp", *PLAIN)).language == "c++"
    assert inspect_file(program("panics.rs")).language == "rust"


def test_stripped_and_split_debug_information(tmp_path: Path) -> None:
    path = copy_of(program("exits.c", *PLAIN), tmp_path)
    subprocess.run([require("objcopy"), "--only-keep-debug", str(path), str(tmp_path / "copy.debug")], check=True, timeout=30)
    subprocess.run([require("strip"), f"--add-gnu-debuglink={tmp_path}/copy.debug", str(path)], check=False, timeout=30)
    subprocess.run([require("objcopy"), "--strip-all", f"--add-gnu-debuglink={tmp_path}/copy.debug", str(path)], check=True, timeout=30)
    found = inspect_file(path)
    assert found.stripped and not found.has_debug_info and found.debug_link == "copy.debug" and found.injectable
    assert found.build_id == inspect_file(program("exits.c", *PLAIN)).build_id
    no_info = copy_of(program("exits.c", *PLAIN), tmp_path, "noinfo")
    subprocess.run([require("strip"), "--strip-debug", str(no_info)], check=True, timeout=30)
    assert (inspect_file(no_info).stripped, inspect_file(no_info).has_debug_info) == (False, False)


def test_a_program_without_a_section_table_is_still_judged(tmp_path: Path) -> None:
    path = copy_of(program("exits.c", *PLAIN), tmp_path)
    with path.open("r+b") as file:
        file.seek(40)
        file.write(bytes(8))
        file.seek(60)
        file.write(bytes(4))
    found = inspect_file(path)
    assert found.injectable and found.stripped and found.build_id is not None


def crafted(folder: Path, *, bits: int = 2, order: int = 1, kind: int = 2, machine: int = 62, size: int = 64) -> Path:
    path = folder / f"crafted-{bits}-{order}-{kind}-{machine}-{size}"
    header = b"\x7fELF" + bytes([bits, order, 1]) + bytes(9) + struct.pack("<HH" if order == 1 else ">HH", kind, machine)
    path.write_bytes(header.ljust(64, b"\0")[:size])
    path.chmod(0o755)
    return path


def test_other_machines_and_sizes_are_named(tmp_path: Path) -> None:
    for options, kind, word in [
        ({"bits": 1, "machine": 3}, FileKind.ELF_32, "32-bit"),
        ({"bits": 1, "machine": 40}, FileKind.OTHER_MACHINE, "arm"),
        ({"machine": 183}, FileKind.OTHER_MACHINE, "aarch64"),
        ({"machine": 22, "order": 2}, FileKind.OTHER_MACHINE, "s390x"),
        ({"machine": 9999}, FileKind.OTHER_MACHINE, "9999"),
        ({"kind": 1}, FileKind.NOT_A_PROGRAM, "object file"),
        ({"kind": 4}, FileKind.NOT_A_PROGRAM, "core dump"),
        ({"size": 40}, FileKind.UNKNOWN, "broken"),
    ]:
        found = inspect_file(crafted(tmp_path, **options))
        assert found.kind is kind and not found.injectable and word in (found.reason or ""), found
        if kind is not FileKind.ELF_32:
            with pytest.raises(StrobeError) as raised:
                found.check_runnable()
            assert raised.value.code is Code.VALIDATION_ERROR and raised.value.value == found.path


def test_cut_and_scrambled_programs_never_raise(tmp_path: Path) -> None:
    whole = program("exits.c", *PLAIN).read_bytes()
    path = tmp_path / "cut"
    for length in (0, 3, 19, 20, 63, 64, 100, 700, 1000, 4096, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        path.chmod(0o755)
        assert isinstance(inspect_file(path), Preflight)
    for at in range(16, 900, 7):
        path.write_bytes(whole[:at] + b"\xff\xff\xff\x7f" + whole[at + 4 :])
        assert isinstance(inspect_file(path), Preflight)


def test_files_that_are_no_programs(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("hello\n")
    cases = [(tmp_path / "none", FileKind.MISSING), (tmp_path, FileKind.DIRECTORY), (text, FileKind.NOT_EXECUTABLE), (Path("/dev/null"), FileKind.NOT_A_FILE)]
    for path, kind in cases:
        assert inspect_file(path).kind is kind
    text.chmod(0o755)
    assert inspect_file(text).kind is FileKind.UNKNOWN
    library = tmp_path / "lib.so"
    (tmp_path / "lib.c").write_text("int f(void) { return 1; }\n")
    subprocess.run([require("gcc"), "-shared", "-nostartfiles", "-o", str(library), str(tmp_path / "lib.c")], check=True, timeout=60)
    assert inspect_file(library).kind is FileKind.NOT_A_PROGRAM
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert inspect_file(loop).kind is FileKind.MISSING


def test_scripts_name_their_interpreters_and_runtime(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("python3", "node", "deno", "bun"):
        shutil.copy2("/bin/true", folder / name)
    env = {"PATH": str(folder)}
    script = tmp_path / "script"
    for line, runtime, chain in [
        ("#!/bin/sh\n", "script", ("/bin/sh",)),
        ("#! /bin/sh -e\n", "script", ("/bin/sh",)),
        (f"#!{folder}/python3\n", "python", (f"{folder}/python3",)),
        ("#!/usr/bin/env python3\n", "python", ("/usr/bin/env", f"{folder}/python3")),
        ("#!/usr/bin/env -S A=1 node --flag\r\n", "node", ("/usr/bin/env", f"{folder}/node")),
        ("#!/usr/bin/env deno\n", "deno", ("/usr/bin/env", f"{folder}/deno")),
        ("#!/usr/bin/env bun", "bun", ("/usr/bin/env", f"{folder}/bun")),
    ]:
        script.write_text(line)
        script.chmod(0o755)
        found = inspect_file(script, env)
        assert (found.kind, found.injectable, found.runtime, found.interpreters) == (FileKind.SCRIPT, False, runtime, chain)
        found.check_runnable()
    outer = tmp_path / "outer"
    outer.write_text(f"#!{script} x\n")
    outer.chmod(0o755)
    script.write_text("#!/bin/sh\n")
    assert inspect_file(outer, env).interpreters == (str(script), "/bin/sh")
    script.write_text(f"#!{script}\n")
    assert len(inspect_file(script, env).interpreters) == 5


def test_programs_that_gain_privileges_are_left_alone(tmp_path: Path) -> None:
    path = copy_of(program("exits.c", *PLAIN), tmp_path)
    path.chmod(0o4755)
    assert inspect_file(path).injectable, "set-uid to oneself changes nothing"
    if os.getuid() == 0:
        os.chown(path, 12345, 0)
        path.chmod(0o4755)
        assert inspect_file(path).privileged and not inspect_file(path).injectable
        os.chown(path, 0, 12345)
        path.chmod(0o2755)
        assert inspect_file(path).privileged


def test_go_programs_are_recognised_by_their_build_information(tmp_path: Path) -> None:
    # Without a Go compiler the section that every Go linker writes is added to a C program.
    path, info = copy_of(program("exits.c", *PLAIN), tmp_path), tmp_path / "info"
    info.write_bytes(b"\xff Go buildinf:\x08\x02" + bytes(16) + b"\x08go1.22.3")
    subprocess.run([require("objcopy"), "--add-section", f".go.buildinfo={info}", str(path)], check=True, timeout=30)
    found = inspect_file(path)
    assert (found.injectable, found.runtime, found.language, found.go_version) == (False, "go", "go", "go1.22.3")


def test_running_processes_are_judged_too(tmp_path: Path) -> None:
    own = copy_of(program("echo.c", *PLAIN), tmp_path, "own")
    static = program("echo.c", "-static")
    for path, injectable in ((own, True), (static, False)):
        process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            if path is own:
                own.unlink()
            found = inspect_process(process.pid)
            assert (found.injectable, found.path) == (injectable, str(path))
        finally:
            process.kill()
            process.communicate(timeout=20)
    assert inspect_process(process.pid).kind is FileKind.MISSING


def test_a_binary_of_sixty_megabytes(tmp_path: Path) -> None:
    # 60 MB, of which 8 MB are symbol names of a C program, so that no search ends early.
    source, bulk, path = tmp_path / "big.s", tmp_path / "bulk", tmp_path / "big"
    source.write_text(".globl main\nmain: xorl %eax, %eax\nret\n" + "".join(f"some_function_of_a_program_{i:06d}: nop\n" for i in range(250_000)))
    bulk.write_bytes(bytes(48 << 20))
    subprocess.run([require("gcc"), "-o", str(path), str(source)], check=True, timeout=120)
    subprocess.run([require("objcopy"), "--add-section", f".bulk={bulk}", str(path)], check=True, timeout=60)
    assert path.stat().st_size > 60 << 20
    assert inspect_file(path).injectable


def test_a_name_search_over_a_large_table(tmp_path: Path) -> None:
    path, names = copy_of(program("exits.c", *PLAIN), tmp_path), tmp_path / "big"
    names.write_bytes(b"".join(b"\0some_function_of_a_program_%06d" % i for i in range(250_000)))
    subprocess.run([require("objcopy"), "--add-section", f".bulk={names}", str(path)], check=True, timeout=60)
    with Elf.open(path) as elf:
        assert not elf.holds(".bulk", b"rust_eh_personality") and elf.holds(".bulk", b"\0some_function_of_a_program_249999")
    with pytest.raises(BrokenElf):
        Elf.open(crafted(tmp_path, size=20))
