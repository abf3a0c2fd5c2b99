/* Copying stretches of the target's memory into an event's image: each once, as far as memory and budget go. */
#include "recorder_faults.h"
#include "recorder_walk.h"

#define TEXT_TARGET 0xfffffffeu /* in `seen`: the text at the address */

const struct lane_walk_step walk_plain = {.target = LANE_WALK_NOTHING, .size = 1};

/* Not all of it could be copied: what is known of that, and the rest of the last word set to 0. Answers the state. */
static NOINLINE uint32_t region_short(struct walker *walker, uint64_t take, uint64_t bytes, uint64_t got, uint32_t state, bool soft)
{
    if (take < bytes) {
        state = LANE_REGION_STATE_CUT;
        walk_stop(walker);
    }
    return got < take && !(soft && got) ? LANE_REGION_STATE_UNREADABLE : state;
}

/* Copies a stretch into the image as far as memory and budget go. */
INLINE copied_at region_new(struct walker *walker, uint64_t address, uint64_t bytes, uint32_t state, bool soft, bool fresh)
{
    uint32_t offset = walker->used, left = walker->end - offset;
    if (UNLIKELY(left < LANE_REGION_BYTES + 8)) {
        walk_stop(walker);
        return 0;
    }
    uint8_t *region = walker->payload + offset, *to = region + LANE_REGION_BYTES;
    uint64_t take = bytes < left - LANE_REGION_BYTES ? bytes : left - LANE_REGION_BYTES;
    uint64_t got = LIKELY(plausible(address, bytes)) ? read_bytes(&walker->source, to, address, take) : 0;
    if (UNLIKELY(got < bytes))
        state = region_short(walker, take, bytes, got, state, soft);
    region_head(region, address, got, state);
    uint64_t whole = got;
    for (; UNLIKELY(whole & 7); whole++)
        to[whole] = 0;
    walker->used = offset + LANE_REGION_BYTES + (uint32_t)whole;
    return copied_make(offset, 0, got, fresh);
}

/* A stretch at an address that the image has something of. `place`: where to go on looking, then where an entry for it may be put. */
static NOINLINE copied_at seen_find(const struct walker *walker, uint64_t address, uint64_t bytes, uint32_t target, uint32_t *place)
{
    copied_at found = 0;
    uint32_t at = *place;
    for (; seen_taken(walker, at); at = (at + 1) % SEEN_SIZE) {
        if (walker->seen[at].address != address)
            continue;
        uint32_t offset = (uint32_t)(walker->seen[at].what >> 32) & 0xffff;
        uint64_t word = walk_field(walker->payload + offset, 8), ahead = address - walk_field(walker->payload + offset, 0), has = (uint32_t)word;
        has = ahead < has ? has - ahead : 0;
        if (has < bytes && word >> 32 != LANE_REGION_STATE_UNREADABLE)
            continue;
        bool same = (uint32_t)walker->seen[at].what == target;
        found = copied_make(offset, has ? ahead : 0, has, !same && target != LANE_WALK_NOTHING);
        if (same)
            break;
    }
    *place = at;
    return found;
}

NOINLINE copied_at walk_copy_slowly(struct walker *walker, const struct lane_walk_step *step, uint64_t address, uint64_t bytes, uint32_t state)
{
    uint32_t target = step->target, place = seen_at(address);
    uint64_t ahead = address - walker->region_address;
    bool fresh = target != LANE_WALK_NOTHING;
    if (!address || !bytes || !walk_goes_on(walker))
        return 0;
    copied_at copied = seen_find(walker, address, bytes, target, &place);
    if (copied && seen_taken(walker, place))
        return copied; /* the same program */
    if (!copied && ahead < walker->region_bytes && bytes <= walker->region_bytes - ahead) /* a text in its own object, a node that points to itself */
        copied = copied_make(walker->region, ahead, walker->region_bytes - ahead, fresh);
    if (copied && ++walker->again == AGAIN_MAX)
        walk_stop(walker);
    if (!copied)
        copied = region_new(walker, address, bytes, state, step->flags & LANE_WALK_FLAG_SOFT, fresh);
    if (copied)
        seen_put(walker, place, address, target, COPIED_REGION(copied));
    return copied;
}

void walk_send(struct walker *walker, const struct lane_walk_step *step, uint64_t address, uint32_t count, copied_at copied)
{
    if (count && COPIED_FRESH(copied) && COPIED_BYTES(copied) >= walker->needs[step->target])
        errand_add(walker, address, step->target, step->size, COPIED_AT(copied), COPIED_REGION(copied), count);
}

const uint8_t *walk_visit(struct walker *walker, const struct lane_walk_step *step, uint64_t address, uint64_t bytes, uint32_t state, uint32_t count)
{
    copied_at copied = walk_copy(walker, step, address, bytes, state);
    if (UNLIKELY(COPIED_BYTES(copied) < bytes)) {
        if (count > 1)
            count = COPIED_BYTES(copied) / step->size;
        bytes = ~0ull;
    }
    if (COPIED_FRESH(copied))
        walk_send(walker, step, address, count, copied);
    return bytes != ~0ull && copied ? walker->payload + COPIED_AT(copied) : NULL;
}

/* A text up to its 0, as one region. */
void walk_text(struct walker *walker, const struct lane_walk_step *step, uint64_t address)
{
    uint32_t place = seen_at(address), offset = walker->used, left = walker->end - offset, unit = step->size, state = LANE_REGION_STATE_OK;
    if (!address || !walk_goes_on(walker))
        return;
    seen_find(walker, address, 0, TEXT_TARGET, &place);
    if (seen_taken(walker, place))
        return;
    if (left < LANE_REGION_BYTES + 8) {
        walk_stop(walker);
        return;
    }
    uint8_t *region = walker->payload + offset, *to = region + LANE_REGION_BYTES;
    uint64_t room = (left - LANE_REGION_BYTES) / unit * unit, most = (uint64_t)(step->limit + 1u) * unit;
    struct text text = {0, TEXT_FAULT};
    if (plausible(address, most))
        text = read_text(&walker->source, to, address, most < room ? most : room, unit);
    if (text.why == TEXT_FAULT)
        state = LANE_REGION_STATE_UNREADABLE;
    if (text.why == TEXT_LIMIT) {
        state = LANE_REGION_STATE_CUT;
        if (room < most)
            walk_stop(walker);
        text.bytes = text.bytes < most ? text.bytes : most - unit;
    }
    region_head(region, address, text.bytes, state);
    seen_put(walker, place, address, TEXT_TARGET, offset);
    for (; text.bytes & 7; text.bytes++)
        to[text.bytes] = 0;
    walker->used = offset + LANE_REGION_BYTES + (uint32_t)text.bytes;
}
