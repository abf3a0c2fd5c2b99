"""Runs inside gdb (`gdb -x`): records registers, stack, arguments and results of chosen functions, as gdb knows them.

In: environment RECORD_IN, a JSON file {"functions": {linkage name: link-time address}, "hits": n, "arguments": "..."}; out: RECORD_OUT, a JSON list of
{function, registers, xmm, stack (hex, from the return address up), arguments: {name: number | text | null}, result?, rax?, xmm0?}.
"""

import json
import os

import gdb

ASK = json.load(open(os.environ["RECORD_IN"]))
CALLS = []
INTEGERS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9", "rsp")
SIMPLE = {gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF}


def number(value):
    """What a value is as a number; None for aggregates and what gdb cannot tell."""
    if value is None or value.is_optimized_out:
        return None
    try:
        kind = value.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_FLT:
            return float(value) if kind.sizeof in (4, 8) else None
        if kind.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            return int(value.address) if value.address is not None else None
        return int(value) if kind.code in SIMPLE else None
    except (gdb.error, OverflowError):
        return None


def arguments(frame):
    found = {}
    try:
        block = frame.block()
    except RuntimeError:  # no debug info
        return found
    for symbol in block:
        if symbol.is_argument:
            try:
                found[symbol.name] = number(frame.read_var(symbol))
            except (gdb.error, ValueError):
                found[symbol.name] = None
    return found


def word(register):
    value = gdb.selected_frame().read_register(register)
    return int(value["v2_int64"][0]) & (2**64 - 1) if register.startswith("xmm") else int(value) & (2**64 - 1)


class Leave(gdb.FinishBreakpoint):
    def __init__(self, frame, call):
        super().__init__(frame, internal=True)
        self.silent = True
        self.call = call

    def stop(self):
        self.call["result"] = number(self.return_value)
        self.call["rax"], self.call["xmm0"] = word("rax"), word("xmm0")
        return False


class Enter(gdb.Breakpoint):
    def __init__(self, name, address):
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self.name = name
        self.left = ASK["hits"]

    def stop(self):
        if self.left <= 0:
            return False
        self.left -= 1
        frame = gdb.newest_frame()
        frame.select()
        call = {"function": self.name, "registers": [word(one) for one in INTEGERS], "xmm": [word(f"xmm{one}") for one in range(8)]}
        call["stack"] = bytes(gdb.selected_inferior().read_memory(call["registers"][6], 256)).hex()
        call["arguments"] = arguments(frame)
        CALLS.append(call)
        if frame.older() is not None:
            Leave(frame, call)
        return False


class After(gdb.Breakpoint):
    """Past the prologue, where unoptimised code has its arguments in its frame."""

    def __init__(self, name, address):
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self.name = name

    def stop(self):
        frame = gdb.newest_frame()
        frame.select()
        for call in reversed(CALLS):
            if call["function"] == self.name:
                call.setdefault("after", arguments(frame))
                break
        return False


def past_prologue(address):
    """gdb's own choice of where a function's frame is set up: the second line of its line table."""
    table = gdb.find_pc_line(address).symtab
    block = gdb.block_for_pc(address)
    if table is None or block is None:
        return None
    starts = sorted({line.pc for line in table.linetable() if address < line.pc < block.end})
    return starts[0] if starts else None


gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set breakpoint pending off")
gdb.execute("starti " + ASK["arguments"])
mapping = min(int(line.split()[0], 16) for line in gdb.execute("info proc mappings", to_string=True).splitlines() if line.endswith(gdb.current_progspace().filename))
base = mapping if ASK["pie"] else 0
for name, address in ASK["functions"].items():
    Enter(name, base + address)
    after = past_prologue(base + address) if ASK["unoptimised"] else None
    if after is not None:
        After(name, after)
gdb.execute("continue")
json.dump(CALLS, open(os.environ["RECORD_OUT"], "w"))
