"""`inspect_file` and `inspect_process`: a program judged from its file alone, in milliseconds, before anything touches it.

Why each refusal: loading an agent into a static, musl, Go or thread-sanitized program kills or hangs it (measured, see DESIGN).
"""

from __future__ import annotations

import os
import platform
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from strobe.preflight.elf import DF_1_PIE, DT_FLAGS_1, ET_DYN, ET_EXEC, SHT_SYMTAB, TYPES, BrokenElf, Elf, identify
from strobe.preflight.facts import FileKind, Language, Preflight, Runtime
from strobe.preflight.script import interpreters

_SANITIZERS: Final = {"thread": b"t", "address": b"a", "undefined": b"ub", "memory": b"m", "leak": b"l"}  # libtsan …, __tsan_init …
_RUNTIMES: Final[tuple[tuple[str, Runtime], ...]] = (
    (r"python[0-9.]*t?d?", "python"),
    (r"pypy[0-9.]*", "python"),
    (r"node|nodejs", "node"),
    (r"deno", "deno"),
    (r"bun|bunx", "bun"),
)
_GO_VERSION: Final = re.compile(rb"go1\.[0-9]+[.0-9a-z]*")
_START_BYTES: Final = 4096
_LANGUAGE_BYTES: Final = 1 << 20  # of symbol names; a C++ or Rust program shows itself early


def inspect_file(path: str | os.PathLike[str], env: Mapping[str, str] | None = None) -> Preflight:
    """Judges the file that `path` names, links followed. `env` is the environment it would get (PATH matters to `#!/usr/bin/env`)."""
    given = Path(path)
    try:
        facts = given.stat()
    except OSError as error:
        return _refused(given, FileKind.MISSING, f"it does not exist ({error.strerror})" if error.strerror else "it does not exist")
    if stat.S_ISDIR(facts.st_mode):
        return _refused(given, FileKind.DIRECTORY, "it is a directory")
    if not stat.S_ISREG(facts.st_mode):
        return _refused(given, FileKind.NOT_A_FILE, "it is a device, socket or pipe")
    if not os.access(given, os.X_OK):
        return _refused(given, FileKind.NOT_EXECUTABLE, "it is not executable")
    return _inspect_content(given, facts, os.environ if env is None else env)


def inspect_process(pid: int) -> Preflight:
    """Judges the program that a running process executes, even if its file is gone; and whether the process itself may be touched."""
    folder = Path(f"/proc/{pid}")
    try:
        owner = folder.stat().st_uid
        name = str((folder / "exe").readlink())
        status = (folder / "status").read_text()
        maps = (folder / "maps").read_text()
        content = _inspect_content(folder / "exe", (folder / "exe").stat(), {})
    except FileNotFoundError:
        return _refused(folder, FileKind.MISSING, f"process {pid} does not exist, or is a zombie or part of the kernel")
    except PermissionError:
        return _refused(folder, FileKind.NOT_EXECUTABLE, f"process {pid} may not be looked at: it belongs to another user or is protected")
    found = replace(content, path=name.removesuffix(" (deleted)"))
    if found.kind is FileKind.ELF and found.runtime == "native":
        found = replace(found, runtime=_runtime_of(found.path))
    if not found.injectable:
        return found
    tracer = re.search(r"^TracerPid:\t(\d+)", status, re.MULTILINE)
    if tracer and tracer[1] != "0":
        return replace(found, injectable=False, reason=f"process {tracer[1]} (a debugger) traces it already")
    if owner != os.getuid():
        return replace(found, injectable=False, reason=f"it runs as user {owner}, not as you")
    if "/libtsan.so" in maps:
        return replace(found, injectable=False, sanitizers=("thread",), reason=_TSAN)
    return found


_TSAN: Final = "it is built with ThreadSanitizer, which aborts when an agent's thread appears"


def _refused(path: Path, kind: FileKind, reason: str, **more: Any) -> Preflight:
    return Preflight(path=str(path), kind=kind, injectable=False, reason=reason, **more)


def _inspect_content(path: Path, facts: os.stat_result, env: Mapping[str, str]) -> Preflight:
    try:
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
    except PermissionError:  # executable yet unreadable: it runs, but nothing more is known
        return _refused(path, FileKind.ELF, "it may be executed but not read")
    identity = identify(start)
    if identity is None:
        return _inspect_script(path, env)
    if identity.bits == 32:
        own = identity.machine in ("i386", "x86_64")
        reason = f"it is a 32-bit program ({identity.machine}); only its output and exit status can be captured"
        return _refused(path, FileKind.ELF_32 if own else FileKind.OTHER_MACHINE, reason, machine=identity.machine)
    if identity.machine != platform.machine() or not identity.little_endian:
        reason = f"it is built for {identity.machine}, and this machine is {platform.machine()}"
        return _refused(path, FileKind.OTHER_MACHINE, reason, machine=identity.machine)
    if identity.type not in (ET_EXEC, ET_DYN):
        return _refused(path, FileKind.NOT_A_PROGRAM, f"it is an ELF file, but a {TYPES.get(identity.type, 'file of unknown type')}", machine=identity.machine)
    try:
        with Elf.open(path) as elf:
            return _judge(_describe(path, facts, elf))
    except BrokenElf as error:
        return _refused(path, FileKind.UNKNOWN, f"it starts like a program and is broken: {error}")


def _inspect_script(path: Path, env: Mapping[str, str]) -> Preflight:
    chain = interpreters(path, env)
    if not chain:
        return _refused(path, FileKind.UNKNOWN, "it is neither an ELF program nor a script with a #! line")
    final = Path(chain[-1]).name
    runtime = _runtime_of(chain[-1])
    reason = f"it is a script that {final} runs; its output and exit status are captured"
    return _refused(path, FileKind.SCRIPT, reason, runtime="script" if runtime == "native" else runtime, interpreters=chain)


def _describe(path: Path, facts: os.stat_result, elf: Elf) -> Preflight:
    sections = elf.sections
    dynamic = elf.interpreter is not None
    is_pie = elf.type == ET_DYN
    library = is_pie and not dynamic and not any(flags & DF_1_PIE for flags in elf.dynamic.get(DT_FLAGS_1, [])) and elf.entry == 0
    go = ".go.buildinfo" in sections or ".note.go.buildid" in sections
    return Preflight(
        path=str(path),
        kind=FileKind.NOT_A_PROGRAM if library else FileKind.ELF,
        injectable=False,
        reason=None,
        runtime="go" if go else _runtime_of(str(path)),
        language=_language(elf, go),
        machine=platform.machine(),
        linking="dynamic" if dynamic else "static-pie" if is_pie else "static",
        loader=elf.interpreter,
        libc=_libc(elf),
        pie=is_pie,
        go_version=_go_version(elf) if go else None,
        sanitizers=_sanitizers(elf),
        stripped=not any(section.type == SHT_SYMTAB for section in sections.values()),
        has_debug_info=".debug_info" in sections or ".zdebug_info" in sections,
        debug_link=elf.bytes_of(sections[".gnu_debuglink"]).split(b"\0")[0].decode(errors="replace") if ".gnu_debuglink" in sections else None,
        build_id=elf.build_id,
        cet=elf.cet,
        privileged=_privileged(path, facts),
    )


def _judge(facts: Preflight) -> Preflight:
    reason: str | None = None
    if facts.kind is FileKind.NOT_A_PROGRAM:
        reason = "it is a shared library"
    elif facts.go_version is not None:
        reason = f"it is a Go program ({facts.go_version}): its runtime moves stacks, which hooks do not survive"
    elif facts.libc == "musl":
        reason = "it uses the musl C library; the agent needs glibc"
    elif facts.linking != "dynamic":
        reason = f"it is linked statically ({facts.linking}): there is no loader to load the recorder with"
    elif facts.libc != "glibc":
        reason = f"its loader {facts.loader} is not glibc's"
    elif "thread" in facts.sanitizers:
        reason = _TSAN
    elif facts.privileged:
        reason = "it gets privileges when it starts (set-uid, set-gid or file capabilities), which tracing would take away"
    return replace(facts, injectable=reason is None, reason=reason)


def _libc(elf: Elf) -> Any:
    if elf.interpreter is None:
        return "none"
    name = Path(elf.interpreter).name
    return "musl" if name.startswith("ld-musl") else "glibc" if name.startswith("ld-linux") else "unknown"


def _sanitizers(elf: Elf) -> tuple[str, ...]:
    """By the libraries needed, and by the names of a runtime that was linked in statically."""
    # A static runtime that exports no names starts itself from .preinit_array, which hardly any other program has: only then is the
    # large table searched.
    tables = (".dynstr", ".strtab") if ".preinit_array" in elf.sections else (".dynstr",)
    linked = {name for table in tables for name in _sanitizer_names(elf, table)}
    return tuple(
        name for name, letter in _SANITIZERS.items() if letter in linked or any(library.startswith(f"lib{letter.decode()}san.") for library in elf.needed)
    )


def _sanitizer_names(elf: Elf, table: str) -> Iterator[bytes]:
    """The letters of `__tsan_init`, `__ubsan_handle_…` and their like. One search finds nearly all of them."""
    at = 0
    while (at := elf.find(table, b"san_init\0", at)) >= 0:
        yield elf.content[at - 1 : at]
        at += 1
    if elf.find(table, b"\0__ubsan_handle_", 0) >= 0:
        yield b"ub"


def _language(elf: Elf, go: bool) -> Language:
    if go:
        return "go"
    if elf.holds(".comment", b"rustc version") or elf.holds(".strtab", b"rust_eh_personality", _LANGUAGE_BYTES):
        return "rust"
    needed = " ".join(elf.needed)
    if "libstdc++" in needed or "libc++" in needed or elf.holds(".strtab", b"\0_ZN", _LANGUAGE_BYTES):
        return "c++"
    return "c"


def _go_version(elf: Elf) -> str:
    section = elf.sections.get(".go.buildinfo")
    found = _GO_VERSION.search(elf.bytes_of(section, 4096)) if section else None
    return found[0].decode() if found else "go"


def _runtime_of(path: str) -> Runtime:
    names = [Path(path).name, Path(os.path.realpath(path)).name]
    return next((runtime for pattern, runtime in _RUNTIMES if any(re.fullmatch(pattern, name) for name in names)), "native")


def _privileged(path: Path, facts: os.stat_result) -> bool:
    """Whether exec would change who the program runs as, or what it may do."""
    changes_user = bool(facts.st_mode & stat.S_ISUID) and facts.st_uid != os.getuid()
    changes_group = facts.st_mode & (stat.S_ISGID | stat.S_IXGRP) == stat.S_ISGID | stat.S_IXGRP and facts.st_gid != os.getgid()
    if changes_user or changes_group:
        return True
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False
