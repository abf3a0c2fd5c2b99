"""Programs as Debian packages them, each with work whose output is the same every time."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_AT: Final = 1_700_000_000  # mtime of all files, s
_WORDS: Final = "".join(f"{word} {number % 7} {number}\n" for number, word in enumerate(["pear", "apple", "fig", "plum", "date", "kiwi"] * 40))
_KEY: Final = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl user@example\n"
_C: Final = """#include <stdio.h>
#include <string.h>
static int twice(int n) { return 2 * n; }
int main(int argc, char **argv) { for (int i = 0; i < argc; i++) printf("%d %zu\\n", twice(i), strlen(argv[i]) > 0); return 3; }
"""
_MAKE: Final = "all: b.out\n\t@cat b.out\nb.out: words.txt\n\t@sort words.txt | head -3 > b.out; echo made $@\n"
_FILES: Final = {
    "words.txt": _WORDS, "other.txt": _WORDS.replace("fig", "quince"), "data.csv": "".join(f"{n},{n * n},{n % 3}\n" for n in range(200)),
    "a.json": '{"list": [1, 2, {"name": "x", "value": null}], "text": "\\u00e4"}', "prog.c": _C, "Makefile": _MAKE, "key.pub": _KEY,
    "notes/one.md": "# One\n\nline\n", "notes/deep/two.md": "# Two\n",
    "script.pl": "my %h; while (<>) { my @f = split; $h{$f[0]} += $f[2] }\nprint \"$_ $h{$_}\\n\" for sort keys %h;\n",
    "script.py": "import collections, sys, threading\nc = collections.Counter(l.split()[0] for l in open('words.txt'))\n"
    "t = threading.Thread(target=print, args=(sorted(c.items()),))\nt.start(); t.join()\nsys.exit(5)\n",
    "script.cmake": 'file(READ words.txt text)\nstring(LENGTH "${text}" size)\nmessage(STATUS "size ${size}")\n',
    "script.lua": "local n = 0\nfor line in io.lines('words.txt') do n = n + #line end\nprint(n, string.format('%q', 'a\\nb'))\nos.exit(4)\n",
    "script.sql": "create table t(a, b);\ninsert into t values (1, 'x'), (2, 'y');\nselect count(*), max(b), sum(a) from t;\n",
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """A command line; `$` at its start is a shell's script. Text for its standard input, if any."""

    command: tuple[str, ...]
    stdin: str | None = None
    package: str | None = None  # where it is not in every Debian with a compiler
    broad: bool = True  # it has fewer functions than a launch can hook in its time

    @property
    def id(self) -> str:
        return f"{self.command[0]} {self.command[1]}" if self.command[0] in ("git", "openssl", "sh", "bash") else self.command[0]

    @property
    def path(self) -> str | None:
        return os.path.realpath(sys.executable) if self.command[0] == "python3" else shutil.which(self.command[0])  # not a script that picks one


def fill(folder: Path) -> None:
    """The files that the works need, anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (_AT, _AT))


def contents(folder: Path) -> dict[str, bytes | None]:
    """By path: what is in each file, None for folders. Git's index holds inode numbers and times: left out."""
    paths = [path for path in sorted(folder.rglob("*")) if path.name != "index"]
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in paths}


def _works(*lines: str) -> list[Work]:
    return [Work(tuple(line.split())) for line in lines]


_COREUTILS: Final = _works(
    "ls -1RF", "sort -k1,1 -k3,3nr words.txt", "uniq -c words.txt", "wc words.txt data.csv missing.txt", "cut -d, -f2 data.csv", "head -n5 words.txt",
    "tail -n5 words.txt", "tac words.txt", "seq 1 3 5000", "factor 1234567890123456789 97", "sha256sum words.txt a.json", "base64 words.txt",
    "od -A x -t x1z data.csv", "join -t, data.csv data.csv", "comm words.txt other.txt", "split -l 50 words.txt part-", "cp -r notes copied", "rm -r notes",
    "stat -c %s:%n words.txt data.csv", "date -u -d @86400 +%F", "dd if=words.txt of=out bs=100 count=7 status=none", "expr 7 * 6", "false",
)  # fmt: skip
_BINARIES: Final = _works(
    "objdump -h /bin/true", "readelf -W -l /bin/true", "nm -D /bin/cat", "strings -n 8 /bin/true", "as --version", "ld --version",
    "gcc -O1 -o prog prog.c", "g++ -x c++ -fsyntax-only prog.c", "cpp -P prog.c", "gdb -batch -nx -ex p/x\\ 42",
)  # fmt: skip
_TEXT: Final = [
    Work(("sed", "-n", "s/apple/APPLE/gp", "words.txt")),
    Work(("grep", "-rnE", "^(fig|plum) [0-3]", ".")),
    Work(("grep", "nothing like it", "words.txt")),
    Work(("awk", "{s[$1] += $3} END {for (w in s) if (w > m) m = w; print m, s[m]}", "words.txt")),
    Work(("find", ".", "-name", "*.md", "-size", "-2")),
    Work(("xargs", "-n", "2", "echo"), stdin="a b c d e"),
    Work(("diff", "-u", "--label", "a", "--label", "b", "words.txt", "other.txt")),
    Work(("perl", "script.pl", "words.txt")),
    Work(("tr", "a-z", "A-Z"), stdin="some text\n" * 1000),
    Work(("make", "-s")),
    Work(("tar", "cf", "all.tar", "--sort=name", "--owner=0", "--group=0", "--mtime=@0", "notes", "words.txt")),
    Work(("gzip", "-nk9", "words.txt")),
    Work(("bzip2", "-k", "words.txt"), package="bzip2"),
    Work(("xz", "-k", "-T1", "words.txt")),
    Work(("zstd", "-q", "-k", "words.txt"), package="zstd"),
    Work(("patch", "-p0", "-i", "missing.patch"), package="patch"),
    Work(("jq", "-c", ".list[2] | keys", "a.json"), package="jq"),
    Work(("bc", "-l"), stdin="scale=40\n4*a(1)\n2^200\n", package="bc"),
    Work(("sqlite3", ":memory:", ".read script.sql"), package="sqlite3"),
    Work(("lua5.4", "script.lua"), package="lua5.4"),
    Work(("python3", "script.py")),
    Work(("node", "-e", "console.log(require('fs').readFileSync('a.json','utf8').length); process.exit(6)"), broad=False),
    Work(("ssh-keygen", "-l", "-f", "key.pub"), package="openssh-client"),
    Work(("openssl", "dgst", "-sha512", "words.txt"), package="openssl"),
    Work(("file", "-b", "words.txt", "a.json"), package="file"),
    Work(("git", "diff", "--no-index", "--stat", "words.txt", "other.txt"), package="git"),
    Work(("git", "hash-object", "words.txt", "a.json"), package="git"),
    Work(("dpkg", "--compare-versions", "1.2~rc1", "gt", "1.2")),
    Work(("sh", "-c", "n=0; while read -r word rest; do n=$((n + 1)); done < words.txt; echo $n; kill -TERM $$")),
    Work(("bash", "-c", "declare -A a; while read -r w _; do ((a[$w]++)); done < words.txt; for k in fig plum; do echo $k ${a[$k]}; done; exit 9")),
]
WORKS: Final = [*_COREUTILS, *_BINARIES, *_TEXT]
