/* Reading the target's memory where it may not be there, at the speed of copying: see recorder_faults.c. */
#ifndef STROBE_RECORDER_FAULTS_H
#define STROBE_RECORDER_FAULTS_H
#include "recorder_state.h"

#pragma GCC visibility push(hidden)

#define FLAG_SIGINFO 0x00000004u
#define FLAG_ONSTACK 0x08000000u

/* What is kept from event to event in each block of scratch memory. `sure`: events until the kernel is asked again whose its handlers are; `bad`:
 * pages where a load faulted of late, a bit for each page number modulo 64: a fault takes longer than the system call that is made there then. */
struct faults { uint64_t bad; uint32_t sure; };

/* How this event reads: with loads that may fault, but on the pages in `avoid` (as `bad`): on none when a fault would not be caught. */
struct source { const struct thread *thread; struct faults *faults; uint64_t avoid; };

INLINE bool may_load(const struct source *source, uint64_t address) { return !(source->avoid >> (address >> 12 & 63) & 1); }

enum text_why { TEXT_END, TEXT_LIMIT, TEXT_FAULT };
struct text { uint64_t bytes; uint64_t why; };

/* recorder_copy.S. Bytes copied, up to the first that is not there. Only while faults are caught. The text ends with its 0, which is counted. */
uint64_t strobe_copy(void *to, uint64_t from, uint64_t bytes);
struct text strobe_copy_text(void *to, uint64_t from, uint64_t most);
extern char strobe_fault_gate[];

uint64_t read_slowly(struct source *source, void *to, uint64_t from, uint64_t bytes);
struct text read_units(struct source *source, uint8_t *to, uint64_t from, uint64_t most, uint32_t unit);

uint64_t read_short(struct source *source, uint64_t from, uint64_t got);

INLINE uint64_t read_bytes(struct source *source, void *to, uint64_t from, uint64_t bytes)
{
    if (UNLIKELY(!may_load(source, from)))
        return read_slowly(source, to, from, bytes);
    uint64_t got = strobe_copy(to, from, bytes);
    return LIKELY(got == bytes) ? got : read_short(source, from, got);
}

/* Characters of `unit` bytes up to the first 0, which is counted; at most `most` bytes. What lies behind them in `to` is changed too. */
INLINE struct text read_text(struct source *source, uint8_t *to, uint64_t from, uint64_t most, uint32_t unit)
{
    if (UNLIKELY(unit != 1 || !may_load(source, from)))
        return read_units(source, to, from, most, unit);
    struct text text = strobe_copy_text(to, from, most);
    if (UNLIKELY(text.why == TEXT_FAULT))
        read_short(source, from, text.bytes);
    return text;
}

enum { /* bits of faults_ours */
    FAULTS_SEGV = 1, FAULTS_BUS = 2,                 /* the kernel calls the recorder first */
    FAULTS_SEGV_APART = 4, FAULTS_BUS_APART = 8,     /* on the alternate signal stack */
    FAULTS_UNBLOCKED = 16,                           /* no reason to think that they are blocked in a thread without DOUBT_MASK */
    FAULTS_HOOKED = 32,                              /* what the program changes of that through libc is seen */
    FAULTS_SURE = 63,
};
enum { DOUBT_MASK = 1, DOUBT_STACK = 2, DOUBT_ACTION = 4 }; /* bits of thread.doubt: what has to be asked at each event */
#define FAULT_MASK (1ull << 10 | 1ull << 6) /* SIGSEGV and SIGBUS in a kernel signal set */

extern uint32_t faults_ours;
bool faults_ask(struct thread *thread, struct faults *faults);

/* True when a load in this thread may fault here and now. */
INLINE bool faults_caught(struct thread *thread, struct faults *faults)
{
    bool usual = faults_ours == FAULTS_SURE && !thread->doubt && faults->sure && is_native(thread, (uint64_t)__builtin_frame_address(0));
    if (UNLIKELY(!usual))
        return faults_ask(thread, faults);
    faults->sure--;
    return true;
}

/* recorder_faults.c, for recorder_crash.c, recorder_signals.c, recorder_thread.c and recorder_unwind.c */
bool fault_fixed(int signo, const int32_t *info, uint64_t *context);
int64_t faults_arm(int signo, const struct kernel_action *found, const struct kernel_action *ours);
bool fault_action_changes(struct thread *thread, int signo, uint64_t wanted, uint64_t flags);
void faults_learn(void);
void faults_unseen(void);
void faults_gated(int signo, uint64_t flags);
uint64_t fault_handler_of(int signo);
bool fault_handler_is_plain(int signo);
void faults_masked(struct thread *thread);
void faults_contexts(uint64_t mask);
INLINE bool is_fault(int signo) { return signo == 11 /* SIGSEGV */ || signo == 7 /* SIGBUS */; }
#pragma GCC visibility pop
#endif
