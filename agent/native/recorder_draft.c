/* Making an entry's payload: in the lane itself, or in scratch memory where the current chunk may have too little room for it. */
#include "recorder_lane.h"
#include "recorder_walk.h"

static struct walker *block_at(const struct thread *thread, uint32_t block) { return (struct walker *)(thread->scratch + block * SCRATCH_BLOCK + SCRATCH_PAYLOAD); }

struct walker *scratch_take(struct thread *thread)
{
    if (LIKELY(swap_own32(&thread->scratch_used, 0, 1)))
        return block_at(thread, 0);
    for (;;) {
        uint32_t used = thread->scratch_used, block = 0;
        while (block < 4 && (used >> block & 1))
            block++;
        if (block == 4)
            return NULL;
        if (swap_own32(&thread->scratch_used, used, used | 1u << block))
            return block_at(thread, block);
    }
}

void scratch_give(struct thread *thread, const struct walker *walker)
{
    clear_bits_own(&thread->scratch_used, 1u << ((uint32_t)((const uint8_t *)walker - thread->scratch) / SCRATCH_BLOCK));
}

INLINE uint32_t slots_of(uint32_t bytes) { return 1 + (bytes + LANE_SLOT_BYTES - 1) / LANE_SLOT_BYTES; }

/* In the lane: as much is reserved as the entry can need, and what it does not need is given back. False: there may not be room. */
INLINE bool draft_in_lane(struct thread *thread, const struct strobe_hook *hook, const struct values *values, uint32_t kind, struct capture *to, struct draft *draft)
{
    uint32_t most = kind == LANE_KIND_EXIT ? hook->exit_most : hook->most;
    if ((uint32_t)thread->word + most > LANE_CHUNK_SLOTS || !lane_reserve(thread, most, kind, &draft->place))
        return false;
    to->payload = (uint8_t *)draft->place.entry + LANE_SLOT_BYTES;
    to->room = (most - 1) * LANE_SLOT_BYTES;
    draft->slots = slots_of(capture(thread, hook, kind == LANE_KIND_EXIT, values, to));
    if (draft->slots != most)
        lane_give_back(thread, &draft->place, most, draft->slots);
    return true;
}

static NOINLINE bool draft_in_scratch(struct thread *thread, const struct strobe_hook *hook, const struct values *values, uint32_t kind, struct capture *to, struct draft *draft)
{
    to->payload = (uint8_t *)to->walker - SCRATCH_PAYLOAD;
    to->room = LANE_PAYLOAD_BYTES_MAX;
    uint32_t bytes = capture(thread, hook, kind == LANE_KIND_EXIT, values, to);
    draft->slots = slots_of(bytes);
    if (!lane_reserve(thread, draft->slots, kind, &draft->place))
        return false;
    copy_bytes((uint8_t *)draft->place.entry + LANE_SLOT_BYTES, to->payload, bytes);
    return true;
}

NOINLINE bool draft_make(struct thread *thread, const struct strobe_hook *hook, const struct values *values, uint32_t kind, struct draft *draft)
{
    struct walker *walker = scratch_take(thread);
    bool fits = false;
    if (LIKELY(walker)) {
        struct capture to = {.walker = walker, .flags = draft->flags};
        fits = draft_in_lane(thread, hook, values, kind, &to, draft) || draft_in_scratch(thread, hook, values, kind, &to, draft);
        draft->flags = to.flags;
        scratch_give(thread, walker);
    }
    if (!fits)
        lane_drop(hook->shared, kind);
    return fits;
}
