/* Running walk programs: copying what an object points to, each stretch once. */
#include "recorder_faults.h"
#include "recorder_walk.h"

#define TEXT_TARGET 0xfffffffeu /* in `seen`: the text at the address */
#define SEEN_SIZE (1u << SEEN_BITS)

const struct lane_walk_step walk_plain = {.target = LANE_WALK_NOTHING, .size = 1};

/* Half of all addresses are no user's; the first page nobody has. */
INLINE bool plausible(uint64_t address, uint64_t bytes) { return address >= 4096 && address < 1ull << 63 && bytes < 1ull << 62; }

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

INLINE void errand_add(struct walker *walker, uint64_t address, uint32_t target, uint32_t stride, uint32_t at, uint32_t region, uint32_t count)
{
    if (UNLIKELY(walker->last - walker->first == ERRANDS))
        walk_stop(walker);
    else
        walker->errands[walker->last++ % ERRANDS] = (struct errand){address, target, stride, (uint16_t)at, (uint16_t)region, (uint16_t)count, 0};
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

static void walk_text(struct walker *walker, const struct lane_walk_step *step, uint64_t address)
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

/* An unsigned number of 1, 2, 4 or 8 bytes. */
INLINE uint64_t number_at(const uint8_t *object, uint64_t offset, uint32_t size)
{
    uint64_t value = 0;
    for (uint32_t i = size; i-- > 0;)
        value = value << 8 | object[offset + i];
    return value;
}

static void walk_array(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object)
{
    uint64_t address = walk_field(object, step->offset), many;
    if (!address)
        return;
    address += step->b;
    if (step->flags & LANE_WALK_FLAG_END_POINTER) {
        uint64_t end = walk_field(object, step->a);
        many = end > address ? (step->size == 1 ? end - address : (end - address) / step->size) : 0;
    } else {
        many = number_at(object, step->a, step->flags & LANE_WALK_FLAG_COUNT_32 ? 4 : 8);
    }
    uint32_t count = many < step->limit ? (uint32_t)many : step->limit;
    walk_visit(walker, step, address, (uint64_t)count * step->size, many > count ? LANE_REGION_STATE_CUT : LANE_REGION_STATE_OK, count);
}

static void walk_dynamic(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object)
{
    uint64_t address = walk_field(object, step->offset), vtable = walk_field(object, step->a), bytes;
    if (!address || !plausible(vtable, 16) || read_bytes(&walker->source, (uint8_t *)&bytes, vtable + 8, 8) < 8)
        return;
    uint64_t take = bytes < step->limit ? bytes : step->limit;
    walk_visit(walker, step, address, take, bytes > take ? LANE_REGION_STATE_CUT : LANE_REGION_STATE_OK, 1);
}

static void walk_each(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object, uint64_t address)
{
    uint32_t count = step->limit;
    if (step->flags & LANE_WALK_FLAG_COUNTED) {
        uint32_t told = (uint32_t)number_at(object, step->a, 2);
        count = told < count ? told : count;
    }
    uint32_t at = (uint32_t)(object - walker->payload) + step->offset;
    if (count && step->target != LANE_WALK_NOTHING)
        errand_add(walker, address + step->offset, step->target, step->size, at, walker->region, count);
}

static bool when(const struct lane_walk_step *step, const uint8_t *object)
{
    uint64_t value = number_at(object, step->offset, step->size);
    if (step->limit)
        value &= step->limit;
    return (value >= step->a && value <= step->b) == !(step->flags & LANE_WALK_FLAG_NOT);
}

/* Runs the program that begins at step `at` on one object. */
static void program_run(struct walker *walker, uint32_t at, const uint8_t *object, uint64_t address)
{
    uint32_t back = 0;
    for (;; at++) {
        const struct lane_walk_step *step = &walker->steps[at];
        if (step->op == LANE_WALK_OP_END) {
            if (!back)
                return;
            at = walker->back[--back];
            continue;
        }
        if (!walk_goes_on(walker))
            return;
        switch (step->op) {
        case LANE_WALK_OP_POINT:
            walk_visit(walker, step, walk_field(object, step->offset), step->size, LANE_REGION_STATE_OK, 1);
            break;
        case LANE_WALK_OP_TEXT:
            walk_text(walker, step, walk_field(object, step->offset));
            break;
        case LANE_WALK_OP_ARRAY:
            walk_array(walker, step, object);
            break;
        case LANE_WALK_OP_EACH:
            walk_each(walker, step, object, address);
            break;
        case LANE_WALK_OP_WHEN:
            if (step->target == LANE_WALK_NOTHING || !when(step, object))
                break;
            if (step[1].op != LANE_WALK_OP_END) {
                if (back == BACK_MAX)
                    break;
                walker->back[back++] = (uint16_t)at;
            }
            at = step->target - 1;
            break;
        case LANE_WALK_OP_AT:
            walk_visit(walker, step, step->a + (step->flags & LANE_WALK_FLAG_THREAD_LOCAL ? thread_pointer() : 0), step->size, LANE_REGION_STATE_OK, 1);
            break;
        case LANE_WALK_OP_DYNAMIC:
            walk_dynamic(walker, step, object);
            break;
        default:
            walk_container(walker, step, object, address);
        }
    }
}

/* An image from payload offset `used` on that ends at `end` at the latest. */
void walk_begin(struct walker *walker, const struct strobe_hook *hook, uint8_t *payload, uint32_t used, uint32_t end)
{
    walker->steps = hook->walk;
    walker->needs = hook->walk_needs;
    walker->payload = payload;
    walker->used = used;
    walker->end = end;
    walker->fuel = WALK_FUEL;
    walker->first = walker->last = walker->again = walker->stopped = 0;
    walker->region = REGION_NONE;
    walker->region_address = walker->region_bytes = 0;
    if (UNLIKELY(!++walker->turn)) {
        for (uint32_t i = 0; i < SEEN_SIZE; i++)
            walker->seen[i].what = 0;
        walker->turn = 1;
    }
}

/* The object lies in the payload at `at`; its address is not known. */
void walk_root(struct walker *walker, uint32_t target, uint32_t at)
{
    if (!walker->stopped)
        program_run(walker, target, walker->payload + at, at);
}

void walk_run(struct walker *walker, uint8_t *flags)
{
    while (walker->first != walker->last && !walker->stopped) {
        struct errand errand = walker->errands[walker->first++ % ERRANDS];
        walker->region = errand.region;
        walker->region_address = errand.region == REGION_NONE ? 0 : walk_field(walker->payload + errand.region, 0);
        walker->region_bytes = errand.region == REGION_NONE ? 0 : (uint32_t)walk_field(walker->payload + errand.region, 8);
        for (uint32_t i = 0; i < errand.count && !walker->stopped; i++)
            program_run(walker, errand.target, walker->payload + errand.at + i * errand.stride, errand.address + (uint64_t)i * errand.stride);
    }
    if (walker->stopped)
        *flags |= LANE_ENTRY_FLAG_TRUNCATED;
}
