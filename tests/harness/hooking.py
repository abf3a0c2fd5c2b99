"""Hooking test programs without a node: launched under a keeper, prepared by an Injector, patched by the session's ptrace code."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from strobe.lanes.layout import HookFlag, PlanOp
from strobe.lanes.pool import Pool
from strobe.protocol.spawner import HookSpec

END: Final = bytes((PlanOp.END, 0, 0, 0, 0, 0, 0, 0))
BARE_PLAN: Final = END + END


def raw_plan(arguments: int = 2) -> bytes:
    """The first integer registers, 8 bytes each."""
    steps = b"".join(bytes((PlanOp.GPR, n, 8, n * 8, 0, 0, 0, 0)) for n in range(arguments))
    return steps + END + END


@dataclass(frozen=True)
class Symbol:
    name: str
    value: int
    size: int


@cache
def symbols(path: Path) -> dict[str, Symbol]:
    """Functions that `nm` finds in the file, one for each address."""
    listing = subprocess.run(["nm", "-S", "--defined-only", str(path)], capture_output=True, text=True, check=True, timeout=60).stdout
    found: dict[int, Symbol] = {}
    for line in listing.splitlines():
        words = line.split()
        if len(words) >= 3 and words[-2] in "tTwW":
            size = int(words[1], 16) if len(words) == 4 else 0
            found.setdefault(int(words[0], 16), Symbol(words[-1], int(words[0], 16), size))
    return {symbol.name: symbol for symbol in found.values()}


def bias(pid: int, path: Path) -> int:
    """Of a position-independent file: where its first byte is mapped."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith(f" {path}"):
            return int(line.split("-")[0], 16)
    raise AssertionError(f"{path} is not mapped in {pid}")


def hook_specs(pid: int, path: Path, names: Iterable[str], *, first_id: int = 1, plan: bytes = BARE_PLAN) -> list[HookSpec]:
    base, known = bias(pid, path), symbols(path)
    return [
        HookSpec(id=first_id + n, address=base + known[name].value, size=known[name].size, function=name, module=str(path), plan=plan)
        for n, name in enumerate(names)
    ]


def enable(pool: Pool, hooks: Sequence[HookSpec], *, exits: bool = True) -> None:
    for hook in hooks:
        pool.hooks["flags"][hook.id] = HookFlag.ENABLED | (HookFlag.WANT_EXIT if exits else 0)


def code_differs(pid: int, path: Path) -> bool:
    """Whether any executable page of `path` in the target differs from the file."""
    content = path.read_bytes()
    with Path(f"/proc/{pid}/mem").open("rb") as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            words = line.split()
            if not line.endswith(f" {path}") or "x" not in words[1]:
                continue
            start, end = (int(bound, 16) for bound in words[0].split("-"))
            memory.seek(start)
            expected = content[int(words[2], 16) :][: end - start]
            if memory.read(end - start)[: len(expected)] != expected:
                return True
    return False
