"""Interpreter scripts: which programs the kernel (and env) will start for a `#!` line."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SHEBANG_BYTES: Final = 255  # BINPRM_BUF_SIZE less one, <linux/binfmts.h>
CHAIN_MAX: Final = 5  # after that the kernel says ELOOP


def shebang(start: bytes) -> tuple[str, str] | None:
    """(interpreter, the rest of the line as one argument) of a file's first bytes; None when it has no usable `#!` line."""
    if not start.startswith(b"#!"):
        return None
    line = start[2:SHEBANG_BYTES].split(b"\n", 1)[0].strip(b" \t")
    words = re.split(rb"[ \t]+", line, maxsplit=1)
    if not words[0]:
        return None
    return os.fsdecode(words[0]), os.fsdecode(words[1].rstrip(b" \t\r")) if len(words) > 1 else ""


def env_command(argument: str, env: Mapping[str, str]) -> str | None:
    """What `/usr/bin/env ARGUMENT` starts, as an absolute path: options, `-S` and assignments are passed over."""
    for word in argument.split():
        if word.startswith("-") or re.match(r"\w+=", word):
            continue
        return shutil.which(word, path=env.get("PATH", os.defpath))
    return None


def interpreters(path: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """The chain from a script's own `#!` line to the program at its end, `env` included. Empty: no script."""
    chain: list[str] = []
    current = path
    while len(chain) < CHAIN_MAX:
        try:
            with current.open("rb") as file:
                found = shebang(file.read(SHEBANG_BYTES + 1))
        except OSError:
            break
        if found is None:
            break
        interpreter, argument = found
        chain.append(interpreter)
        if Path(interpreter).name == "env" and (named := env_command(argument, env)):
            chain.append(named)
        current = Path(chain[-1])
    return tuple(chain)
