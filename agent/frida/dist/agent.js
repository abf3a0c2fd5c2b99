"use strict";
(() => {
  var __defProp = Object.defineProperty;
  var __export = (target, all) => {
    for (var name in all)
      __defProp(target, name, { get: all[name], enumerable: true });
  };

  // layout.gen.ts
  var layout_gen_exports = {};
  __export(layout_gen_exports, {
    CHUNK: () => CHUNK,
    CHUNKS_OFFSET: () => CHUNKS_OFFSET,
    CHUNK_BYTES: () => CHUNK_BYTES,
    CHUNK_HEADER_BYTES: () => CHUNK_HEADER_BYTES,
    CHUNK_MAP_OFFSET: () => CHUNK_MAP_OFFSET,
    CHUNK_SIZE: () => CHUNK_SIZE,
    CHUNK_SLOTS: () => CHUNK_SLOTS,
    CHUNK_SLOTS_OFFSET: () => CHUNK_SLOTS_OFFSET,
    CRASH: () => CRASH,
    CRASH_BYTES: () => CRASH_BYTES,
    CRASH_COUNT: () => CRASH_COUNT,
    CRASH_EXCEPTION_BYTES: () => CRASH_EXCEPTION_BYTES,
    CRASH_EXCEPTION_OFFSET: () => CRASH_EXCEPTION_OFFSET,
    CRASH_MAPS_BYTES: () => CRASH_MAPS_BYTES,
    CRASH_MAPS_OFFSET: () => CRASH_MAPS_OFFSET,
    CRASH_OFFSET: () => CRASH_OFFSET,
    CRASH_SIZE: () => CRASH_SIZE,
    CRASH_STACK_BYTES: () => CRASH_STACK_BYTES,
    CRASH_STACK_OFFSET: () => CRASH_STACK_OFFSET,
    ChunkState: () => ChunkState,
    Clock: () => Clock,
    ENTRY: () => ENTRY,
    ENTRY_SIZE: () => ENTRY_SIZE,
    EntryFlag: () => EntryFlag,
    GATE: () => GATE,
    GATES_OFFSET: () => GATES_OFFSET,
    GATE_BYTES: () => GATE_BYTES,
    GATE_COUNT: () => GATE_COUNT,
    GATE_SIZE: () => GATE_SIZE,
    GateReason: () => GateReason,
    GateState: () => GateState,
    HEADER_BYTES: () => HEADER_BYTES,
    HOOK: () => HOOK,
    HOOKS_OFFSET: () => HOOKS_OFFSET,
    HOOK_BYTES: () => HOOK_BYTES,
    HOOK_CAPACITY: () => HOOK_CAPACITY,
    HOOK_SIZE: () => HOOK_SIZE,
    HookFlag: () => HookFlag,
    Kind: () => Kind,
    LAYOUT_VERSION: () => LAYOUT_VERSION,
    PAYLOAD_BYTES_MAX: () => PAYLOAD_BYTES_MAX,
    PLAN_OP_BYTES: () => PLAN_OP_BYTES,
    POOL: () => POOL,
    POOL_MAGIC: () => POOL_MAGIC,
    POOL_SIZE: () => POOL_SIZE,
    PlanOp: () => PlanOp,
    REGION: () => REGION,
    REGION_BYTES: () => REGION_BYTES,
    REGION_SIZE: () => REGION_SIZE,
    RegionState: () => RegionState,
    SLOT_BYTES: () => SLOT_BYTES,
    SPAN_THREAD_SHIFT: () => SPAN_THREAD_SHIFT,
    STRING: () => STRING,
    STRING_SIZE: () => STRING_SIZE,
    StringState: () => StringState,
    WALK_NOTHING: () => WALK_NOTHING,
    WALK_STEP: () => WALK_STEP,
    WALK_STEP_BYTES: () => WALK_STEP_BYTES,
    WALK_STEP_SIZE: () => WALK_STEP_SIZE,
    WalkFlag: () => WalkFlag,
    WalkOp: () => WalkOp
  });
  var LAYOUT_VERSION = 4;
  var POOL_MAGIC = 0x4c4f4f5042525453n;
  var HEADER_BYTES = 4096;
  var HOOK_BYTES = 32;
  var HOOK_CAPACITY = 65536;
  var CRASH_BYTES = 131072;
  var CRASH_COUNT = 8;
  var GATES_OFFSET = 2048;
  var GATE_BYTES = 64;
  var GATE_COUNT = 32;
  var CHUNK_BYTES = 262144;
  var CHUNK_HEADER_BYTES = 128;
  var CHUNK_SLOTS = 7936;
  var CHUNK_MAP_OFFSET = 128;
  var CHUNK_SLOTS_OFFSET = 8192;
  var SLOT_BYTES = 32;
  var PAYLOAD_BYTES_MAX = 8128;
  var SPAN_THREAD_SHIFT = 40;
  var HOOKS_OFFSET = 4096;
  var CRASH_OFFSET = 2101248;
  var CHUNKS_OFFSET = 3149824;
  var CRASH_EXCEPTION_OFFSET = 1024;
  var CRASH_EXCEPTION_BYTES = 3072;
  var CRASH_STACK_OFFSET = 4096;
  var CRASH_STACK_BYTES = 61440;
  var CRASH_MAPS_OFFSET = 65536;
  var CRASH_MAPS_BYTES = 65536;
  var PLAN_OP_BYTES = 8;
  var WALK_STEP_BYTES = 32;
  var WALK_NOTHING = 4294967295;
  var REGION_BYTES = 16;
  var Clock = { MONOTONIC: 0, TSC: 1 };
  var ChunkState = { FREE: 0, OWNED: 1, CLOSED: 2 };
  var GateState = { FREE: 0, TAKEN: 1, ASKS: 2, HELD: 3, ORDER: 4, DONE: 5, GO: 6 };
  var GateReason = { EXEC: 0, LOADED: 1 };
  var Kind = { ENTER: 1, EXIT: 2, UNWIND: 3, YIELD: 4, RESUME: 5, OUTPUT_MARK: 6, LOG: 7, WATCH: 8, EXCEPTION: 9, THREAD_NAME: 10, PAD: 11 };
  var EntryFlag = { SAMPLED: 1, TRUNCATED: 2, TAIL_CALL: 4, NO_EXIT: 8 };
  var HookFlag = { ENABLED: 1, WANT_EXIT: 2 };
  var PlanOp = { END: 0, GPR: 1, XMM: 2, STACK: 3, CSTR: 4, STACK_CSTR: 5, WORD_XMM: 6, LEA: 7, VECTOR: 8, X87: 9, IMAGE: 10, WALK: 11 };
  var StringState = { OK: 0, NULL: 1, UNREADABLE: 2, TRUNCATED: 3 };
  var RegionState = { OK: 0, UNREADABLE: 1, CUT: 2 };
  var WalkFlag = { END_POINTER: 1, COUNT_32: 2, NOT: 4, SENTINEL: 8, THREAD_LOCAL: 16, SOFT: 32, COUNTED: 64, TOLD: 128 };
  var WalkOp = { END: 0, POINT: 1, TEXT: 2, ARRAY: 3, EACH: 4, WHEN: 5, LIST: 6, TREE: 7, BLOCKS: 8, RING: 9, SWISS: 10, BTREE: 11, AT: 12, MAPPED: 13, DYNAMIC: 14, NEAR: 15 };
  var POOL_SIZE = 4096;
  var POOL = {
    magic: { offset: 0, type: "u64", count: 1 },
    version: { offset: 8, type: "u32", count: 1 },
    clock: { offset: 12, type: "u32", count: 1 },
    chunk_bytes: { offset: 16, type: "u32", count: 1 },
    chunk_count: { offset: 20, type: "u32", count: 1 },
    hooks_offset: { offset: 24, type: "u64", count: 1 },
    hook_capacity: { offset: 32, type: "u32", count: 1 },
    crash_count: { offset: 36, type: "u32", count: 1 },
    crash_offset: { offset: 40, type: "u64", count: 1 },
    chunks_offset: { offset: 48, type: "u64", count: 1 },
    pool_bytes: { offset: 56, type: "u64", count: 1 },
    recording: { offset: 64, type: "u32", count: 1 },
    reserve_chunks: { offset: 68, type: "u32", count: 1 },
    chunks_free: { offset: 72, type: "i32", count: 1 },
    threads: { offset: 76, type: "u32", count: 1 },
    claim_hint: { offset: 80, type: "u32", count: 1 },
    crash_next: { offset: 84, type: "u32", count: 1 },
    dropped_by_kind: { offset: 88, type: "u64", count: 16 },
    stream_dev: { offset: 256, type: "u64", count: 2 },
    stream_ino: { offset: 272, type: "u64", count: 2 },
    loading_pid: { offset: 288, type: "u32", count: 1 },
    loads: { offset: 292, type: "u32", count: 1 },
    loads_seen: { offset: 296, type: "u32", count: 1 },
    unloads: { offset: 300, type: "u32", count: 1 },
    image_floor: { offset: 304, type: "u32", count: 1 },
    copy_output: { offset: 308, type: "u32", count: 1 },
    images_left_out: { offset: 312, type: "u64", count: 1 },
    stream_bytes: { offset: 320, type: "u64", count: 2 },
    output_lost: { offset: 336, type: "u64", count: 1 },
    follower: { offset: 344, type: "u32", count: 1 },
    gate_asks: { offset: 348, type: "u32", count: 1 },
    gates_full: { offset: 352, type: "u32", count: 1 },
    gates_left: { offset: 356, type: "u32", count: 1 }
  };
  var HOOK_SIZE = 32;
  var HOOK = {
    left_out: { offset: 0, type: "u64", count: 1 },
    dropped: { offset: 8, type: "u64", count: 1 },
    flags: { offset: 16, type: "u32", count: 1 },
    sample_period: { offset: 20, type: "u32", count: 1 },
    unmatched: { offset: 24, type: "u64", count: 1 }
  };
  var CRASH_SIZE = 4096;
  var CRASH = {
    state: { offset: 0, type: "u32", count: 1 },
    signo: { offset: 4, type: "i32", count: 1 },
    code: { offset: 8, type: "i32", count: 1 },
    pid: { offset: 12, type: "u32", count: 1 },
    tid: { offset: 16, type: "u32", count: 1 },
    maps_bytes: { offset: 20, type: "u32", count: 1 },
    address: { offset: 24, type: "u64", count: 1 },
    ts: { offset: 32, type: "u64", count: 1 },
    stack_base: { offset: 40, type: "u64", count: 1 },
    stack_bytes: { offset: 48, type: "u32", count: 1 },
    sender_pid: { offset: 52, type: "u32", count: 1 },
    span: { offset: 56, type: "u64", count: 1 },
    regs: { offset: 64, type: "u64", count: 23 },
    comm: { offset: 256, type: "u8", count: 16 },
    exception_bytes: { offset: 272, type: "u32", count: 1 }
  };
  var CHUNK_SIZE = 128;
  var CHUNK = {
    state: { offset: 0, type: "u32", count: 1 },
    serial: { offset: 4, type: "u32", count: 1 },
    pid: { offset: 8, type: "u32", count: 1 },
    tid: { offset: 12, type: "u32", count: 1 },
    thread: { offset: 16, type: "u32", count: 1 },
    order: { offset: 20, type: "u32", count: 1 },
    written: { offset: 24, type: "u32", count: 1 },
    read: { offset: 28, type: "u32", count: 1 },
    comm: { offset: 32, type: "u8", count: 16 }
  };
  var ENTRY_SIZE = 32;
  var ENTRY = {
    ts: { offset: 0, type: "u64", count: 1 },
    span: { offset: 8, type: "u64", count: 1 },
    hook: { offset: 16, type: "u32", count: 1 },
    kind: { offset: 20, type: "u8", count: 1 },
    flags: { offset: 21, type: "u8", count: 1 },
    slots: { offset: 22, type: "u8", count: 1 },
    reserved: { offset: 23, type: "u8", count: 1 },
    word: { offset: 24, type: "u64", count: 1 }
  };
  var GATE_SIZE = 64;
  var GATE = {
    state: { offset: 0, type: "u32", count: 1 },
    pid: { offset: 4, type: "u32", count: 1 },
    tid: { offset: 8, type: "u32", count: 1 },
    reason: { offset: 12, type: "u32", count: 1 },
    path: { offset: 16, type: "u64", count: 1 },
    folder: { offset: 24, type: "i32", count: 1 },
    order: { offset: 28, type: "u32", count: 1 },
    first: { offset: 32, type: "u64", count: 1 },
    second: { offset: 40, type: "u64", count: 1 },
    answer: { offset: 48, type: "u64", count: 1 },
    ticket: { offset: 56, type: "u64", count: 1 }
  };
  var WALK_STEP_SIZE = 32;
  var WALK_STEP = {
    op: { offset: 0, type: "u8", count: 1 },
    flags: { offset: 1, type: "u8", count: 1 },
    limit: { offset: 2, type: "u16", count: 1 },
    offset: { offset: 4, type: "u32", count: 1 },
    size: { offset: 8, type: "u32", count: 1 },
    target: { offset: 12, type: "u32", count: 1 },
    a: { offset: 16, type: "u64", count: 1 },
    b: { offset: 24, type: "u64", count: 1 }
  };
  var REGION_SIZE = 16;
  var REGION = {
    address: { offset: 0, type: "u64", count: 1 },
    bytes: { offset: 8, type: "u32", count: 1 },
    state: { offset: 12, type: "u32", count: 1 }
  };
  var STRING_SIZE = 8;
  var STRING = {
    offset: { offset: 0, type: "u16", count: 1 },
    length: { offset: 2, type: "u16", count: 1 },
    state: { offset: 4, type: "u8", count: 1 }
  };

  // src/csource.ts
  var PREPARE_C = "/* Prepares thunks and patch bytes for many hooks at once; applies nothing. Compiled by the agent's CModule (TinyCC), in the target for the length of\n * a visit; or in a process apart, for a target whose recorder has given memory and hooks before: then it is arithmetic over bytes and addresses.\n *\n * A hook's *window* is the run of whole instructions at the function's start (after endbr64) that covers the 5 bytes of the jump. It is copied,\n * relocated, into the thunk. A window that cannot be moved exactly is refused with a reason, never guessed (agent/native/recorder.h has the thunk).\n * Statics of a CModule are read-only, so all state is passed along.\n */\n#include <capstone.h>\n#include <glib.h>\n#include <string.h>\n\n#define JUMP_BYTES 5\n#define ENDBR64 0xfa1e0ff3u\n#define WINDOW_MAX 19            /* 4 bytes decoded, then the longest instruction */\n#define HEAD_BYTES 18            /* push, push, jmp: what a thunk starts with */\n#define THUNK_MAX 128            /* head, 19 bytes that may grow to 45, 5 of the jump back, three words, aligned */\n#define SLAB_REACH 0x78000000    /* from the middle of a group to its slab at most */\n#define GROUP_SPAN 0x4000000     /* one slab serves functions this close to each other: 64 MiB, and 1.9 GiB from it to the slab, stay below 2 GiB */\n#define NEAR_BYTES 134           /* a rel8 branch into the window starts at most this far from the function's start */\n\nenum { PREPARED, SMALL, BRANCH_INSIDE, BRANCH_TO_START, UNDECODABLE, OUT_OF_REACH, ENDS_EARLY, RETURNS_INSIDE, TRAPS, COUNTED_JUMP, ALREADY, NO_ROOM, NO_HOOK, FOREIGN };\n\ntypedef struct {                 /* 104 bytes; known to actors/spawner/items.py and agent.ts */\n  guint64 address;               /* of the function */\n  guint32 size, id;\n  guint32 padded;                /* `size` reaches over the padding behind the function's only instruction, a return */\n  guint32 plan_offset, plan_bytes; /* in `extra` */\n  guint32 reason;                /* out: PREPARED or why not */\n  guint64 window;                /* out: first byte of the jump */\n  guint64 detail;                /* out: offset in the function that the reason is about */\n  guint8 patch[8], original[8];  /* out: JUMP_BYTES of each */\n  guint64 thunk;                 /* out */\n  guint8 entries[8];             /* out: for each offset in the window below JUMP_BYTES: where in the thunk the instruction that starts there now is */\n  guint32 window_bytes;          /* out: of the instructions moved */\n  guint32 source;                /* 1 + offset in `extra` of the function's bytes; 0: read them where they run, here */\n  guint64 hook, entry;           /* words of the thunk; hook 0: the plan is to be registered here */\n} Item;\n\ntypedef struct { guint64 address; guint32 offset, bytes; } Slab; /* `bytes` of code[offset\u2026] belong at `address`; of a given one: what is left of it */\n\ntypedef struct {\n  csh capstone;\n  cs_insn *insn;\n  const guint8 *extra;\n  guint8 *code;\n  guint32 code_bytes;\n  Slab *slabs;\n  guint32 slab_count, slabs_max;\n  Slab *given;\n  guint32 given_count;\n} Job;\n\nextern guint64 strobe_slab (guint64 near_address, guint64 bytes);\nextern guint64 strobe_hook_new (guint32 hook_id, guint64 function, const void *plan, guint32 plan_bytes);\nextern int strobe_plan_needs_xmm (const void *plan, guint32 plan_bytes);\nextern char strobe_enter_gpr[], strobe_enter_xmm[];\n\nstatic gint32 read_i32 (const guint8 *at) { gint32 value; memcpy (&value, at, 4); return value; }\nstatic void put_u32 (guint8 **to, guint32 value) { memcpy (*to, &value, 4); *to += 4; }\nstatic void put_u64 (guint8 **to, guint64 value) { memcpy (*to, &value, 8); *to += 8; }\nstatic int in_group (const cs_insn *insn, guint8 group) {\n  guint i;\n  for (i = 0; i != insn->detail->groups_count; i++) if (insn->detail->groups[i] == group) return 1;\n  return 0;\n}\nstatic int is_direct (const cs_insn *insn) { return insn->detail->x86.op_count == 1 && insn->detail->x86.operands[0].type == X86_OP_IMM; }\nstatic guint64 target_of (const cs_insn *insn) { return (guint64) insn->detail->x86.operands[0].imm; }\nstatic int is_counted (const cs_insn *insn) { /* rel8 only: cannot be made longer */\n  return insn->id == X86_INS_JRCXZ || insn->id == X86_INS_JECXZ || insn->id == X86_INS_LOOP || insn->id == X86_INS_LOOPE || insn->id == X86_INS_LOOPNE\n      || insn->id == X86_INS_XBEGIN;\n}\nstatic int is_trap (const cs_insn *insn) { /* a thread may wait in it with its pc inside the window, or it is another debugger's */\n  return insn->id == X86_INS_SYSCALL || insn->id == X86_INS_SYSENTER || insn->id == X86_INS_INT || insn->id == X86_INS_INT1 || insn->id == X86_INS_INT3\n      || insn->id == X86_INS_HLT || insn->id == X86_INS_UD2;\n}\nstatic int ends_flow (const cs_insn *insn) { return insn->id == X86_INS_JMP || in_group (insn, CS_GRP_RET); }\nstatic int uses_rsp (const cs_insn *insn) {\n  const cs_x86_op *op = &insn->detail->x86.operands[0];\n  return (op->type == X86_OP_REG && op->reg == X86_REG_RSP) || (op->type == X86_OP_MEM && (op->mem.base == X86_REG_RSP || op->mem.index == X86_REG_RSP));\n}\n/* The function's bytes. While Frida is here its own patches lie over some of libc's functions, so those come from the file. */\nstatic const guint8 *code_of (Job *job, const Item *item) {\n  return item->source != 0 ? job->extra + item->source - 1 : (const guint8 *) (gsize) item->address;\n}\n/* The instruction at `address`, which is in `item`, read within `room` bytes. */\nstatic int decode (Job *job, const Item *item, guint64 address, gsize room) {\n  const uint8_t *code = code_of (job, item) + (address - item->address);\n  size_t left = room;\n  return cs_disasm_iter (job->capstone, &code, &left, &address, job->insn);\n}\n\n/* Whether one instruction of a window can be moved; `after` is its end, counted from the window's start. */\nstatic guint32 movable (const Item *item, const cs_insn *insn, gsize after) {\n  if (item->padded) return insn->size == after ? (in_group (insn, CS_GRP_RET) ? PREPARED : ENDS_EARLY) : insn->id == X86_INS_NOP ? PREPARED : SMALL;\n  if (is_trap (insn)) return TRAPS;\n  if (is_counted (insn)) return COUNTED_JUMP;\n  if (ends_flow (insn) && after < JUMP_BYTES) return ENDS_EARLY;\n  if (insn->id == X86_INS_CALL && (after < JUMP_BYTES || (!is_direct (insn) && uses_rsp (insn)))) return RETURNS_INSIDE;\n  return PREPARED;\n}\n\n/* Bytes of the window, or 0 with item->reason set. */\nstatic guint32 measure_window (Job *job, Item *item) {\n  gsize room = item->address + item->size - item->window, at = 0;\n  while (at < JUMP_BYTES) {\n    item->detail = item->window + at - item->address;\n    if (!decode (job, item, item->window + at, MIN (room - at, 15))) { item->reason = UNDECODABLE; return 0; }\n    at += job->insn->size;\n    item->reason = movable (item, job->insn, at);\n    if (item->reason != PREPARED) return 0;\n  }\n  return at;\n}\n\n/* Is the suspicious byte at `suspect` (offset) really part of a branch into the window? Disassembles from the start, exactly. */\nstatic int confirm_branch (Job *job, Item *item, gsize suspect, guint32 bytes) {\n  gsize at = 0;\n  guint64 offset;\n  while (at <= suspect) {\n    if (!decode (job, item, item->address + at, item->size - at)) return 1; /* cannot tell: do not guess */\n    at += job->insn->size;\n  }\n  if (!is_direct (job->insn) || !(in_group (job->insn, CS_GRP_JUMP) || is_counted (job->insn) || job->insn->id == X86_INS_CALL)) return 0;\n  offset = target_of (job->insn) - item->window;\n  return offset < bytes && !(offset == 0 && job->insn->id == X86_INS_CALL);\n}\n\n/* Where the branch that may start at `at` leads (an offset in the function), or -1. */\nstatic gint64 suspected_target (const guint8 *code, gsize at, gsize size) {\n  guint8 op = code[at];\n  if (op == 0xe8 || op == 0xe9) return at + 5 <= size ? (gint64) at + 5 + read_i32 (code + at + 1) : -1;\n  if (op == 0x0f) return at + 6 <= size && (code[at + 1] & 0xf0) == 0x80 ? (gint64) at + 6 + read_i32 (code + at + 2) : -1;\n  if (at < NEAR_BYTES && at + 2 <= size && (op == 0xeb || (op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0)) return (gint64) at + 2 + (gint8) code[at + 1];\n  return -1;\n}\n\n/* PREPARED, or BRANCH_*: a branch of the function's own that leads into its window. A byte scan finds suspects, disassembly decides. */\nstatic guint32 find_branch (Job *job, Item *item, guint32 bytes) {\n  const guint8 *code = code_of (job, item);\n  const guint8 *at = code, *near = code + MIN (item->size, NEAR_BYTES), *end = code + item->size;\n  guint64 window = item->window - item->address; /* 0 or 4 */\n  gint64 target;\n  for (; at != end; at++) {\n    if (at >= near) { /* only the long forms reach back that far: this loop sees most of the bytes */\n      while (at != end && (*at & 0xfe) != 0xe8 && *at != 0x0f) at++;\n      if (at == end) break;\n    }\n    target = suspected_target (code, at - code, item->size);\n    if ((guint64) target - window >= bytes || (*at == 0xe8 && (guint64) target == window)) continue; /* calling itself is a call like any other */\n    if (!confirm_branch (job, item, at - code, bytes)) continue;\n    item->detail = at - code;\n    return (guint64) target == window ? BRANCH_TO_START : BRANCH_INSIDE;\n  }\n  return PREPARED;\n}\n\nstatic int is_own_thunk (const guint8 *at) { return at[0] == 0xff && at[1] == 0x35 && at[6] == 0xff && at[7] == 0x35 && at[12] == 0xff && at[13] == 0x25; }\n\n/* Fills item->reason, window, window_bytes and original. */\nstatic void examine (Job *job, Item *item, const Item *before) {\n  const guint8 *code = code_of (job, item);\n  guint32 bytes;\n  item->window = item->address;\n  if (item->size >= 4 && (guint32) read_i32 (code) == ENDBR64) { item->window += 4; code += 4; }\n  item->reason = SMALL;\n  if (item->address + item->size - item->window < JUMP_BYTES) return;\n  item->reason = ALREADY;\n  if (before != NULL && before->reason == PREPARED && item->window - before->window < JUMP_BYTES) return;\n  if (item->source == 0) {\n    if (code[0] == 0xe9 && is_own_thunk (code + JUMP_BYTES + read_i32 (code + 1))) return;\n    item->reason = FOREIGN; /* or a function that begins with a jump: its file tells */\n    if (code[0] == 0xe9 || code[0] == 0xcc || (code[0] == 0xff && code[1] == 0x25)) return;\n  }\n  bytes = measure_window (job, item);\n  if (bytes == 0) return;\n  if (item->address + item->size - item->window < bytes) { item->reason = UNDECODABLE; return; }\n  item->reason = find_branch (job, item, bytes);\n  item->window_bytes = bytes;\n  memcpy (item->original, code, JUMP_BYTES);\n}\n\nstatic int put_rel32 (guint8 **to, guint64 pc_of_field, guint64 target) { /* 0 when out of reach */\n  gint64 distance = (gint64) (target - (pc_of_field + 4));\n  put_u32 (to, (guint32) distance);\n  return distance == (gint64) (gint32) distance;\n}\n\nstatic void put_push (guint8 **to, guint64 value) { /* push imm32 sign-extends; the high half is put in place after it */\n  *(*to)++ = 0x68;\n  put_u32 (to, (guint32) value);\n  if ((guint64) (gint64) (gint32) value == value) return;\n  memcpy (*to, \"\\xc7\\x44\\x24\\x04\", 4);\n  *to += 4;\n  put_u32 (to, (guint32) (value >> 32));\n}\n\n/* Where the displacement of a rip-relative operand lies in the instruction; 0: it has none, -1: it has one that cannot be found.\n * Capstone's own disp_offset is one short for instructions with a mandatory prefix (66 0f 28: movapd), so the bytes are searched: a ModRM byte\n * with mod 0 and rm 5, then the displacement that was decoded, then nothing or an immediate. */\nstatic int rip_displacement (const cs_insn *insn) {\n  const cs_x86 *x86 = &insn->detail->x86;\n  int i, at, found = 0, relative = 0;\n  gint64 distance = 0;\n  for (i = 0; i != x86->op_count; i++) {\n    if (x86->operands[i].type != X86_OP_MEM || x86->operands[i].mem.base != X86_REG_RIP) continue;\n    relative = 1;\n    distance = x86->operands[i].mem.disp;\n  }\n  if (!relative) return 0;\n  for (at = 2; at + 4 <= insn->size; at++) {\n    int rest = insn->size - at - 4;\n    if ((insn->bytes[at - 1] & 0xc7) != 0x05 || read_i32 (insn->bytes + at) != distance || rest == 3 || rest > 4) continue;\n    if (found != 0) return -1;\n    found = at;\n  }\n  return found != 0 ? found : -1;\n}\n\n/* Copies one instruction, as it must read at `pc` + what was put so far. 0 when something is out of reach. */\nstatic int move_instruction (Job *job, guint8 **to, const guint8 *base, guint64 pc) {\n  cs_insn *insn = job->insn;\n  cs_x86 *x86 = &insn->detail->x86;\n  guint8 *copy;\n  int at;\n#define HERE (pc + (*to - base))\n  if (insn->id == X86_INS_CALL) put_push (to, insn->address + insn->size);\n  if (is_direct (insn) && (insn->id == X86_INS_CALL || insn->id == X86_INS_JMP)) {\n    *(*to)++ = 0xe9;\n    return put_rel32 (to, HERE, target_of (insn));\n  }\n  if (is_direct (insn) && in_group (insn, CS_GRP_JUMP)) {\n    *(*to)++ = 0x0f;\n    *(*to)++ = 0x80 | ((x86->opcode[0] == 0x0f ? x86->opcode[1] : x86->opcode[0]) & 0x0f);\n    return put_rel32 (to, HERE, target_of (insn));\n  }\n  copy = *to;\n  memcpy (copy, insn->bytes, insn->size);\n  *to += insn->size;\n  if (insn->id == X86_INS_CALL) copy[x86->encoding.modrm_offset] ^= (2 ^ 4) << 3; /* call r/m (/2) \u2192 jmp r/m (/4) */\n  at = rip_displacement (insn);\n  if (at < 0) return 0;\n  if (at > 0) {\n    gint64 distance = (gint64) (insn->address + read_i32 (insn->bytes + at)) - (gint64) (pc + (copy - base));\n    gint32 near = (gint32) distance;\n    memcpy (copy + at, &near, 4);\n    return near == distance;\n  }\n  return 1;\n#undef HERE\n}\n\n/* Writes the thunk of `item`, which will lie at `pc`; bytes used, or 0 when something is out of reach. */\nstatic guint32 emit (Job *job, Item *item, guint8 *base, guint64 pc, guint64 hook, guint64 entry) {\n  guint8 *to = base;\n  guint64 at = item->window, end = item->window + item->window_bytes;\n  gint64 jump = (gint64) (pc - (item->window + JUMP_BYTES));\n  guint32 words;\n  if (jump != (gint64) (gint32) jump) return 0;\n  memcpy (to, \"\\xff\\x35....\\xff\\x35....\\xff\\x25....\", HEAD_BYTES);\n  to += HEAD_BYTES;\n  while (at != end) {\n    if (at - item->window < JUMP_BYTES) item->entries[at - item->window] = to - base;\n    if (!decode (job, item, at, end - at) || !move_instruction (job, &to, base, pc)) return 0;\n    at += job->insn->size;\n  }\n  if (!ends_flow (job->insn) && job->insn->id != X86_INS_CALL) { *to++ = 0xe9; if (!put_rel32 (&to, pc + (to - base), end)) return 0; }\n  while ((to - base) & 7) *to++ = 0xcc;\n  words = to - base;\n  put_u64 (&to, hook);\n  put_u64 (&to, pc + HEAD_BYTES);\n  put_u64 (&to, entry);\n  words -= 6; /* each word lies 8 after the one before, each instruction ends 6 after the one before */\n  memcpy (base + 2, &words, 4);\n  words += 2;\n  memcpy (base + 8, &words, 4);\n  words += 2;\n  memcpy (base + 14, &words, 4);\n  while ((to - base) & 15) *to++ = 0xcc;\n  item->patch[0] = 0xe9;\n  memcpy (item->patch + 1, &jump, 4);\n  item->thunk = pc;\n  return to - base;\n}\n\nstatic void prepare_item (Job *job, Item *item, Slab *slab) {\n  const guint8 *plan = job->extra + item->plan_offset;\n  guint64 hook = item->hook, entry = item->entry;\n  guint32 bytes;\n  if (hook == 0) entry = (guint64) (gsize) (strobe_plan_needs_xmm (plan, item->plan_bytes) ? strobe_enter_xmm : strobe_enter_gpr);\n  bytes = emit (job, item, job->code + job->code_bytes, slab->address + slab->bytes, hook, entry);\n  if (bytes == 0) { item->reason = OUT_OF_REACH; return; }\n  if (hook == 0) {\n    hook = strobe_hook_new (item->id, item->address, plan, item->plan_bytes);\n    if (hook == 0) { item->reason = NO_HOOK; return; }\n    emit (job, item, job->code + job->code_bytes, slab->address + slab->bytes, hook, entry);\n  }\n  job->code_bytes += bytes;\n  slab->bytes += bytes;\n}\n\n/* Memory of the target's for thunks; 0: there is none within reach. */\nstatic guint64 take_slab (Job *job, guint64 near, guint64 bytes) {\n  guint32 i;\n  if (job->given == NULL) return strobe_slab (near, bytes);\n  for (i = 0; i != job->given_count; i++) {\n    Slab *slab = &job->given[i];\n    guint64 away = near < slab->address ? slab->address + bytes - near : near - slab->address;\n    if (slab->bytes < bytes || away > SLAB_REACH) continue;\n    slab->address += bytes;\n    slab->bytes -= bytes;\n    return slab->address - bytes;\n  }\n  return 0;\n}\n\n/* items[first \u2026 last) lie within GROUP_SPAN and share one slab. */\nstatic void prepare_group (Job *job, Item *items, guint32 first, guint32 last) {\n  guint32 i, wanted = 0;\n  guint64 address = 0;\n  Slab *slab;\n  for (i = first; i != last; i++) if (items[i].reason == PREPARED) wanted++;\n  if (wanted == 0) return;\n  if (job->slab_count != job->slabs_max) address = take_slab (job, items[first].address / 2 + items[last - 1].address / 2, (guint64) wanted * THUNK_MAX);\n  if (address == 0) {\n    for (i = first; i != last; i++) if (items[i].reason == PREPARED) items[i].reason = NO_ROOM;\n    return;\n  }\n  slab = &job->slabs[job->slab_count++];\n  slab->address = address;\n  slab->offset = job->code_bytes;\n  slab->bytes = 0;\n  for (i = first; i != last; i++) if (items[i].reason == PREPARED) prepare_item (job, &items[i], slab);\n}\n\n/* `items` in address order; `code` has room for THUNK_MAX bytes an item; `given` is NULL in the target. Number of slabs written, or -1 when capstone\n * is not usable. */\nint strobe_prepare (Item *items, guint32 count, const guint8 *extra, guint8 *code, Slab *slabs, guint32 slabs_max, Slab *given, guint32 given_count) {\n  Job job;\n  guint32 i, first = 0;\n  memset (&job, 0, sizeof (job));\n  job.extra = extra;\n  job.code = code;\n  job.slabs = slabs;\n  job.slabs_max = slabs_max;\n  job.given = given;\n  job.given_count = given_count;\n  if (cs_open (CS_ARCH_X86, CS_MODE_64, &job.capstone) != CS_ERR_OK) return -1;\n  cs_option (job.capstone, CS_OPT_DETAIL, CS_OPT_ON);\n  job.insn = cs_malloc (job.capstone);\n  for (i = 0; i != count; i++) examine (&job, &items[i], i == 0 ? NULL : &items[i - 1]);\n  for (i = 1; i <= count; i++) {\n    if (i != count && items[i].address - items[first].address < GROUP_SPAN) continue;\n    prepare_group (&job, items, first, i);\n    first = i;\n  }\n  cs_free (job.insn, 1);\n  cs_close (&job.capstone);\n  return job.slab_count;\n}\n";
  var FALLBACK_C = '/* Records calls where the recorder cannot be loaded: Frida\'s Interceptor calls onEnter and onLeave, which write the same lanes. Compiled by the\n * agent\'s CModule (TinyCC), and stays with the agent for the target\'s life. Slower (0.5 \xB5s a record) and plainer than the recorder: signals are\n * blocked while a record is written, vector registers are not captured, and there is no exit for a call that is unwound.\n * Constants (LANE_\u2026) come from layout.gen.ts, as definitions put before this text. Statics of a CModule are read-only: all state is in `state`.\n */\n#include <gum/guminterceptor.h>\n#include <glib.h>\n#include <string.h>\n\n#define THREADS 1024\n#define DEPTH 512\n#define SYS_RT_SIGPROCMASK 14\n#define SYS_GETPID 39\n#define SYS_PRCTL 157\n#define SYS_GETTID 186\n#define SYS_CLOCK_GETTIME 228\n#define SYS_PROCESS_VM_READV 310\n\ntypedef struct { guint64 slot, span; } Call;\ntypedef struct {\n  gint tid;                    /* 0: free */\n  guint32 index, order, slot;  /* in the pool; of its chunks; next slot of `chunk` */\n  guint8 *chunk;               /* NULL: none */\n  guint32 serial, depth;\n  guint64 spans;\n  Call calls[DEPTH];\n  guint8 scratch[LANE_PAYLOAD_BYTES_MAX + 64];\n} Thread;\ntypedef struct {\n  guint8 *pool;\n  guint32 cycles, pid;\n  guint8 reserved[48];\n  Thread threads[THREADS];\n} State;\ntypedef struct { guint8 op, arg, size, dst; gint32 imm; } Step;\ntypedef struct { guint32 id, steps; Step plan[1]; } Hook; /* enter list, END, exit list, END */\n\nextern State state;\nextern long syscall (long number, ...);\n\n#define POOL_U32(name) (*(volatile guint32 *) (state.pool + LANE_POOL_##name))\n#define CHUNK_U32(chunk, name) (*(volatile guint32 *) ((chunk) + LANE_CHUNK_##name))\n#define HOOK_AT(id) (state.pool + LANE_HOOKS_OFFSET + (gsize) (id) * LANE_HOOK_BYTES)\n\nstatic gboolean swap (volatile gint *place, gint expected, gint desired) {\n  gint found;\n  __asm__ volatile ("lock; cmpxchgl %3, (%2)" : "=a" (found) : "0" (expected), "r" (place), "r" (desired) : "memory");\n  return found == expected;\n}\nstatic guint64 now (void) {\n  guint32 low, high;\n  gint64 time[2];\n  if (state.cycles) {\n    __asm__ volatile ("rdtsc" : "=a" (low), "=d" (high));\n    return (guint64) high << 32 | low;\n  }\n  syscall (SYS_CLOCK_GETTIME, 1, time);\n  return (guint64) time[0] * 1000000000 + time[1];\n}\nstatic guint64 signals_off (void) {\n  guint64 all = ~(guint64) 0, before = 0;\n  syscall (SYS_RT_SIGPROCMASK, 2, &all, &before, 8);\n  return before;\n}\nstatic void signals_back (guint64 mask) { syscall (SYS_RT_SIGPROCMASK, 2, &mask, NULL, 8); }\nstatic void drop (guint32 hook, guint32 kind) {\n  g_atomic_pointer_add ((gsize *) (state.pool + LANE_POOL_dropped_by_kind + kind * 8), 1);\n  g_atomic_pointer_add ((gsize *) (HOOK_AT (hook) + LANE_HOOK_dropped), 1);\n}\n\n/* The running thread\'s state, by its id; NULL when there is no room for one more. A forked child has new ids, so it starts anew. */\nstatic Thread *self (void) {\n  gint tid = syscall (SYS_GETTID);\n  guint i, from = (guint) tid * 2654435761u % THREADS;\n  for (i = 0; i != THREADS; i++) {\n    Thread *thread = &state.threads[(from + i) % THREADS];\n    if (thread->tid == tid) return thread;\n    if (thread->tid != 0 || !swap (&thread->tid, 0, tid)) continue;\n    thread->index = g_atomic_int_add ((gint *) (state.pool + LANE_POOL_threads), 1) + 1;\n    thread->spans = (guint64) thread->index << LANE_SPAN_THREAD_SHIFT;\n    return thread;\n  }\n  return NULL;\n}\n\nstatic void prepare_chunk (Thread *thread, guint8 *chunk) {\n  CHUNK_U32 (chunk, pid) = syscall (SYS_GETPID);\n  CHUNK_U32 (chunk, tid) = thread->tid;\n  memset (chunk + LANE_CHUNK_MAP_OFFSET, 0, LANE_CHUNK_SLOTS);\n  CHUNK_U32 (chunk, written) = 0;\n  CHUNK_U32 (chunk, read) = 0;\n  CHUNK_U32 (chunk, thread) = thread->index;\n  CHUNK_U32 (chunk, order) = thread->order++;\n  syscall (SYS_PRCTL, 16, chunk + LANE_CHUNK_comm, 0, 0, 0);\n  thread->serial = CHUNK_U32 (chunk, serial) + 1;\n  if (thread->serial == 0) thread->serial = 1;\n  CHUNK_U32 (chunk, serial) = thread->serial; /* last: until then the chunk counts as not begun */\n  thread->chunk = chunk;\n  thread->slot = 0;\n}\n\n/* A free chunk, or none: the last ones are kept for what is not a trace record. */\nstatic gboolean claim_chunk (Thread *thread) {\n  gint *chunks_free = (gint *) (state.pool + LANE_POOL_chunks_free);\n  guint i, from, count = POOL_U32 (chunk_count);\n  if (g_atomic_int_add (chunks_free, -1) - 1 >= (gint) POOL_U32 (reserve_chunks)) {\n    from = POOL_U32 (claim_hint);\n    for (i = 0; i != count; i++) {\n      guint index = (from + i) % count;\n      guint8 *chunk = state.pool + LANE_CHUNKS_OFFSET + (gsize) index * LANE_CHUNK_BYTES;\n      if (!swap ((gint *) (chunk + LANE_CHUNK_state), 0, 1)) continue;\n      POOL_U32 (claim_hint) = index + 1;\n      prepare_chunk (thread, chunk);\n      return TRUE;\n    }\n  }\n  g_atomic_int_add (chunks_free, 1);\n  return FALSE;\n}\n\nstatic guint8 *put (Thread *thread, guint32 slots, guint64 ts, guint64 span, guint64 what, guint64 word) {\n  guint64 *entry = (guint64 *) (thread->chunk + LANE_CHUNK_SLOTS_OFFSET + (gsize) thread->slot * LANE_SLOT_BYTES);\n  entry[0] = ts;\n  entry[1] = span;\n  entry[2] = what | (guint64) slots << 48;\n  entry[3] = word;\n  return (guint8 *) (entry + 4);\n}\nstatic void publish (Thread *thread, guint32 slots) { /* the processor keeps stores in order, and so does TinyCC */\n  *(volatile guint8 *) (thread->chunk + LANE_CHUNK_MAP_OFFSET + thread->slot) = slots;\n  thread->slot += slots;\n}\nstatic void close_chunk (Thread *thread) {\n  while (thread->slot != LANE_CHUNK_SLOTS) {\n    guint32 slots = MIN (LANE_CHUNK_SLOTS - thread->slot, 255);\n    put (thread, slots, 0, 0, (guint64) LANE_KIND_PAD << 32, 0);\n    publish (thread, slots);\n  }\n  CHUNK_U32 (thread->chunk, written) = LANE_CHUNK_SLOTS;\n  CHUNK_U32 (thread->chunk, state) = 2;\n  thread->chunk = NULL;\n}\n\n/* Writes one entry, or counts it as dropped. The chunk is still this thread\'s only if nobody closed it meanwhile (a thread of the same id that died). */\nstatic gboolean record (Thread *thread, guint32 hook, guint32 kind, guint32 flags, guint64 span, guint64 word, guint64 ts, const guint8 *payload, guint32 bytes) {\n  guint32 slots = 1 + (bytes + LANE_SLOT_BYTES - 1) / LANE_SLOT_BYTES;\n  guint8 *room;\n  if (thread->chunk != NULL && (CHUNK_U32 (thread->chunk, state) != 1 || CHUNK_U32 (thread->chunk, serial) != thread->serial)) thread->chunk = NULL;\n  if (thread->chunk != NULL && thread->slot + slots > LANE_CHUNK_SLOTS) close_chunk (thread);\n  if (thread->chunk == NULL && !claim_chunk (thread)) { drop (hook, kind); return FALSE; }\n  CHUNK_U32 (thread->chunk, written) = thread->slot + slots;\n  room = put (thread, slots, ts, span, hook | (guint64) kind << 32 | (guint64) flags << 40, word);\n  memcpy (room, payload, bytes);\n  publish (thread, slots);\n  return TRUE;\n}\n\n/* Copies from memory that may not be there; bytes copied before the first page that is not. */\nstatic guint32 read_safely (guint8 *to, guint64 from, guint32 bytes) {\n  guint32 done = 0;\n  while (done != bytes) {\n    guint64 step = MIN (4096 - ((from + done) & 4095), bytes - done), local[2], remote[2];\n    local[0] = (guint64) (gsize) (to + done);\n    remote[0] = from + done;\n    local[1] = remote[1] = step;\n    if (syscall (SYS_PROCESS_VM_READV, syscall (SYS_GETPID), local, 1, remote, 1, 0) != (long) step) break;\n    done += step;\n  }\n  return done;\n}\n\n/* A string\'s bytes at payload + used and its descriptor at `dst`. Bytes used by the string. */\nstatic guint32 put_string (guint8 *payload, guint32 used, guint32 dst, guint64 from, guint32 limit, guint32 *flags) {\n  guint32 got, length, state_of = LANE_STRING_STATE_NULL;\n  limit = MIN (limit, LANE_PAYLOAD_BYTES_MAX - used);\n  got = from == 0 ? 0 : read_safely (payload + used, from, limit + 1); /* one more shows whether it ends there; the scratch has room */\n  for (length = 0; length != got && length != limit && payload[used + length] != 0; length++) { }\n  if (from != 0) {\n    if (length != got && payload[used + length] == 0) state_of = LANE_STRING_STATE_OK;\n    else state_of = got == limit + 1 ? LANE_STRING_STATE_TRUNCATED : LANE_STRING_STATE_UNREADABLE;\n  }\n  if (state_of == LANE_STRING_STATE_TRUNCATED) *flags |= LANE_ENTRY_FLAG_TRUNCATED;\n  memset (payload + dst, 0, 8);\n  *(guint16 *) (payload + dst) = used;\n  *(guint16 *) (payload + dst + 2) = length;\n  payload[dst + 4] = state_of;\n  return length;\n}\n\nstatic guint32 fixed_bytes (const Step *step) {\n  guint32 end, fixed = 0;\n  for (; step->op != LANE_PLAN_OP_END; step++) {\n    end = step->dst + (step->op == LANE_PLAN_OP_CSTR || step->op == LANE_PLAN_OP_STACK_CSTR ? 8 : step->op == LANE_PLAN_OP_WORD_XMM ? 0 : step->size);\n    if (end > fixed) fixed = (end + 7) & ~7u;\n  }\n  return fixed;\n}\n\n/* Runs a list of steps into thread->scratch; bytes used. What lies in vector registers stays 0, and the entry says it is not whole. */\nstatic guint32 capture (Thread *thread, const Step *step, const GumCpuContext *cpu, guint32 *flags) {\n  guint64 registers[8], word = 0;\n  guint32 used = fixed_bytes (step);\n  guint8 *payload = thread->scratch;\n  registers[0] = cpu->rdi; registers[1] = cpu->rsi; registers[2] = registers[7] = cpu->rdx; registers[3] = cpu->rcx;\n  registers[4] = cpu->r8; registers[5] = cpu->r9; registers[6] = cpu->rax;\n  memset (payload, 0, used);\n  for (; step->op != LANE_PLAN_OP_END; step++) {\n    switch (step->op) {\n      case LANE_PLAN_OP_GPR: memcpy (payload + step->dst, &registers[step->arg & 7], step->size); break;\n      case LANE_PLAN_OP_STACK: read_safely (payload + step->dst, cpu->rsp + 8 + step->imm, step->size); break;\n      case LANE_PLAN_OP_CSTR: used += put_string (payload, used, step->dst, registers[step->arg & 7], step->imm, flags); break;\n      case LANE_PLAN_OP_STACK_CSTR:\n        read_safely ((guint8 *) &word, cpu->rsp + 8 + (step->imm >> 12), 8);\n        used += put_string (payload, used, step->dst, word, step->imm & 4095, flags);\n        break;\n      default: *flags |= LANE_ENTRY_FLAG_TRUNCATED;\n    }\n  }\n  return used;\n}\n\nstatic const Step *exit_list (const Hook *hook) {\n  const Step *step = hook->plan;\n  while (step->op != LANE_PLAN_OP_END) step++;\n  return step + 1;\n}\n\n/* Forgets calls that are over without having returned (longjmp): on one stack an outer frame has the higher address. The innermost that is left. */\nstatic guint64 settle (Thread *thread, guint64 slot) {\n  while (thread->depth != 0 && thread->calls[thread->depth - 1].slot <= slot) thread->depth--;\n  return thread->depth != 0 ? thread->calls[thread->depth - 1].span : 0;\n}\n\nstatic void enter (GumInvocationContext *ic, gboolean wants_exit) {\n  const Hook *hook = gum_invocation_context_get_listener_function_data (ic);\n  guint64 *invocation = wants_exit ? gum_invocation_context_get_listener_invocation_data (ic, 8) : NULL;\n  guint32 hook_flags = *(volatile guint32 *) (HOOK_AT (hook->id) + LANE_HOOK_flags), flags = 0, period, bytes;\n  guint64 mask, slot = ic->cpu_context->rsp, parent, span;\n  guint64 ts;\n  gboolean full;\n  Thread *thread;\n  if (invocation != NULL) *invocation = 0;\n  if (!(hook_flags & LANE_HOOK_FLAG_ENABLED) || !POOL_U32 (recording)) return;\n  ts = now ();\n  period = *(volatile guint32 *) (HOOK_AT (hook->id) + LANE_HOOK_sample_period);\n  if (period > 1) {\n    guint64 mixed = (ts ^ (ts >> 33)) * 0xff51afd7ed558ccdull;\n    mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53ull;\n    if (((mixed >> 32) * period) >> 32 != 0) {\n      g_atomic_pointer_add ((gsize *) (HOOK_AT (hook->id) + LANE_HOOK_left_out), 1);\n      return;\n    }\n    flags = LANE_ENTRY_FLAG_SAMPLED;\n  }\n  wants_exit = wants_exit && (hook_flags & LANE_HOOK_FLAG_WANT_EXIT);\n  mask = signals_off ();\n  thread = self ();\n  if (thread == NULL) drop (hook->id, LANE_KIND_ENTER);\n  else {\n    parent = settle (thread, slot);\n    bytes = capture (thread, hook->plan, ic->cpu_context, &flags);\n    span = thread->spans + 1;\n    full = wants_exit && thread->depth == DEPTH;\n    wants_exit = wants_exit && !full;\n    if (!wants_exit) flags |= LANE_ENTRY_FLAG_NO_EXIT;\n    if (record (thread, hook->id, LANE_KIND_ENTER, flags, span, parent, ts, thread->scratch, bytes)) {\n      thread->spans = span;\n      if (wants_exit) {\n        thread->calls[thread->depth].slot = slot;\n        thread->calls[thread->depth++].span = span;\n        *invocation = span;\n      } else if (full) g_atomic_pointer_add ((gsize *) (HOOK_AT (hook->id) + LANE_HOOK_unmatched), 1);\n    }\n  }\n  signals_back (mask);\n}\n\nvoid onEnter (GumInvocationContext *ic) { enter (ic, TRUE); }\nvoid onCall (GumInvocationContext *ic) { enter (ic, FALSE); }\n\nvoid onLeave (GumInvocationContext *ic) {\n  const Hook *hook = gum_invocation_context_get_listener_function_data (ic);\n  guint64 span = *(guint64 *) gum_invocation_context_get_listener_invocation_data (ic, 8), mask, ts;\n  const Step *steps;\n  guint32 flags = 0, bytes;\n  Thread *thread;\n  if (span == 0) return;\n  ts = now ();\n  mask = signals_off ();\n  thread = self ();\n  if (thread == NULL) drop (hook->id, LANE_KIND_EXIT);\n  else if (span >> LANE_SPAN_THREAD_SHIFT == thread->index) { /* else entered before fork, in the parent */\n    while (thread->depth != 0 && thread->calls[thread->depth - 1].span >= span) thread->depth--;\n    steps = exit_list (hook);\n    bytes = capture (thread, steps, ic->cpu_context, &flags);\n    if (POOL_U32 (recording)) record (thread, hook->id, LANE_KIND_EXIT, flags, span, ic->cpu_context->rax, ts, thread->scratch, bytes);\n  }\n  signals_back (mask);\n}\n';

  // src/fallback.ts
  var ITEM_BYTES = 104;
  var STATE_BYTES = 64 + 1024 * (40 + 512 * 16 + PAYLOAD_BYTES_MAX + 64);
  var UNWINDER = "_Unwind_RaiseException";
  var O_RDWR_CLOEXEC = 524290;
  var PROT_READ_WRITE = 3;
  var MAP_SHARED = 1;
  var MAP_PRIVATE_ANONYMOUS_NORESERVE = 16418;
  var running = null;
  function definitions() {
    const lines = [];
    for (const [name, value] of Object.entries(layout_gen_exports)) {
      if (typeof value === "number")
        lines.push(`#define LANE_${name} ${value}`);
    }
    const tables = { KIND: Kind, ENTRY_FLAG: EntryFlag, HOOK_FLAG: HookFlag, PLAN_OP: PlanOp, STRING_STATE: StringState };
    for (const [prefix, values] of Object.entries(tables))
      lines.push(...Object.entries(values).map(([name, value]) => `#define LANE_${prefix}_${name} ${value}`));
    for (const [prefix, fields] of Object.entries({ POOL, HOOK, CHUNK }))
      lines.push(...Object.entries(fields).map(([name, field]) => `#define LANE_${prefix}_${name} ${field.offset}`));
    return lines.join("\n") + "\n";
  }
  function mapMemory(bytes, protection, flags, file) {
    const mmap = new NativeFunction(Module.getGlobalExportByName("mmap"), "pointer", ["pointer", "size_t", "int", "int", "int", "int64"]);
    return mmap(NULL, bytes, protection, flags, file, 0);
  }
  function mapPool(path) {
    const open = new SystemFunction(Module.getGlobalExportByName("open"), "int", ["pointer", "int"]);
    const close = new NativeFunction(Module.getGlobalExportByName("close"), "int", ["int"]);
    const opened = open(Memory.allocUtf8String(path), O_RDWR_CLOEXEC);
    if (opened.value < 0)
      return -opened.errno;
    const header = mapMemory(HEADER_BYTES, PROT_READ_WRITE, MAP_SHARED, opened.value);
    const good = header.readU64().equals(uint64("0x" + POOL_MAGIC.toString(16))) && header.add(POOL.version.offset).readU32() === LAYOUT_VERSION;
    const pool = good ? mapMemory(header.add(POOL.pool_bytes.offset).readU64().toNumber(), PROT_READ_WRITE, MAP_SHARED, opened.value) : NULL;
    close(opened.value);
    return good ? pool : -22;
  }
  function start(poolPath) {
    if (running !== null)
      return { status: 0, exits: running.exits };
    const pool = mapPool(poolPath);
    if (typeof pool === "number")
      return { status: pool, exits: false };
    const state = mapMemory(STATE_BYTES, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS_NORESERVE, -1);
    state.writePointer(pool);
    state.add(8).writeU32(pool.add(POOL.clock.offset).readU32() === Clock.TSC ? 1 : 0);
    const module = new CModule(definitions() + FALLBACK_C, { state, syscall: Module.getGlobalExportByName("syscall") }, { toolchain: "internal" });
    const exits = Process.enumerateModules().every((module2) => module2.path.startsWith("/memfd:") || module2.findExportByName(UNWINDER) === null);
    running = { module, exits, hooks: [] };
    return { status: 0, exits };
  }
  var OVERWRITTEN_MAX = 16;
  function callsAtOnce(address) {
    let at = address;
    while (at.sub(address).toInt32() < OVERWRITTEN_MAX) {
      const instruction = Instruction.parse(at);
      if (instruction.mnemonic === "call")
        return true;
      if (instruction.mnemonic === "ret" || instruction.mnemonic === "jmp")
        return false;
      at = instruction.next;
    }
    return false;
  }
  function attach(count, data) {
    const { module, exits, hooks } = running;
    const view = new DataView(data);
    const refused = [];
    const callbacks = exits ? module : module.onCall;
    for (let i = 0; i !== count; i++) {
      const at = i * ITEM_BYTES;
      const id = view.getUint32(at + 12, true);
      const plan = count * ITEM_BYTES + view.getUint32(at + 20, true);
      const planBytes = view.getUint32(at + 24, true);
      const hook = Memory.alloc(8 + planBytes);
      hook.writeU32(id).add(4).writeU32(planBytes / PLAN_OP_BYTES);
      hook.add(8).writeByteArray(data.slice(plan, plan + planBytes));
      const address = ptr("0x" + view.getBigUint64(at, true).toString(16));
      try {
        if (!exits && callsAtOnce(address))
          throw new Error("a call in its first bytes could not be unwound through");
        Interceptor.attach(address, callbacks, hook);
        hooks.push(hook);
      } catch (error) {
        refused.push([id, error.message]);
      }
    }
    Interceptor.flush();
    return refused;
  }

  // src/prepare.ts
  var ITEM_BYTES2 = 104;
  var THUNK_MAX = 128;
  var SLAB_BYTES = 16;
  var SLABS_MAX = 256;
  var USED = ["strobe_slab", "strobe_hook_new", "strobe_plan_needs_xmm", "strobe_enter_gpr", "strobe_enter_xmm"];
  var Preparer = class {
    module;
    run;
    // `recorder`: the one in this process. Null: hooks and slabs are given with each batch, for another process.
    constructor(recorder2) {
      const never = Module.getGlobalExportByName("abort");
      const symbols = Object.fromEntries(USED.map((name) => [name, recorder2 === null ? never : recorder2.export(name)]));
      this.module = new CModule(PREPARE_C, symbols, { toolchain: "internal" });
      this.run = new NativeFunction(this.module.strobe_prepare, "int", ["pointer", "uint", "pointer", "pointer", "pointer", "uint", "pointer", "uint"]);
    }
    // `data` is `count` items in address order, their capture plans, and at its end `given` slabs (actors/spawner/items.py).
    prepare(count, given, data) {
      const slabsOffset = data.byteLength + 7 & ~7;
      const codeOffset = slabsOffset + SLABS_MAX * SLAB_BYTES;
      const block = Memory.alloc(codeOffset + count * THUNK_MAX);
      block.writeByteArray(data);
      const own = given === 0 ? NULL : block.add(data.byteLength - given * SLAB_BYTES);
      const slabs = this.run(block, count, block.add(count * ITEM_BYTES2), block.add(codeOffset), block.add(slabsOffset), SLABS_MAX, own, given);
      if (slabs < 0)
        throw new Error("capstone cannot be used in this process");
      let codeBytes = 0;
      for (let i = 0; i !== slabs; i++) {
        const slab = block.add(slabsOffset + i * SLAB_BYTES);
        codeBytes = slab.add(8).readU32() + slab.add(12).readU32();
      }
      return [{ slabs, slabsOffset, codeOffset }, block.readByteArray(codeOffset + codeBytes)];
    }
    dispose() {
      this.module.dispose();
    }
  };
  function prepare(recorder2, count, data) {
    const preparer = new Preparer(recorder2);
    try {
      return preparer.prepare(count, 0, data);
    } finally {
      preparer.dispose();
    }
  }

  // src/recorder.ts
  var INTERNAL_BYTES = 24;
  var Recorder = class _Recorder {
    module;
    internals;
    constructor(module) {
      this.module = module;
      const table = module.getExportByName("strobe_internals");
      const count = module.getExportByName("strobe_internals_count").readU32();
      this.internals = [];
      for (let i = 0; i !== count; i++) {
        const at = table.add(i * INTERNAL_BYTES);
        const [symbol, entry] = [at.readPointer().readUtf8String(), at.add(8).readPointer().toString()];
        this.internals.push({ symbol, everyModule: at.add(16).readU32() !== 0, hook: at.toString(), entry });
      }
    }
    // The recorder that an earlier visit left here, or a fresh one. Throws where it cannot be mapped: a noexec folder, seccomp, no right to read it.
    static load(path) {
      loadUnwinder();
      const name = path.substring(path.lastIndexOf("/") + 1);
      return new _Recorder(Process.findModuleByName(name) ?? Module.load(path));
    }
    // 0, or -errno.
    start(poolPath) {
      const init = new NativeFunction(this.export("strobe_init"), "int", ["pointer"]);
      return init(Memory.allocUtf8String(poolPath));
    }
    export(name) {
      return this.module.getExportByName(name);
    }
  };
  function loadUnwinder() {
    const name = "libgcc_s.so.1";
    if (Process.findModuleByName(name) !== null)
      return;
    try {
      Module.load(name);
    } catch (error) {
      console.debug(`${name}: ${error}`);
    }
  }

  // src/agent.ts
  var recorder = null;
  var apart = null;
  rpc.exports = {
    load(recorderPath, poolPath) {
      recorder = Recorder.load(recorderPath);
      const [arm, remote] = ["strobe_arm", "strobe_remote"].map((name) => recorder.export(name).toString());
      return { status: recorder.start(poolPath), internals: recorder.internals, arm, remote };
    },
    prepare(count, data) {
      return prepare(recorder, count, data);
    },
    apart(count, given, data) {
      apart ??= new Preparer(null);
      return apart.prepare(count, given, data);
    },
    fallback(poolPath) {
      return start(poolPath);
    },
    attach(count, data) {
      return attach(count, data);
    }
  };
})();
