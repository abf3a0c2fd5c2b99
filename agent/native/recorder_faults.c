/* Reading memory that may not be there. A system call that reads costs 900 ns, so memory is read with plain loads where a fault in them can be
 * caught: SIGSEGV and SIGBUS whose instruction lies in recorder_copy.S go on behind the copy, and nobody sees them (but a debugger that traces
 * the process by ptrace: it has to pass them on). That is right only while
 *
 *   - the kernel calls the recorder's gate for both signals. A handler of the program's own is called through the gate: the kernel has its
 *     flags and mask, and SA_SIGINFO, without which it does not say what the fault was (arch/x86/kernel/signal_64.c); the gate jumps to it
 *     (sigaction is patched, recorder_signals.c). While the program ignores one of them, or has a handler
 *     for one fault alone (SA_RESETHAND), reading is slow. Now and then the kernel is asked, because a handler may have been installed by a
 *     system call of the program's own; where libc could not be patched (a program linked statically), at each event;
 *   - neither is blocked in the thread: the kernel ends a process that faults so. The mask is known when a thread is first seen. A thread that
 *     blocks them is asked from then on at each event, and so are all when the program has a handler during which they are blocked;
 *   - there is stack for the signal's frame: the thread's own, or an alternate one that is not in use.
 *
 * Where one of these does not hold, reading is done by process_vm_readv. */
#include "recorder_faults.h"
#include "recorder_shadow.h"

#define SURE_EVENTS 1024u
#define FRAME_ROOM (32u << 10) /* a signal's frame is 3.5 KiB with AVX-512, 11 with AMX */
#define UNIT_BLOCK 256u
#define SEGV 11
#define BUS 7
#define FLAG_RESETHAND 0x80000000ull
#define CONTEXT_RIP (5 + 16) /* words: uc_flags, uc_link and uc_stack, then gregset_t */
#define CONTEXT_R8 5
#define APART (uint32_t)(FAULTS_SEGV_APART | FAULTS_BUS_APART)
#define CONTEXT_RSI (5 + 9)

uint32_t faults_ours = FAULTS_UNBLOCKED;
static uint64_t handlers[2]; /* the program's, for SIGSEGV and SIGBUS; 0: none */
static bool plain[2];        /* they were installed without SA_SIGINFO */
static uint32_t mask_doubts; /* a thread has DOUBT_MASK */
extern const int32_t strobe_fault_table[3][3];

static uint32_t index_of(int signo) { return signo == BUS; }
static uint32_t bits_of(int signo) { return signo == BUS ? FAULTS_BUS | FAULTS_BUS_APART : FAULTS_SEGV | FAULTS_SEGV_APART; }

/* A load faulted `got` bytes behind `from`. */
NOINLINE uint64_t read_short(struct source *source, uint64_t from, uint64_t got)
{
    uint64_t page = 1ull << ((from + got) >> 12 & 63);
    source->faults->bad |= page;
    source->avoid |= page;
    return got;
}

/* Memory that lasts for the target's life, and the used part of the thread's own stack, can be read as they are. */
NOINLINE uint64_t read_slowly(struct source *source, void *to, uint64_t from, uint64_t bytes)
{
    if (lasting_bytes(source->thread, from) >= bytes)
        return strobe_copy(to, from, bytes);
    uint64_t got = read_safely(to, from, bytes);
    if (got == bytes)
        source->faults->bad &= ~(1ull << (from >> 12 & 63));
    return got;
}

/* Bytes up to and with the first 0 of `unit` bytes; 0 when there is none. */
static uint64_t units_end(const uint8_t *text, uint64_t bytes, uint32_t unit)
{
    for (uint64_t at = 0; at + unit <= bytes; at += unit) {
        uint8_t any = 0;
        for (uint32_t i = 0; i < unit; i++)
            any |= text[at + i];
        if (!any)
            return at + unit;
    }
    return 0;
}

struct text read_units(struct source *source, uint8_t *to, uint64_t from, uint64_t most, uint32_t unit)
{
    uint64_t done = 0;
    while (done < most) {
        uint64_t take = most - done < UNIT_BLOCK ? most - done : UNIT_BLOCK;
        uint64_t got = read_bytes(source, to + done, from + done, take), end = units_end(to + done, got, unit);
        if (end)
            return (struct text){done + end, TEXT_END};
        done += got;
        if (got < take)
            return (struct text){done, TEXT_FAULT};
    }
    return (struct text){done, TEXT_LIMIT};
}

/* The copy that faulted goes on behind its loads. False: it is another's fault. */
bool fault_fixed(int signo, const int32_t *info, uint64_t *context)
{
    const uint8_t *table = (const uint8_t *)strobe_fault_table;
    int32_t code = info[2];
    if ((signo != SEGV && signo != BUS) || code <= 0 || (signo == BUS && code == 5 /* BUS_MCEERR_AO */))
        return false;
    for (uint32_t i = 0; i < 3; i++) {
        const int32_t *row = strobe_fault_table[i];
        uint64_t rip = context[CONTEXT_RIP];
        if (rip < (uint64_t)(table + row[0]) || rip >= (uint64_t)(table + row[1]))
            continue;
        uint64_t place = *(const uint64_t *)&info[4] & ~4095ull, next = context[CONTEXT_RSI] + context[CONTEXT_R8];
        bool at_once = i == 0 && (code <= 2 /* MAPERR, ACCERR: with an address */ || signo == BUS) && place <= next;
        context[CONTEXT_RIP] = (uint64_t)(table + strobe_fault_table[at_once ? 1 : i][2]);
        return true;
    }
    return false;
}

/* Called by the gate. The handler that goes on with the signal; 0 when it is dealt with. */
__attribute__((used)) uint64_t strobe_on_fault(int signo, const int32_t *info, uint64_t *context)
{
    if (fault_fixed(signo, info, context))
        return 0;
    uint64_t handler = SHARED_LOAD(&handlers[index_of(signo)]);
    if (!handler)
        return (uint64_t)crash_handler;
    faults_masked(thread_known()); /* until it returns, or for longer if it does not */
    return handler;
}

/* In this thread (NULL: who knows in which) one of the signals is blocked. A context made elsewhere may bring its mask to any thread. */
void faults_masked(struct thread *thread)
{
    if (thread)
        thread->doubt |= DOUBT_MASK;
    mask_doubts = 1;
    if (!thread || contexts_used())
        __atomic_fetch_and(&faults_ours, ~FAULTS_UNBLOCKED, __ATOMIC_ACQ_REL);
}

void faults_contexts(uint64_t mask)
{
    if (mask_doubts || (mask & FAULT_MASK))
        __atomic_fetch_and(&faults_ours, ~FAULTS_UNBLOCKED, __ATOMIC_ACQ_REL);
}

struct kernel_stack { uint64_t base; int32_t flags, gap; uint64_t bytes; };

/* Whose the kernel's handlers are. A program can change them by a system call of its own; then reading is slow for good. */
static bool actions_hold(const struct thread *thread)
{
    static const int signals[] = {SEGV, BUS};
    for (uint32_t i = 0; i < 2; i++) {
        struct kernel_action found;
        bool ours = !system_call(CALL_SIGACTION, (uint64_t)signals[i], 0, (uint64_t)&found, 8, 0, 0) &&
            (found.handler == (uint64_t)strobe_fault_gate || found.handler == (uint64_t)crash_handler);
        if (ours)
            continue;
        if (!(thread->doubt & DOUBT_ACTION))
            __atomic_fetch_and(&faults_ours, ~bits_of(signals[i]), __ATOMIC_ACQ_REL);
        return false;
    }
    return true;
}

/* There is room for a signal's frame, wherever the kernel puts it. */
static bool stack_suffices(struct thread *thread)
{
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    struct kernel_stack stack = {0, 2 /* SS_DISABLE */, 0, 0};
    system_call(CALL_SIGALTSTACK, 0, (uint64_t)&stack, 0, 0, 0, 0);
    if (stack.flags & 1 /* SS_ONSTACK */)
        return here - stack.base > FRAME_ROOM && here - stack.base < stack.bytes;
    if (stack.flags & 2) {
        crash_altstack(thread->scratch - ALTSTACK_BYTES);
    } else if (is_native(thread, stack.base)) {
        thread->doubt |= DOUBT_STACK;
    }
    if ((faults_ours & APART) == APART)
        return true;
    return is_native(thread, here) && here - thread->native_low > FRAME_ROOM;
}

/* The long way to an answer. */
NOINLINE bool faults_ask(struct thread *thread, struct faults *faults)
{
    uint32_t ours = SHARED_LOAD(&faults_ours);
    if ((ours & (FAULTS_SEGV | FAULTS_BUS)) != (FAULTS_SEGV | FAULTS_BUS))
        return false;
    bool hooked = ours & FAULTS_HOOKED, first = !faults->sure;
    faults->sure = first ? SURE_EVENTS : faults->sure - 1;
    if (first)
        faults->bad = 0;
    if ((first || !hooked || (thread->doubt & DOUBT_ACTION)) && !actions_hold(thread))
        return false;
    if (!hooked || !(ours & FAULTS_UNBLOCKED) || (thread->doubt & DOUBT_MASK)) {
        uint64_t mask = FAULT_MASK;
        if (system_call(CALL_SIGPROCMASK, 0, 0, (uint64_t)&mask, 8, 0, 0) || (mask & FAULT_MASK))
            return false;
    }
    bool usual = (ours & APART) == APART && !(thread->doubt & DOUBT_STACK) && is_native(thread, (uint64_t)__builtin_frame_address(0));
    return (usual && !first) || stack_suffices(thread);
}

static void forward(int signo, uint64_t handler, uint64_t flags)
{
    SHARED_STORE(&handlers[index_of(signo)], handler);
    plain[index_of(signo)] = !(flags & FLAG_SIGINFO);
    if (!(flags & FLAG_ONSTACK))
        __atomic_fetch_and(&faults_ours, ~(bits_of(signo) & APART), __ATOMIC_ACQ_REL);
}

/* The program's sigaction for one of the two is to be made: `wanted` is the handler, 0 for the default. True when the kernel gets the gate. */
bool fault_action_changes(struct thread *thread, int signo, uint64_t wanted, uint64_t flags)
{
    if (in_vforked_child()) { /* a table of its own, but our memory is its parent's */
        thread->doubt |= wanted ? DOUBT_ACTION : 0;
        return false;
    }
    bool gate = wanted != 1 /* SIG_IGN */ && !(flags & FLAG_RESETHAND);
    if (!gate)
        __atomic_fetch_and(&faults_ours, ~bits_of(signo), __ATOMIC_ACQ_REL);
    forward(signo, gate ? wanted : 0, flags);
    return gate;
}

/* strobe_arm(): the thunks are written. */
void faults_learn(void)
{
    if (internal_is_in(INTERNAL_SIGACTION) && internal_is_in(INTERNAL_MASK_SECOND))
        __atomic_fetch_or(&faults_ours, FAULTS_HOOKED, __ATOMIC_ACQ_REL);
}

/* The program sets an action that cannot be looked at. */
void faults_unseen(void) { __atomic_fetch_and(&faults_ours, ~(FAULTS_SEGV | FAULTS_BUS), __ATOMIC_ACQ_REL); }

/* The kernel's action is the gate now. */
void faults_gated(int signo, uint64_t flags)
{
    uint32_t apart = flags & FLAG_ONSTACK ? APART : 0;
    __atomic_fetch_or(&faults_ours, bits_of(signo) & (FAULTS_SEGV | FAULTS_BUS | apart), __ATOMIC_ACQ_REL);
}

bool fault_handler_is_plain(int signo) { return is_fault(signo) && plain[index_of(signo)]; }

uint64_t fault_handler_of(int signo) { return is_fault(signo) ? SHARED_LOAD(&handlers[index_of(signo)]) : 0; }

/* strobe_arm(): `found` is what the kernel has, `ours` what it gets where there is no handler. Answers -errno. */
int64_t faults_arm(int signo, const struct kernel_action *found, const struct kernel_action *ours)
{
    bool none = !found->handler || found->handler == (uint64_t)crash_handler;
    struct kernel_action made = none ? *ours : *found;
    if (found->handler == 1 || (found->flags & FLAG_RESETHAND) || found->handler == (uint64_t)strobe_fault_gate)
        return 0;
    made.handler = (uint64_t)strobe_fault_gate;
    forward(signo, none ? 0 : found->handler, made.flags);
    made.flags |= FLAG_SIGINFO;
    int64_t failed = signal_action(signo, &made, NULL);
    if (!failed)
        faults_gated(signo, made.flags);
    return failed;
}
