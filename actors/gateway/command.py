"""From what a client calls a program to the file, folder and environment it is launched with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from strobe.errors import Code, StrobeError

_OURS = ("STROBE_BUS", "STROBE_IDENTITY", "STROBE_GENERATION", "STROBE_FELL")  # what the supervisor gives an actor: no business of a target
_SHEBANG_BYTES = 256  # linux/binfmts.h BINPRM_BUF_SIZE


@dataclass(frozen=True)
class Program:
    path: Path  # absolute, of an executable file
    cwd: Path
    note: str | None  # where it was found, when that is not evident


def project_folder(text: str) -> Path:
    """projectRoot: an existing absolute folder."""
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise StrobeError(Code.VALIDATION_ERROR, f"projectRoot {text!r} is not an absolute path.", "Give the project's folder as an absolute path.", value=text)
    return _folder(path, "projectRoot")


def find_program(command: str, cwd: str | None, project_root: Path, env: Mapping[str, str]) -> Program:
    """The file `command` names: a path (relative ones from cwd, else from projectRoot), or a name looked up there and then on PATH.

    Raises VALIDATION_ERROR: nothing there, a folder, not executable.
    """
    if not command.strip() or "\0" in command:
        what = "`command` holds a NUL byte." if command.strip() else "`command` is empty."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Give the path of the program.", value="command")
    folder = _folder(_absolute(cwd, project_root), "cwd") if cwd is not None else None
    path, note = _located(command, folder or project_root, env)
    _check_executable(path, command)
    return Program(path, folder or path.parent, note)


def _absolute(text: str, base: Path) -> Path:
    path = Path(text).expanduser()
    return path if path.is_absolute() else base / path


def _folder(path: Path, field: str) -> Path:
    if not path.is_dir():
        what = "is a file, not a folder" if path.exists() else "does not exist"
        raise StrobeError(Code.VALIDATION_ERROR, f"{field} {path} {what}.", f"Give an existing folder as `{field}`.", value=str(path))
    return path


def _located(command: str, base: Path, env: Mapping[str, str]) -> tuple[Path, str | None]:
    path = _absolute(command, base)
    if "/" in command or command.startswith("~") or path.is_file():
        return Path(os.path.normpath(path)), None
    found = shutil.which(command, path=env.get("PATH", os.defpath))
    if found is None and path.exists():
        return path, None  # a folder of that name: told as what it is
    if found is None:
        what = f"There is no {command!r} in {base}, nor on PATH."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Give the program's absolute path, or build it first.", value=command)
    return Path(found).absolute(), f"{command} was found on PATH: {found}"


def _check_executable(path: Path, command: str) -> None:
    if not path.exists():
        near = _nearest(path)
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} does not exist.", near or "Check the path, or build the program first.", value=command)
    if path.is_dir():
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} is a folder.", "Give the program's file.", value=command)
    if not os.access(path, os.X_OK):
        next_step = f"chmod +x {path}, or launch its interpreter with the file in `args`."
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} is not executable.", next_step, value=command)


def _nearest(path: Path) -> str | None:
    """The first part of the path that is missing tells more than the whole."""
    missing = path
    while not missing.parent.exists():
        missing = missing.parent
    return f"{missing.parent} exists, but has no {missing.name!r}: check the path, or build the program first." if missing != path else None


def symbols_file(text: str | None, project_root: Path) -> str | None:
    """symbolsPath: an existing file with the program's debug info, or a folder of such files."""
    if text is None:
        return None
    path = _absolute(text, project_root)
    if not path.exists():
        raise StrobeError(Code.VALIDATION_ERROR, f"symbolsPath {path} does not exist.", "Give a file with debug info, or a folder of them.", value=text)
    return str(path)


def check_arguments(arguments: Sequence[str]) -> None:
    for position, text in enumerate(arguments):
        if "\0" in text:
            field = f"args[{position}]"
            raise StrobeError(Code.VALIDATION_ERROR, f"`{field}` holds a NUL byte.", "No argument of a program can hold one.", value=field)


def target_environment(client: Mapping[str, str], changes: Mapping[str, str] | None, program: Path) -> dict[str, str]:
    """The client's environment with the launch's own on top. A Python program runs unbuffered, else its output would come in 8 KB pieces."""
    env = {name: value for name, value in client.items() if name not in _OURS}
    if is_python(program):
        env["PYTHONUNBUFFERED"] = "1"
    env.update(changes or {})
    for name in env:
        if not name or "=" in name or "\0" in name or "\0" in env[name]:
            what = f"env name {name[:80]!r} or its value cannot be in an environment."
            raise StrobeError(Code.VALIDATION_ERROR, what, "Names hold no '=', nothing holds a NUL byte.", value="env")
    return env


def is_python(program: Path) -> bool:
    """By the program's name, or by the interpreter its first line names."""
    if program.name.startswith("python"):
        return True
    try:
        with program.open("rb") as file:
            head = file.read(_SHEBANG_BYTES)
    except OSError:
        return False  # a program may be executable and not readable
    return head.startswith(b"#!") and b"python" in head.split(b"\n", 1)[0]
