"""Runs inside gdb (`gdb -x`): arguments and results of chosen calls, as strobe/values/README.md would have them shown, by gdb's own knowledge.

In: environment RECORD_IN, a JSON file {"functions": {linkage name: link-time address}, "calls": [numbers of the calls wanted of each, from 1], "values":
how many are shown of an argument at most, "arguments": "...", "pie": bool, "noise": how many calls of each function get noise below their stack, "setup": [gdb commands]}; out: RECORD_OUT, a JSON list of {function, call,
arguments: {name: value}, result?}. For optimised code, whose debug info says where arguments are at a function's first instruction.
"""

import json
import os
import sys

import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from gdb_containers import show  # noqa: E402
from gdb_shown import UNKNOWN  # noqa: E402

ASK = json.load(open(os.environ["RECORD_IN"]))
WANTED = set(ASK["calls"])
CALLS = []
NOISE = bytes(range(0xA1, 0xFF)) * 168  # no addresses; written below the stack at calls and returns: what the program itself didn't write there is then noise
LAST = max(max(WANTED), ASK["noise"])
STARTS_MAX = 40


def shown(read):
    try:
        return show(read(), ASK["values"])
    except (gdb.error, ValueError, RuntimeError) as error:
        return f"{UNKNOWN}{type(error).__name__}: {error}>"


def arguments(frame):
    """None without debug info."""
    block = gdb.block_for_pc(frame.pc()) if frame.function() else None
    while block is not None and (block.function is None or block.function.name != frame.function().name):
        block = block.superblock
    return {symbol.name: shown(lambda: frame.read_var(symbol)) for symbol in block or () if symbol.is_argument}


def make_noise():
    """Nothing is in use below the stack's end as a call or a return begins."""
    if ASK["noise"]:
        gdb.selected_inferior().write_memory(int(gdb.parse_and_eval("$sp")) - len(NOISE), NOISE)


class Leave(gdb.FinishBreakpoint):
    """`call` None: one that is not wanted."""

    def __init__(self, frame, call):
        super().__init__(frame, internal=True)
        self.silent = True
        self.call = call

    def stop(self):
        make_noise()
        if self.call is not None and self.return_value is not None:
            self.call["result"] = shown(lambda: self.return_value)
        return False


class Enter(gdb.Breakpoint):
    def __init__(self, name, address):
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self.name = name
        self.count = 0

    def stop(self):
        self.count += 1
        if self.count >= LAST:
            self.enabled = False
        is_wanted = self.count in WANTED
        if is_wanted or ASK["noise"]:
            make_noise()
            self.enter(is_wanted)
        return False

    def enter(self, is_wanted):
        frame = gdb.newest_frame()
        while frame.type() == gdb.INLINE_FRAME:  # what was inlined at the function's beginning
            frame = frame.older()
        frame.select()
        call = {"function": self.name, "call": self.count, "arguments": arguments(frame)} if is_wanted else None
        if is_wanted:
            CALLS.append(call)
        if frame.older() is not None:
            Leave(frame, call)


for command in ("set pagination off", "set confirm off", "set breakpoint pending off", "set print object off", "set print elements 200", *ASK["setup"]):
    gdb.execute(command)


def is_moved():
    """No upper half of an address of stack or program is one that there is without randomisation (0x7fff…, 0x5555…)."""
    registers = [int(gdb.parse_and_eval(name)) & (2**64 - 1) for name in ("$sp", "$pc")]
    program = min(int(line.split()[0], 16) for line in gdb.execute("info proc mappings", to_string=True).splitlines() if line.split()[:1] and line.split()[0].startswith("0x"))
    return all(register >> 32 != 0x7FFF for register in registers) and program >> 40 != 0x55


gdb.execute("starti " + ASK["arguments"])
for _ in range(STARTS_MAX if ASK["noise"] else 0):
    if is_moved():
        break
    gdb.execute("starti " + ASK["arguments"])
mapping = min(int(line.split()[0], 16) for line in gdb.execute("info proc mappings", to_string=True).splitlines() if line.endswith(gdb.current_progspace().filename))
base = mapping if ASK["pie"] else 0
for name, address in ASK["functions"].items():
    Enter(name, base + address)
gdb.execute("continue")
json.dump(CALLS, open(os.environ["RECORD_OUT"], "w"))
