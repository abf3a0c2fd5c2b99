/* The shadow stack off the short path: calls that ended without returning, tail calls, other stacks, returns out of order.
 *
 * An entry is dead for certain when its slot no longer holds the exit stub (or, once restored, the real address). It is dead by position
 * when it lies further in on the thread's own stack than a call that is made or returns now. The second rule errs where other stacks
 * lie inside the native one (makecontext on a local array), so an entry that goes by it while its slot still holds the exit stub stays
 * as a ghost: if it returns after all, it returns to the right place, and the rule is given up for this thread. */
#include "recorder_lane.h"

#define GHOSTS_MAX 64u    /* reaped by one call; more is a longjmp for certain */
#define FOREIGN_MAX 256u  /* entries on other stacks looked at by one call */

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

static bool is_call(uint64_t slot)
{
    uint32_t tag = TAG(slot);
    return slot && (tag == TAG_LIVE || tag == TAG_TAIL || tag == TAG_MANAGED);
}

/* True unless the entry's slot shows that its frame is gone. */
static bool is_alive(const struct thread *thread, uint32_t at)
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

/* Takes an entry out, wherever it is. */
void shadow_remove(struct thread *thread, uint32_t at)
{
    if (at + 1 != thread->depth) {
        thread->shadow[at].slot = UNTAG(thread->shadow[at].slot) | TAG_DEAD;
        thread->dead++;
        shadow_mixed(thread, at);
        return;
    }
    lower(thread, at);
    while (at && thread->depth == at && TAG(thread->shadow[at - 1].slot) == TAG_DEAD && thread->shadow[at - 1].slot) {
        lower(thread, --at);
        thread->dead -= thread->dead > 0;
    }
}

static void report_unwound(struct thread *thread, const struct shadow *entry)
{
    if ((entry->hook & (SHADOW_INTERNAL | SHADOW_INHERITED)) || !SHARED_LOAD(&pool->recording))
        return;
    const struct strobe_hook *hook = (const struct strobe_hook *)SHADOW_POINTER(entry->hook);
    record_plain(thread, hook->id, hook->shared, LANE_KIND_UNWIND, entry->span, 0, now());
}

static void unwound(struct thread *thread, uint32_t at)
{
    struct shadow entry = thread->shadow[at];
    shadow_remove(thread, at);
    report_unwound(thread, &entry);
}

/* A call that ended by position. Returns how many ghosts that makes. */
static uint32_t unwound_by_position(struct thread *thread, uint32_t at, uint32_t ghosts)
{
    struct shadow *entry = &thread->shadow[at];
    if (TAG(entry->slot) != TAG_LIVE || ghosts >= GHOSTS_MAX || !is_alive(thread, at)) {
        unwound(thread, at);
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
static void reap_native(struct thread *thread, uint64_t slot, bool holds_stub)
{
    uint32_t foreign = 0, ghosts = 0;
    for (uint32_t at = thread->depth; at-- > 0 && foreign < FOREIGN_MAX;) {
        uint64_t tagged = thread->shadow[at].slot, other = UNTAG(tagged);
        uint32_t tag = TAG(tagged);
        if (!other && tag != TAG_DEAD)
            continue;
        if (tag == TAG_DEAD && at + 1 == thread->depth) {
            lower(thread, at);
            thread->dead -= thread->dead > 0;
        } else if (tag == TAG_DEAD || tag == TAG_BUSY || !is_native(thread, other)) {
            foreign++;
        } else if (tag == TAG_GHOST) {
            if (!is_alive(thread, at))
                shadow_remove(thread, at);
        } else if (other < slot || (other == slot && !holds_stub)) {
            ghosts += unwound_by_position(thread, at, ghosts);
        } else if (other == slot || is_alive(thread, at)) {
            break;
        } else {
            unwound(thread, at);
        }
    }
}

/* Drops every ghost and every dead entry, and those on other stacks whose frames are gone (a coroutine thrown away), keeping the order.
 * Not while a frame of the recorder that was interrupted is about to finish an entry. */
bool shadow_make_room(struct thread *thread)
{
    uint64_t mask = signals_off();
    uint32_t from = thread->slow & SLOW_MIXED ? thread->mixed_low : thread->depth, to = from, below = 0;
    bool busy = false;
    for (uint32_t at = from; at < thread->depth; at++)
        busy |= !thread->shadow[at].slot || TAG(thread->shadow[at].slot) == TAG_BUSY;
    for (uint32_t at = from; !busy && at < thread->depth; at++) {
        struct shadow *entry = &thread->shadow[at];
        bool gone = !is_call(entry->slot) || (!is_native(thread, UNTAG(entry->slot)) && !is_alive(thread, at));
        if (gone && is_call(entry->slot))
            report_unwound(thread, entry);
        below += gone && at < thread->restored;
        if (!gone)
            thread->shadow[to++] = *entry;
    }
    if (!busy) {
        for (uint32_t at = to; at < thread->depth; at++)
            thread->shadow[at].slot = 0;
        thread->depth = to;
        thread->restored -= below;
        thread->dead = 0;
        if (thread->depth <= thread->mixed_low)
            clear_bits_own(&thread->slow, SLOW_MIXED);
    }
    signals_back(mask);
    return thread->depth + 8 < thread->capacity;
}

static int64_t find_slot(const struct thread *thread, uint64_t slot, uint32_t below)
{
    for (uint32_t at = below; at-- > 0;) {
        uint64_t tagged = thread->shadow[at].slot;
        uint32_t tag = TAG(tagged);
        if (UNTAG(tagged) == slot && (tag == TAG_LIVE || tag == TAG_TAIL || tag == TAG_GHOST))
            return at;
    }
    return -1;
}

/* The innermost call on the thread's own stack that lies further out than `slot`, or at it when `same`. */
static uint64_t parent_native(const struct thread *thread, uint64_t slot, bool same)
{
    uint32_t foreign = 0;
    for (uint32_t at = thread->depth; at-- > 0 && foreign < FOREIGN_MAX; foreign++) {
        const struct shadow *entry = &thread->shadow[at];
        uint64_t other = UNTAG(entry->slot);
        bool opaque = (entry->hook & SHADOW_INTERNAL) && ((const struct strobe_internal *)SHADOW_POINTER(entry->hook))->reserved == INTERNAL_SIGACTION;
        if (is_call(entry->slot) && !opaque && is_native(thread, other) && (other > slot || (same && other == slot)))
            return entry->span;
    }
    return 0;
}

/* On a stack whose bounds nobody knows: the nearest entry further out, no more than FOREIGN_SPAN away. */
static uint64_t parent_foreign(struct thread *thread, uint64_t slot, bool same)
{
    for (uint32_t tries = 0; tries < 8; tries++) {
        uint32_t low = thread->depth > FOREIGN_MAX ? thread->depth - FOREIGN_MAX : 0, best = ~0u;
        uint64_t nearest = stack_end(slot);
        for (uint32_t at = thread->depth; at-- > low;) {
            uint64_t other = UNTAG(thread->shadow[at].slot);
            if (!is_call(thread->shadow[at].slot) || is_native(thread, other) || other >= nearest || other < slot || (thread->shadow[at].hook & SHADOW_INTERNAL))
                continue;
            nearest = other;
            best = at;
        }
        if (best == ~0u)
            return 0;
        if (nearest != slot ? is_alive(thread, best) : same)
            return thread->shadow[best].span;
        unwound(thread, best);
    }
    return 0;
}

/* A traced call is made at `slot`: reaps, re-hijacks, finds its parent. */
NOINLINE void shadow_settle(struct thread *thread, uint64_t slot, struct push *push)
{
    bool native = is_native(thread, slot);
    push->tail = *(const uint64_t *)slot == EXIT_STUB;
    if (native)
        reap_native(thread, slot, push->tail);
    if (thread->dead > 64 && thread->dead * 2 > thread->depth - thread->mixed_low)
        shadow_make_room(thread);
    if (thread->slow & (SLOW_RESTORED | SLOW_UNWINDING)) {
        if ((thread->slow & SLOW_UNWINDING) && slot > thread->unwinding && is_native(thread, slot) == is_native(thread, thread->unwinding))
            unwind_over(thread);
        if (!(thread->slow & SLOW_UNWINDING))
            unwind_rehijack(thread);
    }
    push->parent = native ? parent_native(thread, slot, push->tail) : parent_foreign(thread, slot, push->tail);
}

static void leave_one(struct thread *thread, const struct shadow *entry, const uint64_t *gpr, const uint64_t *xmm, uint64_t ts)
{
    if (entry->hook & SHADOW_INTERNAL)
        internal_exit(thread, entry, (int64_t)gpr[6], ts);
    else
        record_exit(thread, entry, gpr, xmm, ts);
}

/* A call at `slot` returns. All entries of the slot end: tail calls first, the one that holds the real address last. */
NOINLINE void shadow_leave(struct thread *thread, uint64_t *slot, const uint64_t *gpr, const uint64_t *xmm, uint64_t ts)
{
    if ((thread->slow & SLOW_UNWINDING) && (uint64_t)slot > thread->unwinding && is_native(thread, (uint64_t)slot) == is_native(thread, thread->unwinding))
        unwind_over(thread);
    if (is_native(thread, (uint64_t)slot))
        reap_native(thread, (uint64_t)slot, true);
    for (int64_t at = find_slot(thread, (uint64_t)slot, thread->depth); at >= 0; at = find_slot(thread, (uint64_t)slot, (uint32_t)at)) {
        struct shadow entry = thread->shadow[at];
        bool tail = TAG(entry.slot) == TAG_TAIL;
        thread->shadow[at].slot = (uint64_t)slot | TAG_BUSY;
        in_order();
        if (!tail)
            *slot = entry.ret;
        in_order();
        if (TAG(entry.slot) == TAG_GHOST)
            thread->carved = 1;
        leave_one(thread, &entry, gpr, xmm, ts);
        shadow_remove(thread, (uint32_t)at);
        if (!tail) {
            if ((thread->slow & SLOW_RESTORED) && !(thread->slow & SLOW_UNWINDING) && thread->depth <= thread->restored + 4)
                unwind_rehijack(thread);
            return;
        }
    }
    shadow_steal(thread, slot, gpr, xmm, ts);
}

static bool steal_from(struct thread *owner, uint64_t slot, struct shadow *entry)
{
    for (uint32_t at = SHARED_LOAD(&owner->depth); at-- > 0;) {
        uint64_t tagged = SHARED_LOAD(&owner->shadow[at].slot);
        if (UNTAG(tagged) != slot || !is_call(tagged) || TAG(tagged) == TAG_MANAGED)
            continue;
        *entry = owner->shadow[at];
        entry->slot = tagged;
        if (__atomic_compare_exchange_n(&owner->shadow[at].slot, &tagged, slot | TAG_DEAD, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            shadow_mixed(owner, at); /* only a hint to the owner; it would skip the dead entry without it too */
            return true;
        }
    }
    return false;
}

/* The frame was entered on another thread: a coroutine that moved. Its owner does not touch the entry, for it is not on that stack. */
NOINLINE void shadow_steal(struct thread *thread, uint64_t *slot, const uint64_t *gpr, const uint64_t *xmm, uint64_t ts)
{
    for (uint32_t tries = 0; tries < 100; tries++) /* entries may be moved by their owner (shadow_make_room) while we look */
        for (struct thread *owner = SHARED_LOAD(&thread_list); owner; owner = owner->next) {
            struct shadow entry = {.slot = TAG_TAIL};
            while (TAG(entry.slot) == TAG_TAIL && owner != thread && steal_from(owner, (uint64_t)slot, &entry))
                if (thread)
                    leave_one(thread, &entry, gpr, xmm, ts);
            if (TAG(entry.slot) != TAG_TAIL) {
                *slot = entry.ret;
                return;
            }
        }
    __builtin_trap(); /* a frame that returns twice (setjmp traced with an exit): there is no right address to go to */
}

void shadow_forget_span(struct thread *thread, uint64_t span)
{
    for (uint32_t at = thread->depth; at-- > 0;)
        if (thread->shadow[at].span == span && TAG(thread->shadow[at].slot) == TAG_MANAGED) {
            shadow_remove(thread, at);
            return;
        }
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
                unwound(thread, at);
        } else if (is_call(tagged) && is_native(thread, slot) && is_native(thread, low) && slot >= high && !thread->carved) {
            break;
        } else {
            others++;
        }
    }
}

/* The span of the newest call that is still open, for crash pages. */
uint64_t shadow_innermost(const struct thread *thread)
{
    for (uint32_t at = thread->depth; at-- > 0;)
        if (is_call(thread->shadow[at].slot) && !(thread->shadow[at].hook & SHADOW_INTERNAL))
            return thread->shadow[at].span;
    return 0;
}
