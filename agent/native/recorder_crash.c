/* What the kernel says when the target dies of a signal: registers, siginfo, the top of the stack and the memory map go to a page of the
 * pool, then the signal is let through with its default action, so that status and core are those of a run without the recorder. */
#include "recorder_faults.h"
#include "recorder_lane.h"
#include "recorder_shadow.h"

#define SA_FLAGS 0x0c000004ull /* SIGINFO ONSTACK RESTORER; the handler runs once, then the action is the default's */
#define TRAP_SIGNAL 5
#define SCAN_WORDS 1024u /* of the stack that are looked at for an exception: 1 us each */

extern char strobe_signal_return[];

uint32_t armed;
const int crash_signals[] = {11 /* SEGV */, 7 /* BUS */, 8 /* FPE */, 4 /* ILL */, 6 /* ABRT */, TRAP_SIGNAL, 31 /* SYS */};
const uint32_t crash_signals_count = sizeof crash_signals / sizeof crash_signals[0];

int64_t signal_action(int signo, const struct kernel_action *new, struct kernel_action *old)
{
    return system_call(CALL_SIGACTION, (uint64_t)signo, (uint64_t)new, (uint64_t)old, 8, 0, 0);
}

/* The page below the stack pointer may not be there (a stack that overflowed): then the copy starts where the stack does. */
static void save_stack(struct lane_crash *page, uint64_t rsp)
{
    uint8_t *to = (uint8_t *)page + LANE_CRASH_STACK_OFFSET;
    uint64_t from = rsp - 256, got = read_safely(to, from, LANE_CRASH_STACK_BYTES);
    for (uint32_t tries = 0; !got && tries < 2; tries++) {
        from = (from | 4095) + 1;
        got = read_safely(to, from, LANE_CRASH_STACK_BYTES);
    }
    page->stack_base = from;
    page->stack_bytes = (uint32_t)got;
}

static void save_maps(struct lane_crash *page)
{
    uint8_t *to = (uint8_t *)page + LANE_CRASH_MAPS_OFFSET;
    int64_t file = system_call(CALL_OPEN, (uint64_t) "/proc/self/maps", 02000000, 0, 0, 0, 0), got = 1;
    while (file >= 0 && got > 0 && page->maps_bytes < LANE_CRASH_MAPS_BYTES) {
        got = system_call(CALL_READ, (uint64_t)file, (uint64_t)to + page->maps_bytes, LANE_CRASH_MAPS_BYTES - page->maps_bytes, 0, 0, 0);
        page->maps_bytes += got > 0 ? (uint32_t)got : 0;
    }
    system_call(CALL_CLOSE, (uint64_t)file, 0, 0, 0, 0, 0);
}

static void save_crash(struct lane_crash *page, int signo, const int32_t *info, const uint64_t *regs, uint64_t ts)
{
    page->signo = signo;
    page->code = info[2];
    page->pid = (uint32_t)my_pid();
    page->tid = (uint32_t)my_tid();
    page->address = *(const uint64_t *)&info[4];
    page->sender_pid = info[2] <= 0 ? (uint32_t)info[4] : 0;
    page->ts = ts;
    page->maps_bytes = page->exception_bytes = 0;
    copy_bytes(page->regs, regs, sizeof page->regs);
    system_call(CALL_PRCTL, 16 /* PR_GET_NAME */, (uint64_t)page->comm, 0, 0, 0, 0);
    struct thread *thread = thread_known();
    page->span = 0;
    if (thread) { /* the saved stack, and the core's, shall show where the frames return to */
        page->span = shadow_innermost(thread);
        unwind_restore(thread);
    }
    save_stack(page, regs[15]);
    save_maps(page);
    uint32_t words = page->stack_bytes / 8;
    page->exception_bytes = exception_on_stack((const uint64_t *)((uint8_t *)page + LANE_CRASH_STACK_OFFSET), words < SCAN_WORDS ? words : SCAN_WORDS,
                                               (uint8_t *)page + LANE_CRASH_EXCEPTION_OFFSET);
    SHARED_STORE(&page->state, 2);
}

/* Faults happen again when the handler returns. What was sent, and traps, whose instruction is over, are queued anew with their own siginfo. */
static bool happens_again(int signo, int32_t code)
{
    return code > 0 && signo != TRAP_SIGNAL && signo != 31 && signo != 6 && !(signo == 7 && code == 5 /* BUS_MCEERR_AO */);
}

/* A free page, looked for from the `from`th on; NULL when all are in use. */
static struct lane_crash *claim_page(uint32_t from)
{
    for (uint32_t i = 0; i < pool->crash_count; i++) {
        uint64_t offset = (uint64_t)((from + i) % pool->crash_count) * LANE_CRASH_BYTES;
        struct lane_crash *page = (struct lane_crash *)((uint8_t *)pool + pool->crash_offset + offset);
        uint32_t expected = 0;
        if (__atomic_compare_exchange_n(&page->state, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return page;
    }
    return NULL;
}

void crash_handler(int signo, void *info, void *context)
{
    const struct kernel_action fallback = {0};
    if (fault_fixed(signo, info, context))
        return;
    struct lane_crash *page = claim_page(SHARED_ADD(&pool->crash_next, 1));
    if (page)
        save_crash(page, signo, info, (const uint64_t *)((uint8_t *)context + 40), now());
    signal_action(signo, &fallback, NULL);
    if (!happens_again(signo, ((const int32_t *)info)[2]))
        system_call(CALL_TGSIGQUEUEINFO, (uint64_t)my_pid(), (uint64_t)my_tid(), (uint64_t)signo, (uint64_t)info, 0, 0);
}

/* Gives the thread an alternate signal stack if it has none: without one a stack overflow leaves no record. */
void crash_altstack(uint8_t *memory)
{
    struct { uint8_t *base; int32_t flags, gap; uint64_t bytes; } now_set, wanted = {memory, 0, 0, ALTSTACK_BYTES};
    if (!system_call(CALL_SIGALTSTACK, 0, (uint64_t)&now_set, 0, 0, 0, 0) && (now_set.flags & 2 /* SS_DISABLE */))
        system_call(CALL_SIGALTSTACK, (uint64_t)&wanted, 0, 0, 0, 0, 0);
}

/* Handlers there already: whether faults are blocked while one runs. */
static void learn_masks(void)
{
    struct kernel_action found;
    for (int signo = 1; signo <= 64; signo++)
        if (!signal_action(signo, NULL, &found) && found.handler > 1 && (found.mask & FAULT_MASK) && !is_fault(signo) && found.handler != (uint64_t)crash_handler)
            faults_masked(NULL);
}

EXPORT int strobe_arm(void)
{
    if (!pool)
        return -22;
    const struct kernel_action ours = {(uint64_t)crash_handler, SA_FLAGS, (uint64_t)strobe_signal_return, ~0ull};
    struct kernel_action found;
    learn_masks();
    faults_learn();
    for (uint32_t i = 0; i < crash_signals_count; i++) {
        int64_t failed = signal_action(crash_signals[i], NULL, &found);
        if (!failed && is_fault(crash_signals[i]))
            failed = faults_arm(crash_signals[i], &found, &ours);
        else if (!failed && !found.handler)
            failed = signal_action(crash_signals[i], &ours, NULL);
        if (failed)
            return (int)failed;
    }
    armed = 1;
    struct { uint64_t base; int32_t flags, gap; uint64_t bytes; } stack;
    if (system_call(CALL_SIGALTSTACK, 0, (uint64_t)&stack, 0, 0, 0, 0) || !(stack.flags & 2))
        return 0;
    uint8_t *memory = map_private(4096 + ALTSTACK_BYTES);
    if (!memory)
        return -12;
    system_call(CALL_MPROTECT, (uint64_t)memory, 4096, 0, 0, 0, 0);
    crash_altstack(memory + 4096);
    return 0;
}
