/* Prepares thunks and patch bytes for many hooks at once; applies nothing. Compiled by the agent's CModule (TinyCC), in the target for the length of
 * a visit; or in a process apart, for a target whose recorder has given memory and hooks before: then it is arithmetic over bytes and addresses.
 *
 * A hook's *window* is the run of whole instructions at the function's start (after endbr64) that covers the 5 bytes of the jump. It is copied,
 * relocated, into the thunk. A window that cannot be moved exactly is refused with a reason, never guessed (agent/native/recorder.h has the thunk).
 * Statics of a CModule are read-only, so all state is passed along.
 */
#include <capstone.h>
#include <glib.h>
#include <string.h>

#define JUMP_BYTES 5
#define ENDBR64 0xfa1e0ff3u
#define WINDOW_MAX 19            /* 4 bytes decoded, then the longest instruction */
#define HEAD_BYTES 18            /* push, push, jmp: what a thunk starts with */
#define THUNK_MAX 128            /* head, 19 bytes that may grow to 45, 5 of the jump back, three words, aligned */
#define SLAB_REACH 0x78000000    /* from the middle of a group to its slab at most */
#define GROUP_SPAN 0x4000000     /* one slab serves functions this close to each other: 64 MiB, and 1.9 GiB from it to the slab, stay below 2 GiB */
#define NEAR_BYTES 134           /* a rel8 branch into the window starts at most this far from the function's start */

enum { PREPARED, SMALL, BRANCH_INSIDE, BRANCH_TO_START, UNDECODABLE, OUT_OF_REACH, ENDS_EARLY, RETURNS_INSIDE, TRAPS, COUNTED_JUMP, ALREADY, NO_ROOM, NO_HOOK, FOREIGN };

typedef struct {                 /* 104 bytes; known to actors/spawner/items.py and agent.ts */
  guint64 address;               /* of the function */
  guint32 size, id;
  guint32 padded;                /* `size` reaches over the padding behind the function's only instruction, a return */
  guint32 plan_offset, plan_bytes; /* in `extra` */
  guint32 reason;                /* out: PREPARED or why not */
  guint64 window;                /* out: first byte of the jump */
  guint64 detail;                /* out: offset in the function that the reason is about */
  guint8 patch[8], original[8];  /* out: JUMP_BYTES of each */
  guint64 thunk;                 /* out */
  guint8 entries[8];             /* out: for each offset in the window below JUMP_BYTES: where in the thunk the instruction that starts there now is */
  guint32 window_bytes;          /* out: of the instructions moved */
  guint32 source;                /* 1 + offset in `extra` of the function's bytes; 0: read them where they run, here */
  guint64 hook, entry;           /* words of the thunk; hook 0: the plan is to be registered here */
} Item;

typedef struct { guint64 address; guint32 offset, bytes; } Slab; /* `bytes` of code[offset…] belong at `address`; of a given one: what is left of it */

typedef struct {
  csh capstone;
  cs_insn *insn;
  const guint8 *extra;
  guint8 *code;
  guint32 code_bytes;
  Slab *slabs;
  guint32 slab_count, slabs_max;
  Slab *given;
  guint32 given_count;
} Job;

extern guint64 strobe_slab (guint64 near_address, guint64 bytes);
extern guint64 strobe_hook_new (guint32 hook_id, guint64 function, const void *plan, guint32 plan_bytes);
extern int strobe_plan_needs_xmm (const void *plan, guint32 plan_bytes);
extern char strobe_enter_gpr[], strobe_enter_xmm[];

static gint32 read_i32 (const guint8 *at) { gint32 value; memcpy (&value, at, 4); return value; }
static void put_u32 (guint8 **to, guint32 value) { memcpy (*to, &value, 4); *to += 4; }
static void put_u64 (guint8 **to, guint64 value) { memcpy (*to, &value, 8); *to += 8; }
static int in_group (const cs_insn *insn, guint8 group) {
  guint i;
  for (i = 0; i != insn->detail->groups_count; i++) if (insn->detail->groups[i] == group) return 1;
  return 0;
}
static int is_direct (const cs_insn *insn) { return insn->detail->x86.op_count == 1 && insn->detail->x86.operands[0].type == X86_OP_IMM; }
static guint64 target_of (const cs_insn *insn) { return (guint64) insn->detail->x86.operands[0].imm; }
static int is_counted (const cs_insn *insn) { /* rel8 only: cannot be made longer */
  return insn->id == X86_INS_JRCXZ || insn->id == X86_INS_JECXZ || insn->id == X86_INS_LOOP || insn->id == X86_INS_LOOPE || insn->id == X86_INS_LOOPNE
      || insn->id == X86_INS_XBEGIN;
}
static int is_trap (const cs_insn *insn) { /* a thread may wait in it with its pc inside the window, or it is another debugger's */
  return insn->id == X86_INS_SYSCALL || insn->id == X86_INS_SYSENTER || insn->id == X86_INS_INT || insn->id == X86_INS_INT1 || insn->id == X86_INS_INT3
      || insn->id == X86_INS_HLT || insn->id == X86_INS_UD2;
}
static int ends_flow (const cs_insn *insn) { return insn->id == X86_INS_JMP || in_group (insn, CS_GRP_RET); }
static int uses_rsp (const cs_insn *insn) {
  const cs_x86_op *op = &insn->detail->x86.operands[0];
  return (op->type == X86_OP_REG && op->reg == X86_REG_RSP) || (op->type == X86_OP_MEM && (op->mem.base == X86_REG_RSP || op->mem.index == X86_REG_RSP));
}
/* The function's bytes. While Frida is here its own patches lie over some of libc's functions, so those come from the file. */
static const guint8 *code_of (Job *job, const Item *item) {
  return item->source != 0 ? job->extra + item->source - 1 : (const guint8 *) (gsize) item->address;
}
/* The instruction at `address`, which is in `item`, read within `room` bytes. */
static int decode (Job *job, const Item *item, guint64 address, gsize room) {
  const uint8_t *code = code_of (job, item) + (address - item->address);
  size_t left = room;
  return cs_disasm_iter (job->capstone, &code, &left, &address, job->insn);
}

/* Whether one instruction of a window can be moved; `after` is its end, counted from the window's start. */
static guint32 movable (const Item *item, const cs_insn *insn, gsize after) {
  if (item->padded) return insn->size == after ? (in_group (insn, CS_GRP_RET) ? PREPARED : ENDS_EARLY) : insn->id == X86_INS_NOP ? PREPARED : SMALL;
  if (is_trap (insn)) return TRAPS;
  if (is_counted (insn)) return COUNTED_JUMP;
  if (ends_flow (insn) && after < JUMP_BYTES) return ENDS_EARLY;
  if (insn->id == X86_INS_CALL && (after < JUMP_BYTES || (!is_direct (insn) && uses_rsp (insn)))) return RETURNS_INSIDE;
  return PREPARED;
}

/* Bytes of the window, or 0 with item->reason set. */
static guint32 measure_window (Job *job, Item *item) {
  gsize room = item->address + item->size - item->window, at = 0;
  while (at < JUMP_BYTES) {
    item->detail = item->window + at - item->address;
    if (!decode (job, item, item->window + at, MIN (room - at, 15))) { item->reason = UNDECODABLE; return 0; }
    at += job->insn->size;
    item->reason = movable (item, job->insn, at);
    if (item->reason != PREPARED) return 0;
  }
  return at;
}

/* Is the suspicious byte at `suspect` (offset) really part of a branch into the window? Disassembles from the start, exactly. */
static int confirm_branch (Job *job, Item *item, gsize suspect, guint32 bytes) {
  gsize at = 0;
  guint64 offset;
  while (at <= suspect) {
    if (!decode (job, item, item->address + at, item->size - at)) return 1; /* cannot tell: do not guess */
    at += job->insn->size;
  }
  if (!is_direct (job->insn) || !(in_group (job->insn, CS_GRP_JUMP) || is_counted (job->insn) || job->insn->id == X86_INS_CALL)) return 0;
  offset = target_of (job->insn) - item->window;
  return offset < bytes && !(offset == 0 && job->insn->id == X86_INS_CALL);
}

/* Where the branch that may start at `at` leads (an offset in the function), or -1. */
static gint64 suspected_target (const guint8 *code, gsize at, gsize size) {
  guint8 op = code[at];
  if (op == 0xe8 || op == 0xe9) return at + 5 <= size ? (gint64) at + 5 + read_i32 (code + at + 1) : -1;
  if (op == 0x0f) return at + 6 <= size && (code[at + 1] & 0xf0) == 0x80 ? (gint64) at + 6 + read_i32 (code + at + 2) : -1;
  if (at < NEAR_BYTES && at + 2 <= size && (op == 0xeb || (op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0)) return (gint64) at + 2 + (gint8) code[at + 1];
  return -1;
}

/* PREPARED, or BRANCH_*: a branch of the function's own that leads into its window. A byte scan finds suspects, disassembly decides. */
static guint32 find_branch (Job *job, Item *item, guint32 bytes) {
  const guint8 *code = code_of (job, item);
  const guint8 *at = code, *near = code + MIN (item->size, NEAR_BYTES), *end = code + item->size;
  guint64 window = item->window - item->address; /* 0 or 4 */
  gint64 target;
  for (; at != end; at++) {
    if (at >= near) { /* only the long forms reach back that far: this loop sees most of the bytes */
      while (at != end && (*at & 0xfe) != 0xe8 && *at != 0x0f) at++;
      if (at == end) break;
    }
    target = suspected_target (code, at - code, item->size);
    if ((guint64) target - window >= bytes || (*at == 0xe8 && (guint64) target == window)) continue; /* calling itself is a call like any other */
    if (!confirm_branch (job, item, at - code, bytes)) continue;
    item->detail = at - code;
    return (guint64) target == window ? BRANCH_TO_START : BRANCH_INSIDE;
  }
  return PREPARED;
}

static int is_own_thunk (const guint8 *at) { return at[0] == 0xff && at[1] == 0x35 && at[6] == 0xff && at[7] == 0x35 && at[12] == 0xff && at[13] == 0x25; }

/* Fills item->reason, window, window_bytes and original. */
static void examine (Job *job, Item *item, const Item *before) {
  const guint8 *code = code_of (job, item);
  guint32 bytes;
  item->window = item->address;
  if (item->size >= 4 && (guint32) read_i32 (code) == ENDBR64) { item->window += 4; code += 4; }
  item->reason = SMALL;
  if (item->address + item->size - item->window < JUMP_BYTES) return;
  item->reason = ALREADY;
  if (before != NULL && before->reason == PREPARED && item->window - before->window < JUMP_BYTES) return;
  if (item->source == 0) {
    if (code[0] == 0xe9 && is_own_thunk (code + JUMP_BYTES + read_i32 (code + 1))) return;
    item->reason = FOREIGN; /* or a function that begins with a jump: its file tells */
    if (code[0] == 0xe9 || code[0] == 0xcc || (code[0] == 0xff && code[1] == 0x25)) return;
  }
  bytes = measure_window (job, item);
  if (bytes == 0) return;
  if (item->address + item->size - item->window < bytes) { item->reason = UNDECODABLE; return; }
  item->reason = find_branch (job, item, bytes);
  item->window_bytes = bytes;
  memcpy (item->original, code, JUMP_BYTES);
}

static int put_rel32 (guint8 **to, guint64 pc_of_field, guint64 target) { /* 0 when out of reach */
  gint64 distance = (gint64) (target - (pc_of_field + 4));
  put_u32 (to, (guint32) distance);
  return distance == (gint64) (gint32) distance;
}

static void put_push (guint8 **to, guint64 value) { /* push imm32 sign-extends; the high half is put in place after it */
  *(*to)++ = 0x68;
  put_u32 (to, (guint32) value);
  if ((guint64) (gint64) (gint32) value == value) return;
  memcpy (*to, "\xc7\x44\x24\x04", 4);
  *to += 4;
  put_u32 (to, (guint32) (value >> 32));
}

/* Where the displacement of a rip-relative operand lies in the instruction; 0: it has none, -1: it has one that cannot be found.
 * Capstone's own disp_offset is one short for instructions with a mandatory prefix (66 0f 28: movapd), so the bytes are searched: a ModRM byte
 * with mod 0 and rm 5, then the displacement that was decoded, then nothing or an immediate. */
static int rip_displacement (const cs_insn *insn) {
  const cs_x86 *x86 = &insn->detail->x86;
  int i, at, found = 0, relative = 0;
  gint64 distance = 0;
  for (i = 0; i != x86->op_count; i++) {
    if (x86->operands[i].type != X86_OP_MEM || x86->operands[i].mem.base != X86_REG_RIP) continue;
    relative = 1;
    distance = x86->operands[i].mem.disp;
  }
  if (!relative) return 0;
  for (at = 2; at + 4 <= insn->size; at++) {
    int rest = insn->size - at - 4;
    if ((insn->bytes[at - 1] & 0xc7) != 0x05 || read_i32 (insn->bytes + at) != distance || rest == 3 || rest > 4) continue;
    if (found != 0) return -1;
    found = at;
  }
  return found != 0 ? found : -1;
}

/* Copies one instruction, as it must read at `pc` + what was put so far. 0 when something is out of reach. */
static int move_instruction (Job *job, guint8 **to, const guint8 *base, guint64 pc) {
  cs_insn *insn = job->insn;
  cs_x86 *x86 = &insn->detail->x86;
  guint8 *copy;
  int at;
#define HERE (pc + (*to - base))
  if (insn->id == X86_INS_CALL) put_push (to, insn->address + insn->size);
  if (is_direct (insn) && (insn->id == X86_INS_CALL || insn->id == X86_INS_JMP)) {
    *(*to)++ = 0xe9;
    return put_rel32 (to, HERE, target_of (insn));
  }
  if (is_direct (insn) && in_group (insn, CS_GRP_JUMP)) {
    *(*to)++ = 0x0f;
    *(*to)++ = 0x80 | ((x86->opcode[0] == 0x0f ? x86->opcode[1] : x86->opcode[0]) & 0x0f);
    return put_rel32 (to, HERE, target_of (insn));
  }
  copy = *to;
  memcpy (copy, insn->bytes, insn->size);
  *to += insn->size;
  if (insn->id == X86_INS_CALL) copy[x86->encoding.modrm_offset] ^= (2 ^ 4) << 3; /* call r/m (/2) → jmp r/m (/4) */
  at = rip_displacement (insn);
  if (at < 0) return 0;
  if (at > 0) {
    gint64 distance = (gint64) (insn->address + read_i32 (insn->bytes + at)) - (gint64) (pc + (copy - base));
    gint32 near = (gint32) distance;
    memcpy (copy + at, &near, 4);
    return near == distance;
  }
  return 1;
#undef HERE
}

/* Writes the thunk of `item`, which will lie at `pc`; bytes used, or 0 when something is out of reach. */
static guint32 emit (Job *job, Item *item, guint8 *base, guint64 pc, guint64 hook, guint64 entry) {
  guint8 *to = base;
  guint64 at = item->window, end = item->window + item->window_bytes;
  gint64 jump = (gint64) (pc - (item->window + JUMP_BYTES));
  guint32 words;
  if (jump != (gint64) (gint32) jump) return 0;
  memcpy (to, "\xff\x35....\xff\x35....\xff\x25....", HEAD_BYTES);
  to += HEAD_BYTES;
  while (at != end) {
    if (at - item->window < JUMP_BYTES) item->entries[at - item->window] = to - base;
    if (!decode (job, item, at, end - at) || !move_instruction (job, &to, base, pc)) return 0;
    at += job->insn->size;
  }
  if (!ends_flow (job->insn) && job->insn->id != X86_INS_CALL) { *to++ = 0xe9; if (!put_rel32 (&to, pc + (to - base), end)) return 0; }
  while ((to - base) & 7) *to++ = 0xcc;
  words = to - base;
  put_u64 (&to, hook);
  put_u64 (&to, pc + HEAD_BYTES);
  put_u64 (&to, entry);
  words -= 6; /* each word lies 8 after the one before, each instruction ends 6 after the one before */
  memcpy (base + 2, &words, 4);
  words += 2;
  memcpy (base + 8, &words, 4);
  words += 2;
  memcpy (base + 14, &words, 4);
  while ((to - base) & 15) *to++ = 0xcc;
  item->patch[0] = 0xe9;
  memcpy (item->patch + 1, &jump, 4);
  item->thunk = pc;
  return to - base;
}

static void prepare_item (Job *job, Item *item, Slab *slab) {
  const guint8 *plan = job->extra + item->plan_offset;
  guint64 hook = item->hook, entry = item->entry;
  guint32 bytes;
  if (hook == 0) entry = (guint64) (gsize) (strobe_plan_needs_xmm (plan, item->plan_bytes) ? strobe_enter_xmm : strobe_enter_gpr);
  bytes = emit (job, item, job->code + job->code_bytes, slab->address + slab->bytes, hook, entry);
  if (bytes == 0) { item->reason = OUT_OF_REACH; return; }
  if (hook == 0) {
    hook = strobe_hook_new (item->id, item->address, plan, item->plan_bytes);
    if (hook == 0) { item->reason = NO_HOOK; return; }
    emit (job, item, job->code + job->code_bytes, slab->address + slab->bytes, hook, entry);
  }
  job->code_bytes += bytes;
  slab->bytes += bytes;
}

/* Memory of the target's for thunks; 0: there is none within reach. */
static guint64 take_slab (Job *job, guint64 near, guint64 bytes) {
  guint32 i;
  if (job->given == NULL) return strobe_slab (near, bytes);
  for (i = 0; i != job->given_count; i++) {
    Slab *slab = &job->given[i];
    guint64 away = near < slab->address ? slab->address + bytes - near : near - slab->address;
    if (slab->bytes < bytes || away > SLAB_REACH) continue;
    slab->address += bytes;
    slab->bytes -= bytes;
    return slab->address - bytes;
  }
  return 0;
}

/* items[first … last) lie within GROUP_SPAN and share one slab. */
static void prepare_group (Job *job, Item *items, guint32 first, guint32 last) {
  guint32 i, wanted = 0;
  guint64 address = 0;
  Slab *slab;
  for (i = first; i != last; i++) if (items[i].reason == PREPARED) wanted++;
  if (wanted == 0) return;
  if (job->slab_count != job->slabs_max) address = take_slab (job, items[first].address / 2 + items[last - 1].address / 2, (guint64) wanted * THUNK_MAX);
  if (address == 0) {
    for (i = first; i != last; i++) if (items[i].reason == PREPARED) items[i].reason = NO_ROOM;
    return;
  }
  slab = &job->slabs[job->slab_count++];
  slab->address = address;
  slab->offset = job->code_bytes;
  slab->bytes = 0;
  for (i = first; i != last; i++) if (items[i].reason == PREPARED) prepare_item (job, &items[i], slab);
}

/* `items` in address order; `code` has room for THUNK_MAX bytes an item; `given` is NULL in the target. Number of slabs written, or -1 when capstone
 * is not usable. */
int strobe_prepare (Item *items, guint32 count, const guint8 *extra, guint8 *code, Slab *slabs, guint32 slabs_max, Slab *given, guint32 given_count) {
  Job job;
  guint32 i, first = 0;
  memset (&job, 0, sizeof (job));
  job.extra = extra;
  job.code = code;
  job.slabs = slabs;
  job.slabs_max = slabs_max;
  job.given = given;
  job.given_count = given_count;
  if (cs_open (CS_ARCH_X86, CS_MODE_64, &job.capstone) != CS_ERR_OK) return -1;
  cs_option (job.capstone, CS_OPT_DETAIL, CS_OPT_ON);
  job.insn = cs_malloc (job.capstone);
  for (i = 0; i != count; i++) examine (&job, &items[i], i == 0 ? NULL : &items[i - 1]);
  for (i = 1; i <= count; i++) {
    if (i != count && items[i].address - items[first].address < GROUP_SPAN) continue;
    prepare_group (&job, items, first, i);
    first = i;
  }
  cs_free (job.insn, 1);
  cs_close (&job.capstone);
  return job.slab_count;
}
