"""Ground truth from gdb: how often each function's entry was reached."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.harness.targets import require

GDB_S: Final = 300
_QUIET: Final = ("set pagination off", "set confirm off", "set debuginfod enabled off", "set print thread-events off")
_NO_BASE: Final = "gdb.set_convenience_variable('base', 0)"
_SET_BASE: Final = (
    "lines = [line.split() for line in gdb.execute('info proc mappings', to_string=True).splitlines()]; "
    "gdb.set_convenience_variable('base', min(int(line[0], 16) for line in lines if line and line[-1] == gdb.current_progspace().filename))"
)
_HITS: Final = re.compile(r"breakpoint already hit (\d+) times?")


def entries(program: Path) -> dict[str, int]:
    """Linked address of each function symbol, by its mangled name; a name that several functions share is left out."""
    listing = subprocess.run([require("nm"), str(program)], capture_output=True, text=True, check=True, timeout=120).stdout
    found: dict[str, int] = {}
    shared: set[str] = set()
    for address, name in re.findall(r"^([0-9a-f]+) [tTwW] (\S+)$", listing, re.MULTILINE):
        if name in found:
            shared.add(name)
        found[name] = int(address, 16)
    return {name: address for name, address in found.items() if name not in shared}


def call_counts(program: Path, arguments: Sequence[str], functions: Mapping[str, int], *, cwd: Path, stdin: Path | None = None) -> dict[str, int]:
    """Runs `program` under gdb with a breakpoint at each linked address and says how often each was hit, by name."""
    commands = [*_QUIET, "starti" + (f" < {stdin}" if stdin else ""), f"python {_SET_BASE if _is_pie(program) else _NO_BASE}"]
    commands += [f"break *($base + {address:#x})" for address in functions.values()]
    commands += [f"ignore {number} 1000000000" for number in range(1, len(functions) + 1)]
    commands += ["continue", "info breakpoints"]
    script = [part for command in commands for part in ("-ex", command)]
    done = subprocess.run(
        [require("gdb"), "-nx", "-batch", *script, "--args", str(program), *arguments],
        capture_output=True, text=True, timeout=GDB_S, cwd=cwd, stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    table = done.stdout[done.stdout.rindex("Num ") :]
    rows = re.split(r"(?m)^(?=\d+\s+breakpoint)", table)[1:]
    assert len(rows) == len(functions), f"{len(rows)} of {len(functions)} breakpoints:\n{table}\n{done.stderr}"
    hits = [int(match[1]) if (match := _HITS.search(row)) else 0 for row in rows]
    return dict(zip(functions, hits, strict=True))


def _is_pie(program: Path) -> bool:
    kind = int.from_bytes(program.read_bytes()[16:18], "little")  # e_type: 2 EXEC, 3 DYN
    return kind == 3
