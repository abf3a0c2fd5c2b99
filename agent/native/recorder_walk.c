/* Running walk programs on what was copied (recorder_walk_copy.c); containers' steps are in recorder_walk_containers.c. */
#include "recorder_walk.h"

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

/* What is around the object itself: the whole of which it is a base, or its own virtual base. */
static void walk_near(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object, uint64_t address)
{
    uint64_t distance = step->a, pointer, word;
    if (walker->region == REGION_NONE)
        return;
    if (step->flags & LANE_WALK_FLAG_TOLD) {
        pointer = walk_field(object, step->offset) + step->b;
        if (!plausible(pointer, 8) || read_bytes(&walker->source, (uint8_t *)&word, pointer, 8) < 8)
            return;
        distance += word;
    }
    if (distance <= WALK_BYTES_MAX || -distance <= WALK_BYTES_MAX)
        walk_visit(walker, step, address + distance, step->size, LANE_REGION_STATE_OK, 1);
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
        case LANE_WALK_OP_NEAR:
            walk_near(walker, step, object, address);
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
