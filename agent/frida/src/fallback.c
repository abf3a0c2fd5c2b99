/* Records calls where the recorder cannot be loaded: Frida's Interceptor calls onEnter and onLeave, which write the same lanes. Compiled by the
 * agent's CModule (TinyCC), and stays with the agent for the target's life. Slower (0.5 µs a record) and plainer than the recorder: signals are
 * blocked while a record is written, vector registers are not captured, and there is no exit for a call that is unwound.
 * Constants (LANE_…) come from layout.gen.ts, as definitions put before this text. Statics of a CModule are read-only: all state is in `state`.
 */
#include <gum/guminterceptor.h>
#include <glib.h>
#include <string.h>

#define THREADS 1024
#define DEPTH 512
#define SYS_RT_SIGPROCMASK 14
#define SYS_GETPID 39
#define SYS_PRCTL 157
#define SYS_GETTID 186
#define SYS_CLOCK_GETTIME 228
#define SYS_PROCESS_VM_READV 310

typedef struct { guint64 slot, span; } Call;
typedef struct {
  gint tid;                    /* 0: free */
  guint32 index, order, slot;  /* in the pool; of its chunks; next slot of `chunk` */
  guint8 *chunk;               /* NULL: none */
  guint32 serial, depth;
  guint64 spans;
  Call calls[DEPTH];
  guint8 scratch[LANE_PAYLOAD_BYTES_MAX + 64];
} Thread;
typedef struct {
  guint8 *pool;
  guint32 cycles, pid;
  guint8 reserved[48];
  Thread threads[THREADS];
} State;
typedef struct { guint8 op, arg, size, dst; gint32 imm; } Step;
typedef struct { guint32 id, steps; Step plan[1]; } Hook; /* enter list, END, exit list, END */

extern State state;
extern long syscall (long number, ...);

#define POOL_U32(name) (*(volatile guint32 *) (state.pool + LANE_POOL_##name))
#define CHUNK_U32(chunk, name) (*(volatile guint32 *) ((chunk) + LANE_CHUNK_##name))
#define HOOK_AT(id) (state.pool + LANE_HOOKS_OFFSET + (gsize) (id) * LANE_HOOK_BYTES)

static gboolean swap (volatile gint *place, gint expected, gint desired) {
  gint found;
  __asm__ volatile ("lock; cmpxchgl %3, (%2)" : "=a" (found) : "0" (expected), "r" (place), "r" (desired) : "memory");
  return found == expected;
}
static guint64 now (void) {
  guint32 low, high;
  gint64 time[2];
  if (state.cycles) {
    __asm__ volatile ("rdtsc" : "=a" (low), "=d" (high));
    return (guint64) high << 32 | low;
  }
  syscall (SYS_CLOCK_GETTIME, 1, time);
  return (guint64) time[0] * 1000000000 + time[1];
}
static guint64 signals_off (void) {
  guint64 all = ~(guint64) 0, before = 0;
  syscall (SYS_RT_SIGPROCMASK, 2, &all, &before, 8);
  return before;
}
static void signals_back (guint64 mask) { syscall (SYS_RT_SIGPROCMASK, 2, &mask, NULL, 8); }
static void drop (guint32 hook, guint32 kind) {
  g_atomic_pointer_add ((gsize *) (state.pool + LANE_POOL_dropped_by_kind + kind * 8), 1);
  g_atomic_pointer_add ((gsize *) (HOOK_AT (hook) + LANE_HOOK_dropped), 1);
}

/* The running thread's state, by its id; NULL when there is no room for one more. A forked child has new ids, so it starts anew. */
static Thread *self (void) {
  gint tid = syscall (SYS_GETTID);
  guint i, from = (guint) tid * 2654435761u % THREADS;
  for (i = 0; i != THREADS; i++) {
    Thread *thread = &state.threads[(from + i) % THREADS];
    if (thread->tid == tid) return thread;
    if (thread->tid != 0 || !swap (&thread->tid, 0, tid)) continue;
    thread->index = g_atomic_int_add ((gint *) (state.pool + LANE_POOL_threads), 1) + 1;
    thread->spans = (guint64) thread->index << LANE_SPAN_THREAD_SHIFT;
    return thread;
  }
  return NULL;
}

static void prepare_chunk (Thread *thread, guint8 *chunk) {
  CHUNK_U32 (chunk, pid) = syscall (SYS_GETPID);
  CHUNK_U32 (chunk, tid) = thread->tid;
  memset (chunk + LANE_CHUNK_MAP_OFFSET, 0, LANE_CHUNK_SLOTS);
  CHUNK_U32 (chunk, written) = 0;
  CHUNK_U32 (chunk, read) = 0;
  CHUNK_U32 (chunk, thread) = thread->index;
  CHUNK_U32 (chunk, order) = thread->order++;
  syscall (SYS_PRCTL, 16, chunk + LANE_CHUNK_comm, 0, 0, 0);
  thread->serial = CHUNK_U32 (chunk, serial) + 1;
  if (thread->serial == 0) thread->serial = 1;
  CHUNK_U32 (chunk, serial) = thread->serial; /* last: until then the chunk counts as not begun */
  thread->chunk = chunk;
  thread->slot = 0;
}

/* A free chunk, or none: the last ones are kept for what is not a trace record. */
static gboolean claim_chunk (Thread *thread) {
  gint *chunks_free = (gint *) (state.pool + LANE_POOL_chunks_free);
  guint i, from, count = POOL_U32 (chunk_count);
  if (g_atomic_int_add (chunks_free, -1) - 1 >= (gint) POOL_U32 (reserve_chunks)) {
    from = POOL_U32 (claim_hint);
    for (i = 0; i != count; i++) {
      guint index = (from + i) % count;
      guint8 *chunk = state.pool + LANE_CHUNKS_OFFSET + (gsize) index * LANE_CHUNK_BYTES;
      if (!swap ((gint *) (chunk + LANE_CHUNK_state), 0, 1)) continue;
      POOL_U32 (claim_hint) = index + 1;
      prepare_chunk (thread, chunk);
      return TRUE;
    }
  }
  g_atomic_int_add (chunks_free, 1);
  return FALSE;
}

static guint8 *put (Thread *thread, guint32 slots, guint64 ts, guint64 span, guint64 what, guint64 word) {
  guint64 *entry = (guint64 *) (thread->chunk + LANE_CHUNK_SLOTS_OFFSET + (gsize) thread->slot * LANE_SLOT_BYTES);
  entry[0] = ts;
  entry[1] = span;
  entry[2] = what | (guint64) slots << 48;
  entry[3] = word;
  return (guint8 *) (entry + 4);
}
static void publish (Thread *thread, guint32 slots) { /* the processor keeps stores in order, and so does TinyCC */
  *(volatile guint8 *) (thread->chunk + LANE_CHUNK_MAP_OFFSET + thread->slot) = slots;
  thread->slot += slots;
}
static void close_chunk (Thread *thread) {
  while (thread->slot != LANE_CHUNK_SLOTS) {
    guint32 slots = MIN (LANE_CHUNK_SLOTS - thread->slot, 255);
    put (thread, slots, 0, 0, (guint64) LANE_KIND_PAD << 32, 0);
    publish (thread, slots);
  }
  CHUNK_U32 (thread->chunk, written) = LANE_CHUNK_SLOTS;
  CHUNK_U32 (thread->chunk, state) = 2;
  thread->chunk = NULL;
}

/* Writes one entry, or counts it as dropped. The chunk is still this thread's only if nobody closed it meanwhile (a thread of the same id that died). */
static gboolean record (Thread *thread, guint32 hook, guint32 kind, guint32 flags, guint64 span, guint64 word, guint64 ts, const guint8 *payload, guint32 bytes) {
  guint32 slots = 1 + (bytes + LANE_SLOT_BYTES - 1) / LANE_SLOT_BYTES;
  guint8 *room;
  if (thread->chunk != NULL && (CHUNK_U32 (thread->chunk, state) != 1 || CHUNK_U32 (thread->chunk, serial) != thread->serial)) thread->chunk = NULL;
  if (thread->chunk != NULL && thread->slot + slots > LANE_CHUNK_SLOTS) close_chunk (thread);
  if (thread->chunk == NULL && !claim_chunk (thread)) { drop (hook, kind); return FALSE; }
  CHUNK_U32 (thread->chunk, written) = thread->slot + slots;
  room = put (thread, slots, ts, span, hook | (guint64) kind << 32 | (guint64) flags << 40, word);
  memcpy (room, payload, bytes);
  publish (thread, slots);
  return TRUE;
}

/* Copies from memory that may not be there; bytes copied before the first page that is not. */
static guint32 read_safely (guint8 *to, guint64 from, guint32 bytes) {
  guint32 done = 0;
  while (done != bytes) {
    guint64 step = MIN (4096 - ((from + done) & 4095), bytes - done), local[2], remote[2];
    local[0] = (guint64) (gsize) (to + done);
    remote[0] = from + done;
    local[1] = remote[1] = step;
    if (syscall (SYS_PROCESS_VM_READV, syscall (SYS_GETPID), local, 1, remote, 1, 0) != (long) step) break;
    done += step;
  }
  return done;
}

/* A string's bytes at payload + used and its descriptor at `dst`. Bytes used by the string. */
static guint32 put_string (guint8 *payload, guint32 used, guint32 dst, guint64 from, guint32 limit, guint32 *flags) {
  guint32 got, length, state_of = LANE_STRING_STATE_NULL;
  limit = MIN (limit, LANE_PAYLOAD_BYTES_MAX - used);
  got = from == 0 ? 0 : read_safely (payload + used, from, limit + 1); /* one more shows whether it ends there; the scratch has room */
  for (length = 0; length != got && length != limit && payload[used + length] != 0; length++) { }
  if (from != 0) {
    if (length != got && payload[used + length] == 0) state_of = LANE_STRING_STATE_OK;
    else state_of = got == limit + 1 ? LANE_STRING_STATE_TRUNCATED : LANE_STRING_STATE_UNREADABLE;
  }
  if (state_of == LANE_STRING_STATE_TRUNCATED) *flags |= LANE_ENTRY_FLAG_TRUNCATED;
  memset (payload + dst, 0, 8);
  *(guint16 *) (payload + dst) = used;
  *(guint16 *) (payload + dst + 2) = length;
  payload[dst + 4] = state_of;
  return length;
}

static guint32 fixed_bytes (const Step *step) {
  guint32 end, fixed = 0;
  for (; step->op != LANE_PLAN_OP_END; step++) {
    end = step->dst + (step->op == LANE_PLAN_OP_CSTR || step->op == LANE_PLAN_OP_STACK_CSTR ? 8 : step->op == LANE_PLAN_OP_WORD_XMM ? 0 : step->size);
    if (end > fixed) fixed = (end + 7) & ~7u;
  }
  return fixed;
}

/* Runs a list of steps into thread->scratch; bytes used. What lies in vector registers stays 0, and the entry says it is not whole. */
static guint32 capture (Thread *thread, const Step *step, const GumCpuContext *cpu, guint32 *flags) {
  guint64 registers[8], word = 0;
  guint32 used = fixed_bytes (step);
  guint8 *payload = thread->scratch;
  registers[0] = cpu->rdi; registers[1] = cpu->rsi; registers[2] = registers[7] = cpu->rdx; registers[3] = cpu->rcx;
  registers[4] = cpu->r8; registers[5] = cpu->r9; registers[6] = cpu->rax;
  memset (payload, 0, used);
  for (; step->op != LANE_PLAN_OP_END; step++) {
    switch (step->op) {
      case LANE_PLAN_OP_GPR: memcpy (payload + step->dst, &registers[step->arg & 7], step->size); break;
      case LANE_PLAN_OP_STACK: read_safely (payload + step->dst, cpu->rsp + 8 + step->imm, step->size); break;
      case LANE_PLAN_OP_CSTR: used += put_string (payload, used, step->dst, registers[step->arg & 7], step->imm, flags); break;
      case LANE_PLAN_OP_STACK_CSTR:
        read_safely ((guint8 *) &word, cpu->rsp + 8 + (step->imm >> 12), 8);
        used += put_string (payload, used, step->dst, word, step->imm & 4095, flags);
        break;
      default: *flags |= LANE_ENTRY_FLAG_TRUNCATED;
    }
  }
  return used;
}

static const Step *exit_list (const Hook *hook) {
  const Step *step = hook->plan;
  while (step->op != LANE_PLAN_OP_END) step++;
  return step + 1;
}

/* Forgets calls that are over without having returned (longjmp): on one stack an outer frame has the higher address. The innermost that is left. */
static guint64 settle (Thread *thread, guint64 slot) {
  while (thread->depth != 0 && thread->calls[thread->depth - 1].slot <= slot) thread->depth--;
  return thread->depth != 0 ? thread->calls[thread->depth - 1].span : 0;
}

static void enter (GumInvocationContext *ic, gboolean wants_exit) {
  const Hook *hook = gum_invocation_context_get_listener_function_data (ic);
  guint64 *invocation = wants_exit ? gum_invocation_context_get_listener_invocation_data (ic, 8) : NULL;
  guint32 hook_flags = *(volatile guint32 *) (HOOK_AT (hook->id) + LANE_HOOK_flags), flags = 0, period, bytes;
  guint64 mask, slot = ic->cpu_context->rsp, parent, span;
  guint64 ts;
  gboolean full;
  Thread *thread;
  if (invocation != NULL) *invocation = 0;
  if (!(hook_flags & LANE_HOOK_FLAG_ENABLED) || !POOL_U32 (recording)) return;
  ts = now ();
  period = *(volatile guint32 *) (HOOK_AT (hook->id) + LANE_HOOK_sample_period);
  if (period > 1) {
    guint64 mixed = (ts ^ (ts >> 33)) * 0xff51afd7ed558ccdull;
    mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53ull;
    if (((mixed >> 32) * period) >> 32 != 0) {
      g_atomic_pointer_add ((gsize *) (HOOK_AT (hook->id) + LANE_HOOK_left_out), 1);
      return;
    }
    flags = LANE_ENTRY_FLAG_SAMPLED;
  }
  wants_exit = wants_exit && (hook_flags & LANE_HOOK_FLAG_WANT_EXIT);
  mask = signals_off ();
  thread = self ();
  if (thread == NULL) drop (hook->id, LANE_KIND_ENTER);
  else {
    parent = settle (thread, slot);
    bytes = capture (thread, hook->plan, ic->cpu_context, &flags);
    span = thread->spans + 1;
    full = wants_exit && thread->depth == DEPTH;
    wants_exit = wants_exit && !full;
    if (!wants_exit) flags |= LANE_ENTRY_FLAG_NO_EXIT;
    if (record (thread, hook->id, LANE_KIND_ENTER, flags, span, parent, ts, thread->scratch, bytes)) {
      thread->spans = span;
      if (wants_exit) {
        thread->calls[thread->depth].slot = slot;
        thread->calls[thread->depth++].span = span;
        *invocation = span;
      } else if (full) g_atomic_pointer_add ((gsize *) (HOOK_AT (hook->id) + LANE_HOOK_unmatched), 1);
    }
  }
  signals_back (mask);
}

void onEnter (GumInvocationContext *ic) { enter (ic, TRUE); }
void onCall (GumInvocationContext *ic) { enter (ic, FALSE); }

void onLeave (GumInvocationContext *ic) {
  const Hook *hook = gum_invocation_context_get_listener_function_data (ic);
  guint64 span = *(guint64 *) gum_invocation_context_get_listener_invocation_data (ic, 8), mask, ts;
  const Step *steps;
  guint32 flags = 0, bytes;
  Thread *thread;
  if (span == 0) return;
  ts = now ();
  mask = signals_off ();
  thread = self ();
  if (thread == NULL) drop (hook->id, LANE_KIND_EXIT);
  else if (span >> LANE_SPAN_THREAD_SHIFT == thread->index) { /* else entered before fork, in the parent */
    while (thread->depth != 0 && thread->calls[thread->depth - 1].span >= span) thread->depth--;
    steps = exit_list (hook);
    bytes = capture (thread, steps, ic->cpu_context, &flags);
    if (POOL_U32 (recording)) record (thread, hook->id, LANE_KIND_EXIT, flags, span, ic->cpu_context->rax, ts, thread->scratch, bytes);
  }
  signals_back (mask);
}
