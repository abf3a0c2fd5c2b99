/* The fallback's way in: the same writer for a call that Frida's Interceptor intercepts. No return address is touched, so these entries
 * serve to know parents only; the exit names its span. */
#include "recorder_lane.h"
#include "recorder_shadow.h"

EXPORT uint64_t strobe_record_enter(uint64_t hook_address, const uint64_t regs[15], const uint64_t *stack)
{
    struct strobe_hook *hook = (struct strobe_hook *)hook_address;
    uint32_t flags = SHARED_LOAD(&hook->shared->flags), period = SHARED_LOAD(&hook->shared->sample_period);
    struct draft draft = {.flags = 0};
    if (!(flags & LANE_HOOK_FLAG_ENABLED) || !SHARED_LOAD(&pool->recording))
        return 0;
    uint64_t ts = now(), span = 0;
    if (period > 1) {
        if (!sample(hook->shared, period, ts))
            return 0;
        draft.flags = LANE_ENTRY_FLAG_SAMPLED;
    }
    struct thread *thread = thread_self();
    if (!thread) {
        lane_drop(hook->shared, LANE_KIND_ENTER);
        return 0;
    }
    bool first = frame_begins(thread, (uint64_t)stack);
    struct push push;
    shadow_settle(thread, (uint64_t)stack, &push);
    struct values values = {regs, regs + 7, stack, NULL, false};
    if (draft_make(thread, hook, &values, LANE_KIND_ENTER, &draft)) {
        span = add_own64(&thread->spans, 1) + 1;
        struct shadow *entry = flags & LANE_HOOK_FLAG_WANT_EXIT ? shadow_push(thread, (uint64_t *)stack, span, (uint64_t)hook, TAG_MANAGED) : NULL;
        entry_head(draft.place.entry, ts, span, hook->id, LANE_KIND_ENTER, draft.flags | (entry ? 0 : LANE_ENTRY_FLAG_NO_EXIT), draft.slots, push.parent);
        lane_publish(&draft.place, draft.slots);
        if (entry)
            shadow_done(thread, entry, TAG_MANAGED);
        else
            span = 0;
    }
    frame_ends(thread, (uint64_t)stack, first);
    return span;
}

EXPORT void strobe_record_exit(uint64_t hook, uint64_t span, const uint64_t regs[15])
{
    uint64_t ts = now();
    struct thread *thread = span ? thread_self() : NULL;
    if (!thread)
        return;
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    bool first = frame_begins(thread, here);
    shadow_forget_span(thread, span);
    struct shadow ended = {.hook = hook, .span = span};
    record_exit(thread, &ended, &(struct values){regs, regs + 7, NULL, NULL, false}, ts);
    frame_ends(thread, here, first);
}
