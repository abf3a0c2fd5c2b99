/* The recorder's own state. Nothing here is shared with another process; what is, states layout.gen.h.
 *
 * Signal handlers. A handler may interrupt the recorder at any instruction, call traced functions itself, and return, leave by
 * longjmp, or switch to another stack. So every word that a thread owns is changed by one instruction (xadd, cmpxchg, or a store that
 * means the same whenever it happens), and what takes several is done with signals blocked (chunk switch, thread start, compaction)
 * or is marked "in progress" so that a nested frame leaves it alone (shadow entries).
 */
#ifndef STROBE_RECORDER_STATE_H
#define STROBE_RECORDER_STATE_H
#include "recorder.h"
#include "recorder_system.h"

#pragma GCC visibility push(hidden)

struct shadow;

enum { /* why the short paths may not be taken; bits of thread.slow */
    SLOW_MIXED = 1,    /* entries at or above `mixed_low` are not all live, native and sorted */
    SLOW_RESTORED = 2, /* entries below `restored` have their real return addresses in their slots */
    SLOW_UNWINDING = 4,
    SLOW_RESERVE = 8,  /* the current chunk is one of the reserve: no trace records */
};

/* What the recorder keeps for one thread. Found by the thread pointer, believed only while tokens[] holds the tid that struct pthread
 * has now: a later thread with the same thread pointer has another, and in a forked child all tokens are zero. */
struct thread {
    uint64_t key;      /* the thread pointer; 0: free */
    uint32_t tid;      /* 0 until it is ready */
    uint32_t slow;
    uint64_t word;     /* chunk index << 32 | slots reserved in it (lane.h) */
    uint64_t spans;    /* the last span given out: thread index << 40 | count */
    struct shadow *shadow;
    uint32_t depth;    /* entries in use */
    uint32_t capacity;
    uint64_t native_low, native_high; /* of the thread's own stack */
    /* second cache line */
    uint64_t busy;     /* slot of the frame of the recorder that began while none was running, or 0 */
    uint32_t pid;
    uint32_t index;    /* in the pool */
    uint32_t order;    /* chunks claimed */
    uint32_t mixed_low;
    uint32_t dead;     /* about how many TAG_DEAD entries there are */
    uint32_t restored;
    uint64_t unwinding; /* slot of the unwinder's function while SLOW_UNWINDING */
    uint8_t carved;    /* other stacks lie inside the native one */
    uint8_t doubt;     /* why a load may not fault here without a look (recorder_faults.h) */
    uint16_t nested;   /* frames of the recorder that began while another was running */
    uint32_t scratch_used; /* one bit for each SCRATCH_BLOCK */
    uint8_t *scratch;    /* above the alternate signal stack; then the gaps, then the shadow stack */
    struct thread *next; /* in thread_list */
} __attribute__((aligned(64)));
/* recorder_thunk.S: how unwinders find the real return address */
_Static_assert(offsetof(struct thread, shadow) == 0x20 && offsetof(struct thread, depth) == 0x28 && offsetof(struct thread, next) == 0x78, "thread");

#define THREAD_BITS 14
#define FORK_MARK (1u << THREAD_BITS) /* index in tokens of the process's id: 0 in a forked child until its first thread is started */
#define SHADOW_BYTES (16u << 20)
#define SCRATCH_PAYLOAD 8192u /* holds the largest payload */
#define SCRATCH_BLOCK 40960u  /* that, and the state of a walk (recorder_walk.h) */
#define SCRATCH_BYTES (4 * SCRATCH_BLOCK)
#define GAPS 16u
#define ALTSTACK_BYTES (64u << 10)

/* A closed chunk in which an interrupted frame of the thread may leave a gap; serial 0: none. */
struct gap { uint32_t chunk, serial; };
#define GAPS_BYTES 4096u
#define WRITES_BYTES 512u /* at the end of the gaps' page: recorder_output.c */
INLINE struct gap *thread_gaps(const struct thread *thread) { return (struct gap *)(thread->scratch + SCRATCH_BYTES); }

/* Behind them, in the same page: the _Unwind_Exception that an unwinder was last started with, and that which ends calls right now (0: none). */
struct flight { uint64_t raised, ends; };
INLINE struct flight *thread_flight(const struct thread *thread) { return (struct flight *)(thread_gaps(thread) + GAPS); }

/* What the thunks leave on the stack, from the saved registers up to the return address. */
struct saved {
    uint64_t rdi, rsi, rdx, rcx, r8, r9, rax, r10, r11;
    uint64_t body, hook;
    uint64_t slot; /* the caller's return address itself */
};

/* What the exit stub leaves on the stack. */
struct saved_exit {
    uint64_t xmm[2]; /* low halves of xmm0 and xmm1 */
    uint64_t rdi, rsi, rdx, rcx, r8, r9, rax, r10, r11;
    uint64_t slot; /* in: the exit stub's address; out: the real return address */
};

struct strobe_plan_op { uint8_t op, arg, size, dst; int32_t imm; };

/* A plan step as one load, one mask, one store: `source` is an offset from struct saved. */
struct move { int32_t source; uint32_t dst; uint64_t mask; };
#define MOVES_MAX 8

struct strobe_hook {
    struct lane_hook *shared;
    uint32_t id;
    uint8_t direct;     /* the enter plan is `moves` moves and nothing else */
    uint8_t moves;      /* the first steps of the enter list, as moves */
    uint8_t slots;      /* of the enter entry without its strings */
    uint8_t exit_steps; /* the exit has a payload */
    uint8_t most, exit_most; /* slots that an entry may have with all its strings and its image */
    uint32_t stack_reach; /* bytes from the slot on that the moves read */
    uint8_t word_xmm;
    uint8_t reads, exit_reads; /* the list has steps that read memory which may not be there */
    uint16_t fixed, exit_fixed; /* bytes of payload at fixed places */
    struct move move[MOVES_MAX];
    const struct strobe_plan_op *enter, *exit;
    const struct lane_walk_step *walk; /* the walk section */
    const uint32_t *walk_needs;        /* see walk_compile() */
    uint64_t function;
    struct strobe_hook *next; /* in hook_list */
};

/* The registers a plan may read. xmm: low halves, NULL when they were not saved. `saved`: what moves read, if they may be made. `live`: the vector and x87 registers are the function's still. */
struct values { const uint64_t *gpr, *xmm, *stack; const struct saved *saved; bool live; };

extern struct lane_pool *pool;
extern struct lane_hook *hook_table;
extern uint8_t *chunk_memory;
extern uint32_t clock_is_cycles;
extern uint64_t tid_offset; /* of the tid in struct pthread; 0: not found */
extern uint32_t armed;      /* strobe_arm() was called */
extern struct thread threads[1u << THREAD_BITS];
extern struct thread *thread_list;
extern uint32_t *tokens;    /* one a thread, in memory that the kernel clears in forked children (but not in vforked) */
extern char strobe_exit_stub[];

#define EXIT_STUB ((uint64_t)strobe_exit_stub)

uint64_t clock_slowly(void);
INLINE uint64_t now(void) { return LIKELY(clock_is_cycles) ? cycles() : clock_slowly(); }

struct thread *thread_find(uint64_t key, uint32_t token);
INLINE uint32_t current_token(void) { return LIKELY(tid_offset) ? thread_word32(tid_offset) : (uint32_t)my_tid(); }
INLINE uint32_t thread_hash(uint64_t key) { return (uint32_t)((key >> 6) * 0x9e3779b97f4a7c15ull >> (64 - THREAD_BITS)); }

/* The running thread's state, or NULL when there is no room for one more. */
INLINE struct thread *thread_self(void)
{
    uint64_t key = thread_pointer();
    uint32_t token = current_token(), at = thread_hash(key);
    return LIKELY(threads[at].key == key && tokens[at] == token) ? &threads[at] : thread_find(key, token);
}

INLINE bool is_native(const struct thread *thread, uint64_t slot) { return slot - thread->native_low < thread->native_high - thread->native_low; }

/* The running thread's state if it has one already. For the crash handler. */
struct thread *thread_known(void);

/* In a child that shares its parent's memory (vfork, posix_spawn). */
bool in_vforked_child(void);

/* The frame whose slot `busy` was left by longjmp or the like: nothing of it will be finished. */
void thread_heal(struct thread *thread);

/* Marks a frame of the recorder as running; answers whether it is the first. A mark that is there already is that of a frame that a
 * signal handler interrupted, unless the stack shows that it is gone: on one stack a frame further in has the lower address. The handler
 * may have switched to another stack, so frames may end in any order, and each undoes its own mark only. */
INLINE bool frame_begins(struct thread *thread, uint64_t slot)
{
    uint64_t first = thread->busy;
    if (UNLIKELY(first)) {
        if (slot < first || !is_native(thread, slot) || !is_native(thread, first) || thread->carved || thread->nested) {
            __asm__ volatile("incw %0" : "+m"(thread->nested) : : "memory", "cc");
            return false;
        }
        thread_heal(thread);
    }
    thread->busy = slot;
    in_order();
    return true;
}

INLINE void frame_ends(struct thread *thread, uint64_t slot, bool first)
{
    in_order();
    if (!first)
        __asm__ volatile("decw %0" : "+m"(thread->nested) : : "memory", "cc");
    else if (LIKELY(thread->busy == slot))
        thread->busy = 0;
}

/* recorder_plan.c. `needs` has room for one number a walk step. The steps of the enter list may be put into another order. */
bool hook_compile(struct strobe_hook *hook, struct strobe_plan_op *plan, uint32_t bytes, uint32_t *needs);

/* recorder_hook.c */
bool internal_is_in(uint32_t what);

/* recorder_capture.c */
struct walker;
struct capture { struct walker *walker; uint8_t *payload; uint32_t room; uint8_t flags; };
uint32_t capture(struct thread *thread, const struct strobe_hook *hook, bool at_exit, const struct values *values, struct capture *to);
void maps_learn(uint64_t in_executable);
uint64_t lasting_bytes(const struct thread *thread, uint64_t address);

/* recorder_record.c */
void record_exit(struct thread *thread, const struct shadow *entry, const struct values *values, uint64_t ts);
void record_unwound(struct thread *thread, const struct strobe_hook *hook, uint64_t span, uint64_t exception); /* recorder_exception.c */
void record_plain(struct thread *thread, uint32_t hook_id, struct lane_hook *counts, uint8_t kind, uint64_t span, uint64_t word, uint64_t ts);

/* recorder_marks.c, recorder_signals.c: internal hooks with something to do before and after */
void mark_written(struct thread *thread, uint32_t file, uint64_t slot, int64_t written, uint64_t parent, uint64_t ts);
bool sigaction_enters(struct thread *thread, struct saved *saved, uint64_t *keep);
void sigaction_leaves(uint64_t keep);

/* recorder_output.c */
void write_enters(struct thread *thread, const struct saved *saved, bool vector);
void write_leaves(struct thread *thread, uint32_t stream, uint64_t slot, uint64_t written, uint64_t parent, uint64_t ts);

/* recorder_rebind.c, and what it has the others do */
int64_t rebind(const char *path, bool anyway);
uint64_t pool_mapped(void);
void pool_took_over(const char *path);
void chunks_forget(void);
void hooks_retire(void);

/* recorder_loading.c */
void loading_learn(uint64_t headers, uint64_t count);
void loading_seen(void);
void mask_enters(const struct saved *saved, uint32_t what);

/* recorder_gates.c */
void exec_asks(const struct saved *saved, uint32_t what);

/* recorder_signals.c, recorder_crash.c */
enum { INTERNAL_UNWIND = 1, INTERNAL_BACKTRACE, INTERNAL_LANDING, INTERNAL_CATCH, INTERNAL_LONGJMP, INTERNAL_CONTEXT, INTERNAL_WRITE, INTERNAL_WRITEV, INTERNAL_SIGACTION, INTERNAL_LOADING,
    INTERNAL_EXEC, INTERNAL_EXEC_AT, INTERNAL_EXEC_FILE,
    INTERNAL_MASK_SECOND /* argument is a set of signals */, INTERNAL_MASK_FIRST, INTERNAL_MASK_FOURTH, INTERNAL_MASK_FIFTH, INTERNAL_MASK_SIXTH };
struct kernel_action { uint64_t handler, flags, restorer, mask; };
int64_t signal_action(int signo, const struct kernel_action *new, struct kernel_action *old);
extern const int crash_signals[];
extern const uint32_t crash_signals_count;
void crash_handler(int signo, void *info, void *context);
void crash_altstack(uint8_t *memory);
uint32_t exception_on_stack(const uint64_t *words, uint32_t count, uint8_t *payload);
#pragma GCC visibility pop
#endif
