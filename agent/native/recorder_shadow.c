/* The shadow stack off the short path: whose call made this one, tail calls, other stacks, returns out of order or on another thread. */
#include "recorder_lane.h"
#include "recorder_shadow.h"

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
        if (nearest != slot ? best + 1 == thread->depth || shadow_alive(thread, best) : same) /* the newest: its word for it, a look would cost a system call */
            return thread->shadow[best].span;
        shadow_unwound(thread, best);
    }
    return 0;
}

/* A traced call is made at `slot`: reaps, re-hijacks, finds its parent. */
NOINLINE void shadow_settle(struct thread *thread, uint64_t slot, struct push *push)
{
    bool native = is_native(thread, slot);
    push->tail = *(const uint64_t *)slot == EXIT_STUB;
    if (native)
        shadow_reap_native(thread, slot, push->tail);
    if (thread->dead > 64 && thread->dead * 2 > thread->depth - thread->mixed_low)
        shadow_make_room(thread, slot);
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
        record_exit(thread, entry, &(struct values){gpr, xmm, NULL, NULL, true}, ts);
}

/* A call at `slot` returns. All entries of the slot end: tail calls first, the one that holds the real address last. */
NOINLINE void shadow_leave(struct thread *thread, uint64_t *slot, const uint64_t *gpr, const uint64_t *xmm, uint64_t ts)
{
    if ((thread->slow & SLOW_UNWINDING) && (uint64_t)slot > thread->unwinding && is_native(thread, (uint64_t)slot) == is_native(thread, thread->unwinding))
        unwind_over(thread);
    if (is_native(thread, (uint64_t)slot))
        shadow_reap_native(thread, (uint64_t)slot, true);
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

/* The span of the newest call that is still open, for crash pages. */
uint64_t shadow_innermost(const struct thread *thread)
{
    for (uint32_t at = thread->depth; at-- > 0;)
        if (is_call(thread->shadow[at].slot) && !(thread->shadow[at].hook & SHADOW_INTERNAL))
            return thread->shadow[at].span;
    return 0;
}
