/* Taking entries off the shadow stack whose calls have ended without returning.
 *
 * An entry is dead for certain when its slot no longer holds the exit stub (or, once restored, the real address). It is dead by position
 * when it lies further in on the thread's own stack than a call that is made or returns now. The second rule errs where other stacks
 * lie inside the native one (makecontext on a local array), so an entry that goes by it while its slot still holds the exit stub stays
 * as a ghost: if it returns after all, it returns to the right place, and the rule is given up for this thread. */
#include "recorder_lane.h"
#include "recorder_shadow.h"

#define GHOSTS_MAX 64u    /* reaped by one call; more is a longjmp for certain */

bool slot_read(const struct thread *thread, uint64_t slot, uint64_t *value)
{
    if (is_native(thread, slot)) {
        *value = *(const uint64_t *)slot;
        return true;
    }
    return read_safely(value, slot, 8) == 8;
}

void slot_write(const struct thread *thread, uint64_t slot, uint64_t value)
{
    if (is_native(thread, slot))
        *(uint64_t *)slot = value;
    else
        write_safely(slot, &value, 8);
}

void shadow_mixed(struct thread *thread, uint32_t at)
{
    if (!(thread->slow & SLOW_MIXED) || at < thread->mixed_low)
        thread->mixed_low = at;
    set_bits_own(&thread->slow, SLOW_MIXED);
}

/* True unless the entry's slot shows that its frame is gone. */
bool shadow_alive(const struct thread *thread, uint32_t at)
{
    uint64_t slot = thread->shadow[at].slot, value;
    if (TAG(slot) == TAG_MANAGED)
        return true;
    if (!slot_read(thread, UNTAG(slot), &value))
        return false;
    if (value == EXIT_STUB)
        return true;
    while (at && TAG(thread->shadow[at].slot) == TAG_TAIL && UNTAG(thread->shadow[at - 1].slot) == UNTAG(slot))
        at--;
    return at < thread->restored && value == thread->shadow[at].ret;
}

static void lower(struct thread *thread, uint32_t at)
{
    shadow_drop(thread, at);
    if (thread->restored > at)
        thread->restored = at;
    if (thread->depth <= thread->mixed_low)
        clear_bits_own(&thread->slow, SLOW_MIXED);
    if (!thread->restored)
        clear_bits_own(&thread->slow, SLOW_RESTORED);
}

/* Takes a dead entry off the top; false when it is not there (any more). The entry is claimed first: a handler that went on with another
 * stack since it was looked at may have taken it off and pushed a call of its own in its place. */
static bool lower_dead(struct thread *thread, uint32_t at)
{
    uint64_t tagged = thread->shadow[at].slot;
    if (TAG(tagged) != TAG_DEAD || at + 1 != thread->depth || !swap_own64(&thread->shadow[at].slot, tagged, 0))
        return false;
    lower(thread, at);
    thread->dead -= thread->dead > 0;
    return true;
}

/* Takes an entry out, wherever it is. It is the caller's own, or claimed. */
void shadow_remove(struct thread *thread, uint32_t at)
{
    if (at + 1 != thread->depth) {
        thread->shadow[at].slot = UNTAG(thread->shadow[at].slot) | TAG_DEAD;
        thread->dead++;
        shadow_mixed(thread, at);
        return;
    }
    lower(thread, at);
    while (at && lower_dead(thread, at - 1))
        at--;
}

static void report_unwound(struct thread *thread, const struct shadow *entry)
{
    if ((entry->hook & (SHADOW_INTERNAL | SHADOW_INHERITED)) || !SHARED_LOAD(&pool->recording))
        return;
    const struct strobe_hook *hook = (const struct strobe_hook *)SHADOW_POINTER(entry->hook);
    record_unwound(thread, hook, entry->span, thread_flight(thread)->ends);
}

void shadow_unwound(struct thread *thread, uint32_t at)
{
    struct shadow entry = thread->shadow[at];
    if (!swap_own64(&thread->shadow[at].slot, entry.slot, UNTAG(entry.slot) | TAG_BUSY)) /* a handler has dealt with it meanwhile */
        return;
    shadow_remove(thread, at);
    report_unwound(thread, &entry);
}

/* A call that ended by position. Returns how many ghosts that makes. */
static uint32_t unwound_by_position(struct thread *thread, uint32_t at, uint32_t ghosts)
{
    struct shadow *entry = &thread->shadow[at];
    if (TAG(entry->slot) != TAG_LIVE || ghosts >= GHOSTS_MAX || !shadow_alive(thread, at)) {
        shadow_unwound(thread, at);
        return 0;
    }
    if (thread->carved)
        return 0;
    entry->slot |= TAG_GHOST;
    shadow_mixed(thread, at);
    struct shadow copy = *entry;
    report_unwound(thread, &copy);
    return 1;
}

/* A call at `slot` on the thread's own stack is made or returns (then *slot is the exit stub's address): reaps what lies further in. */
void shadow_reap_native(struct thread *thread, uint64_t slot, bool holds_stub)
{
    uint32_t foreign = 0, ghosts = 0;
    for (uint32_t at = thread->depth; at-- > 0 && foreign < FOREIGN_MAX;) {
        uint64_t tagged = thread->shadow[at].slot, other = UNTAG(tagged);
        uint32_t tag = TAG(tagged);
        if (!other && tag != TAG_DEAD)
            continue;
        if (lower_dead(thread, at))
            continue;
        if (tag == TAG_DEAD || tag == TAG_BUSY || !is_native(thread, other)) {
            foreign++;
        } else if (tag == TAG_GHOST) {
            if (!shadow_alive(thread, at))
                shadow_remove(thread, at);
        } else if (other < slot || (other == slot && !holds_stub)) {
            ghosts += unwound_by_position(thread, at, ghosts);
        } else if (other == slot || shadow_alive(thread, at)) {
            break;
        } else {
            shadow_unwound(thread, at);
        }
    }
}

/* Drops every ghost and every dead entry, and those on other stacks whose frames are gone (a coroutine thrown away), keeping the order.
 * Entries move, so only while the calling frame, that of `slot`, is the one frame of the recorder in this thread. */
bool shadow_make_room(struct thread *thread, uint64_t slot)
{
    if (thread->busy != slot || thread->nested)
        return false;
    uint64_t mask = signals_off();
    uint32_t from = thread->slow & SLOW_MIXED ? thread->mixed_low : thread->depth, to = from, below = 0;
    for (uint32_t at = from; at < thread->depth; at++) {
        struct shadow *entry = &thread->shadow[at];
        bool gone = !is_call(entry->slot) || (!is_native(thread, UNTAG(entry->slot)) && !shadow_alive(thread, at));
        if (gone && is_call(entry->slot))
            report_unwound(thread, entry);
        below += gone && at < thread->restored;
        if (!gone)
            thread->shadow[to++] = *entry;
    }
    for (uint32_t at = to; at < thread->depth; at++)
        thread->shadow[at].slot = 0;
    thread->depth = to;
    thread->restored -= below;
    thread->dead = 0;
    if (thread->depth <= thread->mixed_low)
        clear_bits_own(&thread->slow, SLOW_MIXED);
    signals_back(mask);
    return thread->depth + 8 < thread->capacity;
}

/* Ends all calls with slots in [low, high), which are on one stack. */
void shadow_reap(struct thread *thread, uint64_t low, uint64_t high)
{
    uint32_t others = 0;
    for (uint32_t at = thread->depth; at-- > 0 && others < 4096;) {
        uint64_t tagged = thread->shadow[at].slot, slot = UNTAG(tagged);
        if (tagged && TAG(tagged) != TAG_DEAD && TAG(tagged) != TAG_BUSY && slot >= low && slot < high) {
            if (TAG(tagged) == TAG_GHOST)
                shadow_remove(thread, at);
            else
                shadow_unwound(thread, at);
        } else if (is_call(tagged) && is_native(thread, slot) && is_native(thread, low) && slot >= high && !thread->carved) {
            break;
        } else {
            others++;
        }
    }
}

