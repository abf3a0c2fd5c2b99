"""A C program of 100,000 functions with debug info (about 60 MB), for symbol benchmarks: `python -m tests.bench.generate_large` prints its path.

Generated and compiled in parallel (a minute or two on 2 cores), once, into tests/targets/build. The program calls one function of each
file and prints a number; given an argument, it waits for a line on its standard input first.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.harness.targets import BUILD, compiler_version, require

FILES: Final = 200
FUNCTIONS_PER_FILE: Final = 500
SEED: Final = 20_261_121
FLAGS: Final = ("-g", "-O1", "-std=gnu11", "-w", "-fno-inline")
COMPILE_S: Final = 600
_WORDS: Final = ("parse", "encode", "flush", "lookup", "insert", "remove", "merge", "split", "verify", "update", "schedule", "resolve", "render", "measure")
_NOUNS: Final = ("header", "packet", "session", "cursor", "buffer", "record", "token", "window", "bucket", "handle", "region", "query", "index", "frame")
_SCALARS: Final = (
    ("int", "i"), ("unsigned long", "u"), ("double", "d"), ("float", "f"), ("const char *", "s"), ("size_t", "z"), ("enum color", "c"), ("int8_t", "b"),
)  # fmt: skip


def function_name(file: int, number: int) -> str:
    return f"unit{file:03}_{_WORDS[number % len(_WORDS)]}_{_NOUNS[(number // 14) % len(_NOUNS)]}_{number:03}"


def _header() -> str:
    lines = ["#include <stddef.h>", "#include <stdint.h>", "enum color { COLOR_RED = 1, COLOR_GREEN = 5, COLOR_BLUE = -3 };"]
    for index in range(60):
        before = f"struct node_{index - 1} *previous;" if index else "void *previous;"
        members = f"int id; {before} double weight; char name[{16 + index}]; struct {{ uint16_t low, high; }} range; enum color shade;"
        lines.append(f"struct node_{index} {{ {members} }};")
        lines.append(f"typedef int (*visit_{index})(struct node_{index} *, const char *);")
    return "\n".join(lines)


def _parameters(chance: random.Random) -> list[tuple[str, str]]:
    chosen = [chance.choice(_SCALARS) for _ in range(chance.randint(1, 5))]
    named = [(kind, f"{letter}{position}") for position, (kind, letter) in enumerate(chosen)]
    if chance.random() < 0.4:
        named.append((f"struct node_{chance.randrange(60)} *", "node"))
    return named


def _term(kind: str, name: str) -> str:
    if kind.startswith("const char"):
        return f"(long)({name} ? {name}[0] : 0)"
    return f"(long)(size_t){name}" if kind.endswith("*") else f"(long){name}"


def _source(file: int) -> str:
    chance = random.Random(SEED + file)
    lines = ['#include "large.h"']
    previous: tuple[str, int] | None = None
    for number in range(FUNCTIONS_PER_FILE):
        name, parameters = function_name(file, number), _parameters(chance)
        declared = ", ".join(f"{kind}{'' if kind.endswith('*') else ' '}{parameter}" for kind, parameter in parameters)
        total = " + ".join(_term(kind, parameter) for kind, parameter in parameters)
        lines += [f"long {name}({declared})", "{", f"    long total = {total};", f"    for (int step = 0; step < {number % 7 + 1}; step++) {{"]
        lines += ["        long shifted = total << (step & 3);", f"        total ^= shifted + {number};", "    }"]
        if previous is not None and number % 3 == 0:
            lines.append(f"    if (total == {number}) total += {previous[0]}({', '.join('0' for _ in range(previous[1]))});")
        lines += ["    return total;", "}"]
        previous = (name, len(parameters))
    lines += [f"long unit{file:03}_enter(void)", "{", f"    return {previous[0]}({', '.join('0' for _ in range(previous[1]))});" if previous else "", "}"]
    return "\n".join(lines) + "\n"


def _main() -> str:
    declared = "\n".join(f"long unit{file:03}_enter(void);" for file in range(FILES))
    calls = "\n".join(f"    total += unit{file:03}_enter();" for file in range(FILES))
    body = f'    if (argc > 1) getchar();\n    long total = argc * 0;\n{calls}\n    printf("%ld\\n", total);\n    return !argv;\n'
    return f"#include <stdio.h>\n{declared}\nint main(int argc, char **argv)\n{{\n{body}}}\n"


def large_program(compiler: str = "gcc", *, flags: tuple[str, ...] = FLAGS) -> Path:
    """Path of the program, built now unless it is there."""
    tool = require(compiler)
    sources = {f"unit{file:03}.c": _source(file) for file in range(FILES)} | {"main.c": _main()}
    digest = hashlib.sha256(repr((sources, _header(), flags, compiler_version(tool))).encode()).hexdigest()[:12]
    built = BUILD / f"large-{digest}" / "large"
    if not built.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            _build(Path(folder), sources, tool, flags)
            built.parent.mkdir(exist_ok=True)
            shutil.move(Path(folder) / "large", built)
    return built


def _build(folder: Path, sources: dict[str, str], tool: str, flags: tuple[str, ...]) -> None:
    (folder / "large.h").write_text(_header())
    for name, text in sources.items():
        (folder / name).write_text(text)

    def compile_one(name: str) -> None:
        subprocess.run([tool, *flags, "-c", name], cwd=folder, check=True, timeout=COMPILE_S, stdin=subprocess.DEVNULL)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(compile_one, sources))
    objects = [f"{Path(name).stem}.o" for name in sources]
    subprocess.run([tool, *flags, "-o", "large", *objects], cwd=folder, check=True, timeout=COMPILE_S, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="gcc")
    print(large_program(parser.parse_args().compiler))
