/* Keeps the crash handlers out of the program's sight: what it asks and sets through libc's sigaction is what it would be without them.
 * The kernel's own table is the only state, so children that share memory but not signal actions (posix_spawn) disturb nothing. */
#include "recorder_state.h"

/* struct sigaction of glibc. libc adds its own restorer. */
struct libc_action { uint64_t handler, mask[16]; int32_t flags, gap; uint64_t restorer; };

static const struct libc_action ours = {(uint64_t)0, {[0 ... 15] = ~0ull}, 0x08000004 /* SIGINFO ONSTACK */, 0, 0};
static struct libc_action stand_in;

/* Default becomes our handler. Returns true when the result has to be looked at. `keep` is where the old action will be. */
bool sigaction_enters(struct saved *saved, uint64_t *keep)
{
    bool mine = false;
    uint64_t handler = 1;
    for (uint32_t i = 0; i < crash_signals_count; i++)
        mine |= (int)saved->rdi == crash_signals[i];
    if (!mine || !armed)
        return false;
    if (saved->rsi && read_safely(&handler, saved->rsi, 8) == 8 && !handler) {
        if (!stand_in.handler) {
            struct libc_action made = ours;
            made.handler = (uint64_t)crash_handler;
            stand_in = made;
        }
        saved->rsi = (uint64_t)&stand_in;
    }
    *keep = saved->rdx;
    return saved->rdx != 0;
}

/* Our handler is reported as the default. Flags and mask set along with a default action mean nothing and are reported as 0. */
void sigaction_leaves(uint64_t keep)
{
    struct libc_action *old = (struct libc_action *)keep;
    if (old->handler != (uint64_t)crash_handler)
        return;
    const struct libc_action none = {0};
    copy_bytes(old, &none, sizeof none);
}
