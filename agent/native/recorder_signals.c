/* Keeps the recorder's handlers out of the program's sight: what it asks and sets through libc's sigaction is what it would be without them.
 * The kernel's own table is the only state but for the handlers behind the gate (recorder_faults.c), so children that share memory but not
 * signal actions (posix_spawn) disturb nothing. And notes when faults may be blocked: while a handler runs, in a thread, while one waits. */
#include "recorder_faults.h"

/* struct sigaction of glibc and musl. libc adds its own restorer. */
struct libc_action { uint64_t handler, mask[16]; int32_t flags, gap; uint64_t restorer; };

/* One call of sigaction under way: the action it is given in place of the program's, and what is needed when it returns. */
struct action_call { struct libc_action made; uint64_t before, old; int32_t signo; bool gates, before_plain; };
#define CALLS 16u
struct action_calls { uint32_t next, gap; struct action_call calls[CALLS]; };
_Static_assert(GAPS * sizeof(struct gap) + sizeof(struct flight) + sizeof(struct action_calls) + WRITES_BYTES <= GAPS_BYTES, "all lie in the thread's page");

static const struct libc_action ours = {(uint64_t)0, {[0 ... 15] = ~0ull}, 0x08000004 /* SIGINFO ONSTACK */, 0, 0};

static bool is_crash(int signo)
{
    for (uint32_t i = 0; i < crash_signals_count; i++)
        if (signo == crash_signals[i])
            return true;
    return false;
}

/* One that no other call under way in this thread uses, unless sixteen do. */
static struct action_call *call_new(struct thread *thread, int signo)
{
    struct action_calls *calls = (struct action_calls *)(thread_flight(thread) + 1);
    struct action_call *call = &calls->calls[add_own32(&calls->next, 1) % CALLS];
    call->signo = signo;
    call->gates = false;
    call->before = fault_handler_of(signo);
    call->before_plain = fault_handler_is_plain(signo);
    return call;
}

/* The program's action for `made`, read from where it is. Handlers it was once told in error stand for what they are. */
static bool action_read(struct libc_action *made, uint64_t from, int signo)
{
    if (read_safely(made, from, sizeof *made) < sizeof *made)
        return false;
    if (made->handler == (uint64_t)strobe_fault_gate)
        made->handler = fault_handler_of(signo);
    if (made->handler == (uint64_t)crash_handler)
        made->handler = 0;
    return true;
}

/* Default becomes our handler, a handler for a fault the gate's. Returns true when the result has to be looked at; `keep` is for then. */
bool sigaction_enters(struct thread *thread, struct saved *saved, uint64_t *keep)
{
    int signo = (int)saved->rdi;
    struct action_call *call = call_new(thread, signo);
    struct libc_action *made = &call->made;
    bool changes = saved->rsi && action_read(made, saved->rsi, signo);
    if (changes && made->handler > 1 && (made->mask[0] & FAULT_MASK) && !is_fault(signo))
        faults_masked(NULL);
    if (!armed || !is_crash(signo))
        return false;
    call->old = saved->rdx;
    *keep = (uint64_t)call;
    if (!changes)
        return saved->rdx != 0;
    uint64_t wanted = made->handler;
    if (!wanted) {
        *made = ours;
        made->handler = (uint64_t)crash_handler;
    }
    if (is_fault(signo) && (call->gates = fault_action_changes(thread, signo, wanted, (uint32_t)made->flags)))
        made->handler = (uint64_t)strobe_fault_gate, made->flags |= FLAG_SIGINFO;
    if (!wanted || call->gates)
        saved->rsi = (uint64_t)made;
    return saved->rdx != 0 || call->gates;
}

/* It succeeded. Our handler is reported as the default, whose flags and mask mean nothing and are reported as 0; the gate as what is behind it. */
void sigaction_leaves(uint64_t keep)
{
    struct action_call *call = (struct action_call *)keep;
    struct libc_action *old = (struct libc_action *)call->old;
    const struct libc_action none = {0};
    if (call->gates)
        faults_gated(call->signo, (uint32_t)call->made.flags);
    if (old && old->handler == (uint64_t)strobe_fault_gate && call->before) {
        old->handler = call->before;
        if (call->before_plain) old->flags &= ~FLAG_SIGINFO;
    } else if (old && (old->handler == (uint64_t)crash_handler || old->handler == (uint64_t)strobe_fault_gate))
        copy_bytes(old, &none, sizeof none);
}

/* A call that blocks signals in this thread, or does while it waits and handlers run. A thread that is not known yet is looked at when it is. */
void mask_enters(const struct saved *saved, uint32_t what)
{
    uint64_t sets[] = {saved->rsi, saved->rdi, saved->rcx, saved->r8, saved->r9}, set = sets[what - INTERNAL_MASK_SECOND], mask = 0;
    if (!set || (what == INTERNAL_MASK_SECOND && (int)saved->rdi == 1 /* SIG_UNBLOCK */))
        return;
    struct faults faults = {0};
    struct source source = {NULL, &faults, (faults_ours & (FAULTS_SEGV | FAULTS_BUS)) == (FAULTS_SEGV | FAULTS_BUS) ? 0 : ~0ull};
    struct thread *thread = thread_known();
    if (thread && read_bytes(&source, &mask, set, 8) == 8 && (mask & FAULT_MASK))
        faults_masked(thread);
}
