"""Runs inside gdb (`gdb -x`): registers and all memory of a program at chosen functions' first instructions, and where they return.

In: environment RECORD_IN, a JSON file {"functions": {linkage name: link-time address}, "pie": bool}; out: RECORD_OUT, a folder with `calls.json`, a list
of {function, at: enter | leave, core (a file in it), registers (rdi rsi rdx rcx r8 r9 rsp), xmm: [16 bytes each, hex], rax, rdx, st: [hex, hex], bias}.
"""

import json
import os
import re

import gdb

ASK = json.load(open(os.environ["RECORD_IN"]))
OUT = os.environ["RECORD_OUT"]
CALLS = []


def word(register):
    return int(gdb.selected_frame().read_register(register)) & (2**64 - 1)


def vector(register):
    halves = gdb.selected_frame().read_register(register)["v2_int64"]
    return b"".join((int(halves[at]) & (2**64 - 1)).to_bytes(8, "little") for at in range(2)).hex()


def x87():
    text = gdb.execute("info float", to_string=True)
    raw = {int(number): (bool(mark), bytes.fromhex(digits)[::-1].hex()) for mark, number, digits in re.findall(r"(=>)?\s*R(\d): \w+\s+0x([0-9a-f]{20})", text)}
    top = next(number for number, (mark, _) in raw.items() if mark)
    return [raw[(top + at) % 8][1] for at in range(2)]


def note(name, at):
    core = f"{len(CALLS)}.core"
    gdb.execute(f"gcore {OUT}/{core}", to_string=True)
    call = {"function": name, "at": at, "core": core, "bias": BASE, "rax": word("rax"), "rdx": word("rdx"), "st": x87()}
    call["registers"] = [word(one) for one in ("rdi", "rsi", "rdx", "rcx", "r8", "r9", "rsp")]
    call["xmm"] = [vector(f"xmm{one}") for one in range(8)]
    CALLS.append(call)


gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set use-coredump-filter off")
gdb.execute("starti")
mapping = min(int(line.split()[0], 16) for line in gdb.execute("info proc mappings", to_string=True).splitlines() if line.endswith(gdb.current_progspace().filename))
BASE = mapping if ASK["pie"] else 0
names = {}
for name, address in ASK["functions"].items():
    gdb.execute(f"break *{BASE + address:#x}")
    names[BASE + address] = name
gdb.execute("continue")
while gdb.selected_inferior().pid:
    name = names.get(word("rip"))
    if name is None:
        break
    note(name, "enter")
    back = int.from_bytes(bytes(gdb.selected_inferior().read_memory(word("rsp"), 8)), "little")
    gdb.execute(f"tbreak *{back:#x}")
    gdb.execute("continue")
    note(name, "leave")
    gdb.execute("continue")
json.dump(CALLS, open(os.path.join(OUT, "calls.json"), "w"))
