/* The recorder's internal hooks on what walks or leaves the stack. An unwinder must find real return addresses, so they are put back
 * when it starts; where it lands the frames it left are reported and the rest is hijacked again.
 *
 * `restored` splits the shadow stack: entries below it have their real addresses in their slots, those above the exit stub's. The split
 * moves down REHIJACK entries at a time as calls return, so an exception costs no more on a deep stack than on a flat one. */
#include "recorder_faults.h"
#include "recorder_lane.h"
#include "recorder_shadow.h"

#define REHIJACK 64u
#define CONTEXT_CFA 144u /* of struct _Unwind_Context in libgcc: 18 register places, then the CFA */
#define CONTEXT_MASK 296u /* of ucontext_t: uc_sigmask */
#define CURSOR_RSP 72u   /* of the same in LLVM's libunwind: two pointers, then rax rbx rcx rdx rdi rsi rbp rsp */

void unwind_restore(struct thread *thread)
{
    for (uint32_t at = thread->depth; at-- > thread->restored;) {
        const struct shadow *entry = &thread->shadow[at];
        uint32_t tag = TAG(entry->slot);
        uint64_t slot = UNTAG(entry->slot), value;
        if (slot && (tag == TAG_LIVE || tag == TAG_GHOST || tag == TAG_BUSY) && slot_read(thread, slot, &value) && value == EXIT_STUB)
            slot_write(thread, slot, entry->ret);
    }
    thread->restored = thread->depth;
    if (thread->restored)
        set_bits_own(&thread->slow, SLOW_RESTORED);
}

void unwind_rehijack(struct thread *thread)
{
    uint32_t at = thread->restored < thread->depth ? thread->restored : thread->depth, low = at > REHIJACK ? at - REHIJACK : 0;
    while (low && TAG(thread->shadow[low].slot) == TAG_TAIL) /* a chain of tail calls has one address */
        low--;
    while (at > low) {
        const struct shadow *entry = &thread->shadow[--at];
        uint64_t slot = entry->slot, value;
        if (slot && TAG(slot) == TAG_LIVE && slot_read(thread, slot, &value) && value == entry->ret)
            slot_write(thread, slot, EXIT_STUB);
    }
    thread->restored = low;
    if (!low)
        clear_bits_own(&thread->slow, SLOW_RESTORED);
}

void unwind_over(struct thread *thread)
{
    clear_bits_own(&thread->slow, SLOW_UNWINDING);
    thread->unwinding = 0;
}

/* `exception`: 0 for one that only looks. */
static void unwind_starts(struct thread *thread, uint64_t slot, uint64_t exception)
{
    unwind_restore(thread);
    thread_flight(thread)->raised = exception;
    thread->unwinding = slot;
    set_bits_own(&thread->slow, SLOW_UNWINDING);
}

static bool plausible(const struct thread *thread, uint64_t from, uint64_t to)
{
    return to > from && (is_native(thread, from) ? is_native(thread, to) : to - from < 16u << 20);
}

/* _Unwind_SetIP: the personality routine chose the frame to land in; the context's CFA is that frame's stack pointer. */
static void unwind_lands(struct thread *thread, const uint8_t *context)
{
    uint64_t from = thread->unwinding, words[20] = {0};
    if (!(thread->slow & SLOW_UNWINDING) || read_safely(words, (uint64_t)context, sizeof words) < CONTEXT_CFA + 8)
        return;
    uint64_t to = words[CONTEXT_CFA / 8];
    if (!plausible(thread, from, to))
        to = words[CURSOR_RSP / 8];
    if (!plausible(thread, from, to))
        return; /* another unwinder: __cxa_begin_catch or the next call will tell */
    struct flight *flight = thread_flight(thread);
    flight->ends = flight->raised;
    shadow_reap(thread, from, to);
    flight->ends = 0;
    unwind_over(thread);
    unwind_rehijack(thread);
}

/* longjmp on glibc: the saved stack pointer is word 6, mangled with the thread's pointer guard. */
static void long_jump(struct thread *thread, uint64_t slot, uint64_t buffer)
{
    uint64_t words[8] = {0};
    if (read_safely(words, buffer, 64) < 64)
        return;
    uint64_t target = (words[6] >> 17 | words[6] << 47) ^ thread_word64(0x30);
    if (!is_native(thread, target) || thread->carved)
        return;
    shadow_reap(thread, thread->native_low, target);
    struct { uint64_t base; int32_t flags, gap; uint64_t bytes; } signals = {0, 0, 0, 0};
    if (!is_native(thread, slot) && !system_call(CALL_SIGALTSTACK, 0, (uint64_t)&signals, 0, 0, 0, 0) && (signals.flags & 1 /* SS_ONSTACK */))
        shadow_reap(thread, signals.base, signals.base + signals.bytes); /* out of a handler on a stack of its own */
    if ((thread->slow & SLOW_UNWINDING) && target > thread->unwinding)
        unwind_over(thread);
    if ((thread->slow & SLOW_RESTORED) && !(thread->slow & SLOW_UNWINDING))
        unwind_rehijack(thread);
}

/* Stacks given to makecontext, the newest STACKS of them: what tells neighbours in one block of memory apart. */
#define STACKS 256u
static struct { uint64_t low, high; } stacks[STACKS];
static uint32_t stacks_next;

static void new_context(struct thread *thread, uint64_t context)
{
    uint64_t words[5] = {0};
    if (read_safely(words, context, sizeof words) < sizeof words) /* uc_flags, uc_link, ss_sp, ss_flags, ss_size */
        return;
    uint64_t mask = 0;
    read_safely(&mask, context + CONTEXT_MASK, 8);
    faults_contexts(mask);
    if (is_native(thread, words[2]))
        thread->carved = 1;
    uint32_t at = 0, used = stacks_next < STACKS ? stacks_next : STACKS;
    while (at < used && stacks[at].low != words[2])
        at++;
    if (at == used)
        at = SHARED_ADD(&stacks_next, 1) % STACKS;
    stacks[at].high = 0;
    in_order();
    stacks[at].low = words[2];
    in_order();
    stacks[at].high = words[2] + words[4];
}

bool contexts_used(void) { return stacks_next; }

/* Where the stack that `slot` is on ends at most. */
uint64_t stack_end(uint64_t slot)
{
    for (uint32_t i = 0, used = stacks_next < STACKS ? stacks_next : STACKS; i < used; i++)
        if (slot >= stacks[i].low && slot < stacks[i].high)
            return stacks[i].high;
    return slot + FOREIGN_SPAN;
}

static uint64_t internal_returns(struct thread *thread, struct saved *saved, uint64_t extra, uint64_t keep, bool transparent)
{
    uint64_t *slot = &saved->slot;
    struct push push;
    shadow_settle(thread, (uint64_t)slot, &push);
    uint64_t hook = saved->hook | SHADOW_INTERNAL | extra << SHADOW_EXTRA_SHIFT;
    enum shadow_tag tag = push.tail ? TAG_TAIL : TAG_LIVE;
    struct shadow *entry = shadow_push(thread, slot, transparent ? push.parent : keep, hook, tag);
    if (!entry)
        return 0;
    shadow_done(thread, entry, tag);
    if (!transparent)
        shadow_mixed(thread, thread->depth - 1);
    return !push.tail;
}

/* The entry points of internal hooks call this. 1: the body is to return to the exit stub. */
__attribute__((used)) uint64_t strobe_on_internal(struct saved *saved)
{
    uint32_t what = ((const struct strobe_internal *)saved->hook)->reserved;
    uint64_t slot = (uint64_t)&saved->slot, hijack = 0, keep = 0;
    bool writes = what == INTERNAL_WRITE || what == INTERNAL_WRITEV;
    if (writes && (!SHARED_LOAD(&pool->recording) || !(pool->stream_ino[0] | pool->stream_ino[1]) || (uint32_t)saved->rdi > SHADOW_EXTRA_MAX))
        return 0;
    if (what >= INTERNAL_MASK_SECOND) {
        mask_enters(saved, what);
        return 0;
    }
    if (what == INTERNAL_LOADING) {
        loading_seen();
        return 0;
    }
    if (what == INTERNAL_EXEC || what == INTERNAL_EXEC_AT || what == INTERNAL_EXEC_FILE) {
        exec_asks(saved, what);
        return 0;
    }
    struct thread *thread = thread_self();
    if (!thread && what == INTERNAL_SIGACTION)
        faults_unseen();
    if (!thread || (what == INTERNAL_SIGACTION && !sigaction_enters(thread, saved, &keep)))
        return 0;
    bool first = frame_begins(thread, slot);
    switch (what) {
    case INTERNAL_UNWIND:
        unwind_starts(thread, slot, saved->rdi);
        break;
    case INTERNAL_LANDING:
        unwind_lands(thread, (const uint8_t *)saved->rdi);
        break;
    case INTERNAL_CATCH: {
        struct push push;
        unwind_over(thread);
        thread_flight(thread)->ends = saved->rdi; /* an unwinder that was not seen to land */
        shadow_settle(thread, slot, &push);
        thread_flight(thread)->ends = 0;
        break;
    }
    case INTERNAL_LONGJMP:
        long_jump(thread, slot, saved->rdi);
        break;
    case INTERNAL_CONTEXT:
        new_context(thread, saved->rdi);
        break;
    case INTERNAL_WRITE:
    case INTERNAL_WRITEV:
        if (SHARED_LOAD(&pool->copy_output))
            write_enters(thread, saved, what == INTERNAL_WRITEV);
        hijack = internal_returns(thread, saved, (uint32_t)saved->rdi, 0, true);
        break;
    case INTERNAL_SIGACTION:
        hijack = internal_returns(thread, saved, (uint32_t)saved->rdi, keep, false);
        break;
    }
    frame_ends(thread, slot, first);
    return hijack;
}

void internal_exit(struct thread *thread, const struct shadow *entry, int64_t result, uint64_t ts)
{
    uint32_t what = ((const struct strobe_internal *)SHADOW_POINTER(entry->hook))->reserved;
    if (what == INTERNAL_WRITE || what == INTERNAL_WRITEV)
        mark_written(thread, SHADOW_EXTRA(entry->hook), UNTAG(entry->slot), result, entry->span, ts);
    else if ((int32_t)result == 0)
        sigaction_leaves(entry->span);
}

/* _Unwind_Backtrace returns, so its end is seen without touching its return address: strobe_enter_backtrace calls it from a frame of
 * its own, and hides that frame by passing this in place of the caller's function. */
struct trace { uint64_t (*step)(void *context, void *argument); void *argument; uint64_t hidden; };

__attribute__((used)) uint64_t strobe_on_trace(void *context, struct trace *trace)
{
    if (trace->hidden)
        return trace->step(context, trace->argument);
    trace->hidden = 1;
    return 0;
}

__attribute__((used)) void strobe_on_backtrace(uint64_t slot)
{
    struct thread *thread = thread_self();
    if (!thread)
        return;
    bool first = frame_begins(thread, slot);
    unwind_starts(thread, slot, 0);
    frame_ends(thread, slot, first);
}

__attribute__((used)) void strobe_on_backtrace_end(uint64_t slot)
{
    struct thread *thread = thread_self();
    if (!thread)
        return;
    bool first = frame_begins(thread, slot);
    if (thread->unwinding == slot)
        unwind_over(thread);
    if (!(thread->slow & SLOW_UNWINDING))
        unwind_rehijack(thread);
    frame_ends(thread, slot, first);
}

extern char strobe_enter_internal[], strobe_enter_backtrace[];
#define EVERYWHERE(name, what) {name, strobe_enter_internal, 1, what}
#define IN_LIBC(name, what) {name, strobe_enter_internal, 0, what}
EXPORT const struct strobe_internal strobe_internals[] = {
    EVERYWHERE("_Unwind_RaiseException", INTERNAL_UNWIND),
    EVERYWHERE("_Unwind_Resume", INTERNAL_UNWIND),
    EVERYWHERE("_Unwind_Resume_or_Rethrow", INTERNAL_UNWIND),
    EVERYWHERE("_Unwind_ForcedUnwind", INTERNAL_UNWIND),
    {"_Unwind_Backtrace", strobe_enter_backtrace, 1, INTERNAL_BACKTRACE},
    EVERYWHERE("_Unwind_SetIP", INTERNAL_LANDING),
    EVERYWHERE("__cxa_begin_catch", INTERNAL_CATCH),
    IN_LIBC("siglongjmp", INTERNAL_LONGJMP), /* longjmp and _longjmp are other names of it */
    IN_LIBC("__longjmp_chk", INTERNAL_LONGJMP),
    IN_LIBC("makecontext", INTERNAL_CONTEXT),
    IN_LIBC("write", INTERNAL_WRITE),
    IN_LIBC("writev", INTERNAL_WRITEV),
    IN_LIBC("pwrite64", INTERNAL_WRITE),
    IN_LIBC("sigaction", INTERNAL_SIGACTION), /* signal, sysv_signal and the like call it */
    IN_LIBC("pthread_sigmask", INTERNAL_MASK_SECOND),
    IN_LIBC("sigprocmask", INTERNAL_MASK_SECOND),
    IN_LIBC("sigsuspend", INTERNAL_MASK_FIRST),
    IN_LIBC("ppoll", INTERNAL_MASK_FOURTH),
    IN_LIBC("epoll_pwait", INTERNAL_MASK_FIFTH),
    IN_LIBC("pselect", INTERNAL_MASK_SIXTH),
    IN_LIBC("execve", INTERNAL_EXEC), /* the others of that name, posix_spawn, system and popen call it */
    IN_LIBC("execveat", INTERNAL_EXEC_AT),
    IN_LIBC("fexecve", INTERNAL_EXEC_FILE),
    EVERYWHERE("_dl_debug_state", INTERNAL_LOADING), /* in the dynamic linker alone */
};
EXPORT const uint32_t strobe_internals_count = sizeof strobe_internals / sizeof strobe_internals[0];
