/* What happens at each traced call and return. The thunks' entry points (recorder_thunk.S) call strobe_on_enter and strobe_on_exit. */
#include "recorder_lane.h"
#include "recorder_shadow.h"

/* Whether this call of a sampled function is recorded; if not, it is counted. By a hash of its time (the finaliser of MurmurHash3; one multiplication
 * is not enough for times that are evenly apart): of what a program calls in turns each gets its share, as it would not if every n-th call were taken. */
NOINLINE bool sample(struct lane_hook *counts, uint32_t period, uint64_t ts)
{
    uint64_t mixed = (ts ^ ts >> 33) * 0xff51afd7ed558ccdull;
    mixed = (mixed ^ mixed >> 33) * 0xc4ceb9fe1a85ec53ull;
    if ((mixed >> 32) * period >> 32 == 0)
        return true;
    SHARED_ADD(&counts->left_out, 1);
    return false;
}

/* In one load: flags, and above them the sample period. */
INLINE uint64_t flags_and_period(const struct lane_hook *counts)
{
    _Static_assert(offsetof(struct lane_hook, sample_period) == offsetof(struct lane_hook, flags) + 4 && offsetof(struct lane_hook, flags) % 8 == 0, "one word");
    return SHARED_LOAD((const uint64_t *)&counts->flags);
}

/* The innermost live call on this stack, by which the new one was made. Short when the newest entry is just that. */
INLINE void settle(struct thread *thread, uint64_t *slot, struct push *push)
{
    uint32_t depth = thread->depth;
    const struct shadow *top = &thread->shadow[depth ? depth - 1 : 0];
    bool plain = !thread->slow && is_native(thread, (uint64_t)slot) && *slot != EXIT_STUB;
    if (LIKELY(plain && depth && (uint64_t)slot < top->slot && !TAG(top->slot) && *(uint64_t *)top->slot == EXIT_STUB)) {
        push->parent = top->span;
        push->tail = 0;
    } else if (plain && !depth) {
        push->parent = 0;
        push->tail = 0;
    } else {
        shadow_settle(thread, (uint64_t)slot, push);
    }
}

/* True when the moves read no further than the page of the slot, or within the thread's own stack. */
INLINE bool moves_safe(const struct thread *thread, const struct strobe_hook *hook, uint64_t slot)
{
    return (slot & 4095) + hook->stack_reach <= 4096 || (is_native(thread, slot) && is_native(thread, slot + hook->stack_reach));
}

/* A call of whatever kind. 1: the entry point calls the body, which returns to the exit stub; 0: it jumps there. */
static NOINLINE uint64_t enter_any(struct saved *saved)
{
    struct strobe_hook *hook = (struct strobe_hook *)saved->hook;
    uint32_t flags = SHARED_LOAD(&hook->shared->flags), period = SHARED_LOAD(&hook->shared->sample_period);
    struct draft draft = {.flags = 0};
    if (!(flags & LANE_HOOK_FLAG_ENABLED) || !SHARED_LOAD(&pool->recording))
        return 0;
    uint64_t ts = now();
    if (period > 1) {
        if (!sample(hook->shared, period, ts))
            return 0;
        draft.flags = LANE_ENTRY_FLAG_SAMPLED;
    }
    struct thread *thread = thread_self();
    if (UNLIKELY(!thread)) {
        lane_drop(hook->shared, LANE_KIND_ENTER);
        return 0;
    }
    uint64_t *slot = &saved->slot;
    bool first = frame_begins(thread, (uint64_t)slot);
    struct push push;
    settle(thread, slot, &push);
    struct values values = {&saved->rdi, &saved->rdi - 8, slot, moves_safe(thread, hook, (uint64_t)slot) ? saved : NULL, true};
    bool drafted = draft_make(thread, hook, &values, LANE_KIND_ENTER, &draft);
    uint64_t hijack = 0;
    if (LIKELY(drafted)) {
        uint64_t span = add_own64(&thread->spans, 1) + 1;
        enum shadow_tag tag = push.tail ? TAG_TAIL : TAG_LIVE;
        struct shadow *entry = NULL;
        if ((flags & LANE_HOOK_FLAG_WANT_EXIT) && !((uint64_t)slot & 7)) { /* tags need the low bits */
            entry = shadow_push(thread, slot, span, (uint64_t)hook | (uint64_t)draft.flags << SHADOW_EXTRA_SHIFT, tag);
            if (!entry)
                SHARED_ADD(&hook->shared->unmatched, 1);
        }
        uint32_t entry_flags = draft.flags | (push.tail ? LANE_ENTRY_FLAG_TAIL_CALL : 0) | (entry ? 0 : LANE_ENTRY_FLAG_NO_EXIT);
        entry_head(draft.place.entry, ts, span, hook->id, LANE_KIND_ENTER, entry_flags, draft.slots, push.parent);
        lane_publish(&draft.place, draft.slots);
        if (entry)
            shadow_done(thread, entry, tag);
        hijack = entry && tag == TAG_LIVE;
    }
    frame_ends(thread, (uint64_t)slot, first);
    return hijack;
}

/* True when the thread is in no unusual state and the call at `slot` is made by the newest one on the shadow stack, or by none. */
INLINE bool is_plain(const struct thread *thread, const uint64_t *slot, uint64_t *parent)
{
    uint32_t depth = thread->depth;
    if (thread->slow || !is_native(thread, (uint64_t)slot) || (uint64_t)slot & 7 || *slot == EXIT_STUB || depth + 8 >= thread->capacity)
        return false;
    *parent = 0;
    if (!depth)
        return true;
    const struct shadow *top = &thread->shadow[depth - 1];
    *parent = top->span;
    return (uint64_t)slot < top->slot && !TAG(top->slot) && *(const uint64_t *)top->slot == EXIT_STUB;
}

/* Called by the entry points. What is usual is done here, all else by enter_any. */
__attribute__((used)) uint64_t strobe_on_enter(struct saved *saved)
{
    struct strobe_hook *hook = (struct strobe_hook *)saved->hook;
    uint64_t *slot = &saved->slot, parent;
    if (UNLIKELY(flags_and_period(hook->shared) != (LANE_HOOK_FLAG_ENABLED | LANE_HOOK_FLAG_WANT_EXIT)) || UNLIKELY(!SHARED_LOAD(&pool->recording)))
        return enter_any(saved);
    uint64_t ts = now();
    struct thread *thread = thread_self();
    if (UNLIKELY(!thread) || UNLIKELY(thread->busy) || UNLIKELY(((uint64_t)slot & 4095) + hook->stack_reach > 4096))
        return enter_any(saved);
    thread->busy = (uint64_t)slot; /* before the shadow stack is looked at: a handler may move entries while no frame is running */
    in_order();
    if (UNLIKELY(!is_plain(thread, slot, &parent))) {
        frame_ends(thread, (uint64_t)slot, true);
        return enter_any(saved);
    }
    struct draft draft = {.slots = hook->slots, .flags = 0};
    bool room = LIKELY(hook->direct) ? draft_moves(thread, hook, saved, &draft)
        : draft_make(thread, hook, &(struct values){&saved->rdi, &saved->rdi - 8, slot, saved, true}, LANE_KIND_ENTER, &draft);
    if (LIKELY(room)) {
        uint64_t span = add_own64(&thread->spans, 1) + 1;
        struct shadow *entry = shadow_add(thread, slot, span, (uint64_t)hook, true);
        entry_head(draft.place.entry, ts, span, hook->id, LANE_KIND_ENTER, draft.flags, draft.slots, parent);
        lane_publish(&draft.place, draft.slots);
        in_order();
        entry->slot = (uint64_t)slot;
    }
    frame_ends(thread, (uint64_t)slot, true);
    return room;
}

/* An entry without payload. Drops are counted. */
void record_plain(struct thread *thread, uint32_t hook_id, struct lane_hook *counts, uint8_t kind, uint64_t span, uint64_t word, uint64_t ts)
{
    struct place place;
    if (!lane_reserve(thread, 1, kind, &place)) {
        lane_drop(counts, kind);
        return;
    }
    entry_head(place.entry, ts, span, hook_id, kind, 0, 1, word);
    lane_publish(&place, 1);
}

static NOINLINE void record_exit_slowly(struct thread *thread, const struct strobe_hook *hook, uint64_t span, uint32_t flags, const struct values *values, uint64_t ts)
{
    struct draft draft = {.flags = (uint8_t)flags};
    if (!draft_make(thread, hook, values, LANE_KIND_EXIT, &draft))
        return;
    uint64_t word = hook->word_xmm ? values->xmm[0] : values->gpr[6];
    entry_head(draft.place.entry, ts, span, hook->id, LANE_KIND_EXIT, draft.flags, draft.slots, word);
    lane_publish(&draft.place, draft.slots);
}

INLINE void record_return(struct thread *thread, uint64_t hook_word, uint64_t span, const struct values *values, uint64_t ts)
{
    const struct strobe_hook *hook = (const struct strobe_hook *)SHADOW_POINTER(hook_word);
    uint32_t flags = SHADOW_EXTRA(hook_word);
    struct place place;
    if (UNLIKELY(hook_word & SHADOW_INHERITED) || UNLIKELY(!SHARED_LOAD(&pool->recording)))
        return;
    if (UNLIKELY(hook->exit_steps)) {
        record_exit_slowly(thread, hook, span, flags, values, ts);
    } else if (LIKELY(lane_reserve(thread, 1, LANE_KIND_EXIT, &place))) {
        entry_head(place.entry, ts, span, hook->id, LANE_KIND_EXIT, flags, 1, hook->word_xmm ? values->xmm[0] : values->gpr[6]);
        lane_publish(&place, 1);
    } else {
        lane_drop(hook->shared, LANE_KIND_EXIT);
    }
}

void record_exit(struct thread *thread, const struct shadow *entry, const struct values *values, uint64_t ts)
{
    record_return(thread, entry->hook, entry->span, values, ts);
}

static NOINLINE void exit_any(struct thread *thread, struct saved_exit *saved, uint64_t ts)
{
    uint64_t *slot = &saved->slot;
    if (!thread) {
        shadow_steal(NULL, slot, &saved->rdi, saved->xmm, ts);
        return;
    }
    bool first = frame_begins(thread, (uint64_t)slot);
    shadow_leave(thread, slot, &saved->rdi, saved->xmm, ts);
    frame_ends(thread, (uint64_t)slot, first);
}

/* Called by the exit stub; on return *slot is the address to go to. */
__attribute__((used)) void strobe_on_exit(struct saved_exit *saved)
{
    uint64_t ts = now(), *slot = &saved->slot;
    struct thread *thread = thread_self();
    if (UNLIKELY(!thread) || UNLIKELY(thread->busy)) {
        exit_any(thread, saved, ts);
        return;
    }
    thread->busy = (uint64_t)slot;
    in_order();
    uint32_t at = thread->depth - 1;
    struct shadow *top = &thread->shadow[at];
    if (UNLIKELY(at == ~0u) || UNLIKELY(thread->slow) || UNLIKELY(top->slot != (uint64_t)slot) || UNLIKELY(top->hook & SHADOW_INTERNAL)) {
        frame_ends(thread, (uint64_t)slot, true);
        exit_any(thread, saved, ts);
        return;
    }
    uint64_t hook = top->hook, span = top->span;
    top->slot = (uint64_t)slot | TAG_BUSY;
    in_order();
    *slot = top->ret;
    in_order();
    struct values values = {&saved->rdi, saved->xmm, NULL, NULL, true};
    record_return(thread, hook, span, &values, ts);
    in_order();
    shadow_drop(thread, at);
    frame_ends(thread, (uint64_t)slot, true);
}
