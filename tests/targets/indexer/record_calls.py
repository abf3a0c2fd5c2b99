"""Runs inside gdb (`gdb -x`): records registers, stack, arguments and results of chosen functions, as gdb knows them.

In: environment RECORD_IN, a JSON file {"functions": {linkage name: link-time address}, "hits": n, "arguments": "..."}; out: RECORD_OUT, a JSON list of
{function, registers, xmm, stack (hex, from the return address up), arguments: {name: number | text | null}, result?, rax?, xmm0?,
vectors (all 16 bytes of xmm0 to 7), pointed: {integer register: hex bytes where it points}, bytes: {name: hex} of arguments that are no numbers, as
unoptimised code has them in memory, parts: [[offset, hex]] of such a result, leave: {rdx, vectors, st: [hex, hex], pointed: hex where rax points}}.
"""

import json
import math
import os
import re
import struct

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


def memory(address, size):
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size)).hex()
    except (gdb.MemoryError, gdb.error):
        return None


def vector(register):
    halves = gdb.selected_frame().read_register(register)["v2_int64"]
    return b"".join((int(halves[at]) & (2**64 - 1)).to_bytes(8, "little") for at in range(2)).hex()


def x87():
    """st(0) and st(1), 10 bytes each: `info float` marks the one that is st(0)."""
    text = gdb.execute("info float", to_string=True)
    raw = {int(number): (bool(mark), bytes.fromhex(digits)[::-1].hex()) for mark, number, digits in re.findall(r"(=>)?\s*R(\d): \w+\s+0x([0-9a-f]{20})", text)}
    top = next((number for number, (mark, _) in raw.items() if mark), None)
    return [] if top is None else [raw[(top + at) % 8][1] for at in range(2)]


def extended(value):
    """A long double that is a double as the x87 has it: 64 bits with the leading 1, then sign and exponent."""
    if value == 0:
        return bytes(10).hex()
    fraction, exponent = math.frexp(abs(value))
    return (int(fraction * 2**64).to_bytes(8, "little") + (exponent + 16382 | (0x8000 if value < 0 else 0)).to_bytes(2, "little")).hex()


def floating(value, size):
    return extended(value) if size == 16 else struct.pack("<f" if size == 4 else "<d", value).hex()


def parts(value, offset=0):
    """[offset, hex] of each number in a value that need not be in memory."""
    kind = value.type.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        fields = [field for field in kind.fields() if hasattr(field, "bitpos") and not field.artificial and not field.bitsize]
        return [part for field in fields for part in parts(value[field], offset + field.bitpos // 8)]
    if kind.code == gdb.TYPE_CODE_ARRAY:
        low, high = kind.range()
        step = kind.target().sizeof
        return [part for at in range(low, high + 1) for part in parts(value[at], offset + (at - low) * step)]
    if kind.code == gdb.TYPE_CODE_FLT:
        return [[offset, floating(float(value), kind.sizeof)]]
    if kind.code == gdb.TYPE_CODE_COMPLEX:
        size = kind.sizeof // 2
        return [[offset + size * at, floating(float(part), size)] for at, part in enumerate(re.fullmatch(r"(\S+) \+ (\S+)i", str(value)).groups())]
    if kind.code in SIMPLE and kind.sizeof <= 16:
        return [[offset, (int(value) & (256**kind.sizeof - 1)).to_bytes(kind.sizeof, "little").hex()]]
    return []


def whole(frame):
    """Bytes of the arguments that are no numbers."""
    found = {}
    for symbol in frame.block():
        if not symbol.is_argument:
            continue
        try:
            value = frame.read_var(symbol)
            if number(value) is None and not value.is_optimized_out and value.address is not None:
                found[symbol.name] = memory(int(value.address), min(value.type.sizeof, 128))
        except gdb.error:  # nullptr_t, which gdb takes for void
            continue
    return found


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
        if self.call["result"] is None and self.return_value is not None:
            try:
                self.call["parts"] = parts(self.return_value)
            except gdb.error:  # a union of what is not there, a base that is virtual
                self.call["parts"] = []
        vectors = [vector("xmm0"), vector("xmm1")]
        self.call["leave"] = {"rdx": word("rdx"), "vectors": vectors, "st": x87(), "pointed": memory(self.call["rax"], 128)}
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
        call["vectors"] = [vector(f"xmm{one}") for one in range(8)]
        call["pointed"] = {str(one): memory(address, 128) for one, address in enumerate(call["registers"][:6])}
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
                if "after" not in call:
                    call["after"] = arguments(frame)
                    call["bytes"] = whole(frame)
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
