"""The pool: shared memory in which a target's threads write records. The one place that states its layout.

`python -m strobe.lanes.generate` writes the same facts to `agent/native/layout.gen.h`, `agent/frida/layout.gen.ts` and
`schemas/record-layout.json`; CI fails when one of those is stale. All numbers are little-endian.

    pool file
    ├── header        4096 bytes            POOL, and from GATES_OFFSET on gate_count × 64 GATE
    ├── hook table    hook_capacity × 32    HOOK     (written by session: flags, sample_period; by writers: the rest)
    ├── crash pages   crash_count × 128 KiB CRASH
    └── chunks        chunk_count × 256 KiB CHUNK = header 128 + map (1 byte a slot) + slots × 32

The session adds chunks (`chunk_count`, in the hole at the file's end) when more than half of them are in use.

A *lane* is the chain of chunks that one thread claimed. A thread claims a free chunk by compare-and-swap on `state`, fills it
front to back and claims the next. A chunk has one writer for the whole time it is owned, so a reservation is one unlocked `xadd`
on `written` (atomic against the thread's own signal handlers). An entry takes 1–255 consecutive 32-byte slots and never spans
chunks. It is published by its byte in `map`: the number of its slots, stored last, at the index of its first slot. Map bytes of
the further slots stay 0. The whole map is cleared when the chunk is claimed. So a reader finds the entries of a chunk with one
`flatnonzero`, and the published prefix ends at the first gap.

A chunk is closed (state 2) by its owner when it claimed the next one, or by the session once the owner is dead. The session sets
it free only after the store has committed all of it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

LAYOUT_VERSION: Final = 4
POOL_MAGIC: Final = 0x4C4F4F5042525453  # "STRBPOOL"
HEADER_BYTES: Final = 4096
HOOK_BYTES: Final = 32
HOOK_CAPACITY: Final = 65536
CRASH_BYTES: Final = 131072
CRASH_COUNT: Final = 8
GATES_OFFSET: Final = 2048
GATE_BYTES: Final = 64
GATE_COUNT: Final = 32
CHUNK_BYTES: Final = 262144
CHUNK_HEADER_BYTES: Final = 128
CHUNK_SLOTS: Final = 7936  # 128 + 7936 + pad to 8192, then 7936 × 32
CHUNK_MAP_OFFSET: Final = 128
CHUNK_SLOTS_OFFSET: Final = 8192
SLOT_BYTES: Final = 32
PAYLOAD_BYTES_MAX: Final = 254 * SLOT_BYTES
SPAN_THREAD_SHIFT: Final = 40  # span id = thread index << 40 | count within the thread
HOOKS_OFFSET: Final = HEADER_BYTES
CRASH_OFFSET: Final = HOOKS_OFFSET + HOOK_CAPACITY * HOOK_BYTES
CHUNKS_OFFSET: Final = CRASH_OFFSET + CRASH_COUNT * CRASH_BYTES


@dataclass(frozen=True, slots=True)
class Field:
    """One member of a record: its name, byte offset, C type (`u8`…`u64`, `i32`) and, for arrays, how many."""

    name: str
    offset: int
    type: str
    count: int = 1


POOL: Final = (
    Field("magic", 0, "u64"),
    Field("version", 8, "u32"),
    Field("clock", 12, "u32"),  # Clock
    Field("chunk_bytes", 16, "u32"),
    Field("chunk_count", 20, "u32"),  # may grow; the file is made for the most there may ever be
    Field("hooks_offset", 24, "u64"),
    Field("hook_capacity", 32, "u32"),
    Field("crash_count", 36, "u32"),
    Field("crash_offset", 40, "u64"),
    Field("chunks_offset", 48, "u64"),
    Field("pool_bytes", 56, "u64"),
    Field("recording", 64, "u32"),  # 0: every writer returns at once
    Field("reserve_chunks", 68, "u32"),  # the last free chunks, which trace records may not claim
    Field("chunks_free", 72, "i32"),  # kept by writers and session with atomic adds
    Field("threads", 76, "u32"),  # thread indexes given out; the first is 1
    Field("claim_hint", 80, "u32"),  # where to look first: the lowest chunk freed lately, so that few pages are used, and warm ones
    Field("crash_next", 84, "u32"),
    Field("dropped_by_kind", 88, "u64", 16),
    Field("stream_dev", 256, "u64", 2),  # st_dev and st_ino of the target's stdout and stderr: only writes to those are marked
    Field("stream_ino", 272, "u64", 2),
    Field("loading_pid", 288, "u32"),  # the process whose threads wait, when they have loaded a library, until `loads_seen` reaches theirs; 0: none
    Field("loads", 292, "u32"),  # futex: counts the times that libraries came, in that process
    Field("loads_seen", 296, "u32"),  # futex: how many of them the session has dealt with
    Field("unloads", 300, "u32"),  # counts the times that libraries went
    Field("image_floor", 304, "u32"),  # with fewer free chunks than this no images are made: calls are worth more than the objects they were given
    Field("copy_output", 308, "u32"),  # 1: what is written to stdout and stderr is copied: the payload of an OUTPUT_MARK is {offset u64, bytes u64}, the bytes
    Field("images_left_out", 312, "u64"),
    Field("stream_bytes", 320, "u64", 2),  # written to stdout and stderr while they were copied
    Field("output_lost", 336, "u64"),  # bytes of them that found no room
    Field("follower", 344, "u32"),  # the session's process, which answers at the gates; 0: nobody waits there
    Field("gate_asks", 348, "u32"),  # futex: counts the times that something at a gate changed for the session
    Field("gates_full", 352, "u32"),  # new images that found no gate free: they run on without the recorder
    Field("gates_left", 356, "u32"),  # how often nobody answered in time
)

GATE: Final = (
    Field("state", 0, "u32"),  # futex: GateState
    Field("pid", 4, "u32"),
    Field("tid", 8, "u32"),
    Field("reason", 12, "u32"),  # GateReason
    Field("path", 16, "u64"),  # EXEC: address of the path, 0: `folder` is the file itself; LOADED: address of strobe_internals
    Field("folder", 24, "i32"),  # EXEC: what a relative path counts from (AT_FDCWD: -100); LOADED: how many elements strobe_internals has
    Field("order", 28, "u32"),  # ORDER: what strobe_remote is to be called with
    Field("first", 32, "u64"),  # ASKS, LOADED: address of strobe_remote
    Field("second", 40, "u64"),
    Field("answer", 48, "u64"),  # DONE: what it returned
    Field("ticket", 56, "u64"),  # tells one use of a gate from another
)

HOOK: Final = (
    Field("left_out", 0, "u64"),  # calls that were not recorded because the function is sampled
    Field("dropped", 8, "u64"),  # records (enter or exit) that found no room
    Field("flags", 16, "u32"),  # HookFlag
    Field("sample_period", 20, "u32"),  # n > 1: the function is sampled, of n calls about one is recorded
    Field("unmatched", 24, "u64"),  # enters recorded without an exit to come (shadow stack full)
)

CRASH: Final = (
    Field("state", 0, "u32"),  # 0 free, 1 being written, 2 complete
    Field("signo", 4, "i32"),
    Field("code", 8, "i32"),
    Field("pid", 12, "u32"),
    Field("tid", 16, "u32"),
    Field("maps_bytes", 20, "u32"),
    Field("address", 24, "u64"),  # si_addr
    Field("ts", 32, "u64"),
    Field("stack_base", 40, "u64"),  # address of the first stack byte saved: rsp - 256
    Field("stack_bytes", 48, "u32"),
    Field("sender_pid", 52, "u32"),  # si_pid when code <= 0
    Field("span", 56, "u64"),  # innermost traced call
    Field("regs", 64, "u64", 23),  # gregset_t order of <sys/ucontext.h>
    Field("comm", 256, "u8", 16),
    Field("exception_bytes", 272, "u32"),  # of the payload of an UNWIND record at CRASH_EXCEPTION_OFFSET: an exception that the stack points to
)
CRASH_EXCEPTION_OFFSET: Final = 1024
CRASH_EXCEPTION_BYTES: Final = 3072
CRASH_STACK_OFFSET: Final = 4096
CRASH_STACK_BYTES: Final = 61440
CRASH_MAPS_OFFSET: Final = 65536
CRASH_MAPS_BYTES: Final = 65536

CHUNK: Final = (
    Field("state", 0, "u32"),  # ChunkState
    Field("serial", 4, "u32"),  # counts the claims of this chunk; never 0 while owned
    Field("pid", 8, "u32"),
    Field("tid", 12, "u32"),
    Field("thread", 16, "u32"),  # thread index, unique in the pool
    Field("order", 20, "u32"),  # this chunk's place in its thread's chain
    Field("written", 24, "u32"),  # slots reserved; may exceed CHUNK_SLOTS by a refused reservation: clamp
    Field("read", 28, "u32"),  # slots the store has committed
    Field("comm", 32, "u8", 16),
)

ENTRY: Final = (
    Field("ts", 0, "u64"),
    Field("span", 8, "u64"),
    Field("hook", 16, "u32"),  # OUTPUT_MARK: 1 stdout, 2 stderr
    Field("kind", 20, "u8"),
    Field("flags", 21, "u8"),
    Field("slots", 22, "u8"),  # this one included
    Field("reserved", 23, "u8"),
    Field("word", 24, "u64"),  # ENTER: parent span; EXIT: rax, or xmm0 by the plan; OUTPUT_MARK: bytes written
)


class Clock(enum.IntEnum):
    """What `ts` counts."""

    MONOTONIC = 0  # ns of CLOCK_MONOTONIC
    TSC = 1  # time-stamp counter, only with constant_tsc, nonstop_tsc and clocksource tsc


class ChunkState(enum.IntEnum):
    FREE = 0
    OWNED = 1
    CLOSED = 2


class GateState(enum.IntEnum):
    """Of a process that waits for the session. It waits GATE_WAIT_NS at most in ASKS, then goes on (FREE); while it is HELD somewhat longer. Who asks
    changes FREE, TAKEN and DONE, the session the rest; what both may change is changed by compare-and-swap."""

    FREE = 0
    TAKEN = 1  # not filled in yet
    ASKS = 2
    HELD = 3  # the session is about to change its code
    ORDER = 4  # it shall call strobe_remote, then it is DONE
    DONE = 5
    GO = 6


class GateReason(enum.IntEnum):
    EXEC = 0  # it is about to become another program
    LOADED = 1  # it has become one, and has the recorder; its entry point comes next


class Kind(enum.IntEnum):
    """What a record says."""

    ENTER = 1
    EXIT = 2
    UNWIND = 3  # the call ended without returning: exception, longjmp, abandoned coroutine
    YIELD = 4
    RESUME = 5
    OUTPUT_MARK = 6
    LOG = 7
    WATCH = 8
    EXCEPTION = 9
    THREAD_NAME = 10
    PAD = 11


class EntryFlag(enum.IntFlag):
    SAMPLED = 1
    TRUNCATED = 2  # payload cut at a limit
    TAIL_CALL = 4  # entered by a jump from another traced function
    NO_EXIT = 8  # no exit record will follow


class HookFlag(enum.IntFlag):
    ENABLED = 1
    WANT_EXIT = 2


class PlanOp(enum.IntEnum):
    """A step of a capture plan: {op u8, arg u8, size u8, dst u8, imm i32}. `dst` is an offset in the entry's payload."""

    END = 0  # ends the enter list, and the exit list after it
    GPR = 1  # `size` low bytes of integer register arg: 0–5 rdi rsi rdx rcx r8 r9, 6 rax, 7 rdx (6, 7 on exit)
    XMM = 2  # `size` (4 or 8) low bytes of xmm[arg]
    STACK = 3  # `size` bytes at entry rsp + 8 + imm
    CSTR = 4  # pointer in GPR arg: STRING descriptor at dst, at most imm bytes appended to the payload's tail
    STACK_CSTR = 5  # the same for a pointer at entry rsp + 8 + (imm >> 12), at most imm & 4095 bytes
    WORD_XMM = 6  # exit only: `word` is xmm0 instead of rax
    LEA = 7  # enter only: the address entry rsp + 8 + imm itself, 8 bytes: where a value passed in memory is
    VECTOR = 8  # 16 bytes of xmm[arg], whole (on exit 0 or 1); `size` 32: of ymm[arg]
    X87 = 9  # exit only: 10 bytes of st(arg), arg 0 or 1, in 16 bytes of room, the rest 0
    IMAGE = 10  # STRING descriptor, at dst, of the image (REGIONs) that the WALK steps after this one append to the payload's tail: at most imm bytes
    WALK = 11  # runs the walk program that begins at step imm of the plan's walk section on the object that lies in the payload at dst


PLAN_OP_BYTES: Final = 8
WALK_STEP_BYTES: Final = 32
WALK_NOTHING: Final = 0xFFFFFFFF  # a `target` that has no program
WALK_STEP: Final = (  # a step of a walk program (WalkOp); the section is an array of them, programs end with END and refer to each other by index
    Field("op", 0, "u8"),
    Field("flags", 1, "u8"),  # WalkFlag
    Field("limit", 2, "u16"),  # how many elements, nodes or units at most; WHEN: mask of the low 16 bits, 0 for none
    Field("offset", 4, "u32"),  # in the object the program runs on
    Field("size", 8, "u32"),  # bytes: of what is pointed to, of an element, a node, a character
    Field("target", 12, "u32"),  # the program to run on each object copied
    Field("a", 16, "u64"),
    Field("b", 24, "u64"),
)
REGION_BYTES: Final = 16
REGION: Final = (  # one copied stretch of the target's memory; its bytes follow, padded to a multiple of 8
    Field("address", 0, "u64"),
    Field("bytes", 8, "u32"),
    Field("state", 12, "u32"),  # RegionState
)
STRING: Final = (  # the 8-byte descriptor of a captured string
    Field("offset", 0, "u16"),  # from the start of the payload
    Field("length", 2, "u16"),
    Field("state", 4, "u8"),  # StringState
)


class StringState(enum.IntEnum):
    OK = 0
    NULL = 1
    UNREADABLE = 2
    TRUNCATED = 3


class RegionState(enum.IntEnum):
    OK = 0
    UNREADABLE = 1  # the memory ends after `bytes`
    CUT = 2  # there was more: a limit of the step, or the event's budget


class WalkFlag(enum.IntFlag):
    END_POINTER = 1  # ARRAY: the word at `a` is where the elements end, not how many there are
    COUNT_32 = 2  # ARRAY: the number at `a` has 4 bytes instead of 8
    NOT = 4  # WHEN: if it is outside
    SENTINEL = 8  # LIST: ends at the object's own address + b
    THREAD_LOCAL = 16  # AT: `a` counts from the thread pointer
    SOFT = 32  # POINT: as many of the bytes as can be read
    COUNTED = 64  # EACH: as many as the u16 at `a` says, at most `limit`
    TOLD = 128  # NEAR: and as far again as the signed word says that lies `b` bytes (signed) from where field `offset` points


class WalkOp(enum.IntEnum):
    """What a walk program does. It runs on an object whose bytes were copied already; "field X" is what lies in it X bytes from its start.

    What is copied becomes a region of the image, each stretch once; a null pointer copies nothing. A program ends early when the budget is used.
    """

    END = 0
    POINT = 1  # field `offset` is a pointer: `size` bytes there, then `target` on them
    TEXT = 2  # field `offset` is a pointer to characters of `size` bytes that end with a 0: at most `limit` of them, the 0 too where it comes
    ARRAY = 3  # field `offset` is a pointer, `a` how many elements of `size` bytes (WalkFlag), `b` behind it (or before): at most `limit`; target on each
    EACH = 4  # `limit` objects of `size` bytes in a row, in the object itself at `offset`: `target` on each
    WHEN = 5  # `target` on the same object if the unsigned number of `size` bytes at `offset` is in a..b
    LIST = 6  # field `offset` points to the first node (`size` bytes), its field `a` to the next; ends at null, at the first node, at SENTINEL
    TREE = 7  # field `offset` points to the root; fields `a` and `b` of a node point to its left and right side: in order from the left; `target` on each
    BLOCKS = 8  # deque of libstdc++: fields `offset` and `a` are its first and last iterators {cur, first, last, node}; elements of `size` bytes, b in a block
    RING = 9  # ARRAY that wraps: field `offset` pointer, fields `a` low half: capacity, high half: first index, `b` low half: count (offsets of u64 fields)
    SWISS = 10  # hash table of Rust: fields `offset` control bytes, `a` bucket mask; buckets of `size` bytes below the control bytes; `target` on each full one
    BTREE = 11  # map of Rust: fields `offset` root, `a` height; leaf nodes of `size` bytes; b: in one, low half: edges, high half: u16 length; `target` on each
    AT = 12  # `size` bytes at the address `a` itself, then `target` on them
    MAPPED = 13  # deque of libc++: field `offset` points to the block pointers; `a`: u64 start (low half) and count (high half); b elements of `size` a block
    DYNAMIC = 14  # Rust's `dyn`: field `offset` points to the value, field `a` to its vtable, whose second word is the value's size: at most `limit` bytes
    NEAR = 15  # `size` bytes, `a` bytes (signed) from the object's own address; then `target` on them. Nothing for an object in the payload
