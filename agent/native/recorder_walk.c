/* Running walk programs: copying what an object points to, each stretch once. */
#include "recorder_faults.h"
#include "recorder_walk.h"

#define TEXT_TARGET 0xfffffffeu /* in `seen`: the text at the address */
#define SEEN_SIZE (1u << SEEN_BITS)

const struct lane_walk_step walk_plain = {.target = LANE_WALK_NOTHING, .size = 1};

/* Half of all addresses are no user's; the first page nobody has. */
INLINE bool plausible(uint64_t address, uint64_t bytes) { return address >= 4096 && address < 1ull << 63 && bytes < 1ull << 62; }

/* Copies a stretch into the image as far as memory and budget go. Answers the region's offset in the payload, or REGION_NONE. */
static uint32_t region_new(struct walker *walker, uint64_t address, uint64_t bytes, uint32_t state, bool soft)
{
    uint32_t left = walker->end - walker->used;
    if (left < LANE_REGION_BYTES + 8) {
        walker->stopped = 1;
        return REGION_NONE;
    }
    uint8_t *region = walker->payload + walker->used, *to = region + LANE_REGION_BYTES;
    uint64_t take = bytes;
    if (take > left - LANE_REGION_BYTES) {
        take = left - LANE_REGION_BYTES;
        state = LANE_REGION_STATE_CUT;
        walker->stopped = 1;
    }
    uint64_t got = plausible(address, bytes) ? read_bytes(walker->source, to, address, take) : 0;
    if (UNLIKELY(got < take) && !(soft && got))
        state = LANE_REGION_STATE_UNREADABLE;
    struct lane_region head = {address, (uint32_t)got, state};
    __builtin_memcpy(region, &head, sizeof head);
    for (; UNLIKELY(got & 7); got++)
        to[got] = 0;
    uint32_t offset = walker->used;
    walker->used += LANE_REGION_BYTES + (uint32_t)got;
    return offset;
}

INLINE struct lane_region region_at(const struct walker *walker, uint32_t offset)
{
    struct lane_region region;
    __builtin_memcpy(&region, walker->payload + offset, sizeof region);
    return region;
}

/* How a stretch stands to what the image has. */
struct found { uint32_t region; bool done; };

static struct found seen_find(struct walker *walker, uint64_t address, uint64_t bytes, uint32_t target, uint32_t *place)
{
    struct found found = {REGION_NONE, false};
    uint32_t at = (uint32_t)((address >> 3) * 0x9e3779b97f4a7c15ull >> (64 - SEEN_BITS));
    for (; walker->seen[at].turn == walker->turn; at = (at + 1) % SEEN_SIZE) {
        const struct seen *seen = &walker->seen[at];
        if (seen->address != address)
            continue;
        struct lane_region region = region_at(walker, seen->region);
        uint64_t ahead = address - region.address;
        if (region.bytes - ahead < bytes && region.state != LANE_REGION_STATE_UNREADABLE)
            continue;
        found.region = seen->region;
        if (seen->target == target) {
            found.done = true;
            break;
        }
    }
    *place = at;
    return found;
}

INLINE void seen_add(struct walker *walker, uint32_t place, uint64_t address, uint32_t target, uint32_t region)
{
    walker->seen[place] = (struct seen){address, target, (uint16_t)region, walker->turn};
    if (++walker->inserted == SEEN_MAX)
        walker->stopped = 1;
}

/* Within the region that is being walked: a text that lies in its own object, a node that points to itself. */
INLINE bool inside(const struct walker *walker, uint64_t address, uint64_t bytes)
{
    if (walker->region == REGION_NONE)
        return false;
    struct lane_region region = region_at(walker, walker->region);
    uint64_t ahead = address - region.address;
    return ahead < region.bytes && bytes <= region.bytes - ahead;
}

static void errand_add(struct walker *walker, const struct errand *errand)
{
    if (walker->last - walker->first == ERRANDS)
        walker->stopped = 1;
    else
        walker->errands[walker->last++ % ERRANDS] = *errand;
}

/* Where the stretch is in the payload, in `copied`; false when nothing of it could be copied. */
bool walk_copy(struct walker *walker, const struct lane_walk_step *step, uint64_t address, uint64_t bytes, uint32_t state, struct copied *copied)
{
    uint32_t place;
    if (!address || !bytes || !walk_goes_on(walker))
        return false;
    struct found found = seen_find(walker, address, bytes, step->target, &place);
    if (found.region == REGION_NONE)
        found.region = inside(walker, address, bytes) ? walker->region : region_new(walker, address, bytes, state, step->flags & LANE_WALK_FLAG_SOFT);
    if (found.region == REGION_NONE)
        return false;
    if (!found.done)
        seen_add(walker, place, address, step->target, found.region);
    struct lane_region region = region_at(walker, found.region);
    uint64_t ahead = address - region.address;
    copied->region = (uint16_t)found.region;
    copied->there = ahead < region.bytes ? region.bytes - (uint32_t)ahead : 0;
    copied->at = (uint16_t)(found.region + LANE_REGION_BYTES + (copied->there ? (uint32_t)ahead : 0));
    copied->fresh = !found.done && step->target != LANE_WALK_NOTHING;
    return true;
}

void walk_send(struct walker *walker, const struct lane_walk_step *step, uint64_t address, uint32_t count, const struct copied *copied)
{
    if (count && copied->fresh && copied->there >= walker->needs[step->target])
        errand_add(walker, &(struct errand){address, step->target, step->size, copied->at, copied->region, (uint16_t)count, 0});
}

const uint8_t *walk_visit(struct walker *walker, const struct lane_walk_step *step, uint64_t address, uint64_t bytes, uint32_t state, uint32_t count)
{
    struct copied copied;
    if (!walk_copy(walker, step, address, bytes, state, &copied))
        return NULL;
    if (copied.there < bytes && count > 1)
        count = copied.there / step->size;
    walk_send(walker, step, address, count, &copied);
    return copied.there >= bytes ? walker->payload + copied.at : NULL;
}

static void walk_text(struct walker *walker, const struct lane_walk_step *step, uint64_t address)
{
    uint32_t place, left = walker->end - walker->used, unit = step->size, state = LANE_REGION_STATE_OK;
    if (!address || !walk_goes_on(walker) || seen_find(walker, address, 0, TEXT_TARGET, &place).done)
        return;
    if (left < LANE_REGION_BYTES + 8) {
        walker->stopped = 1;
        return;
    }
    uint8_t *region = walker->payload + walker->used, *to = region + LANE_REGION_BYTES;
    uint64_t room = (left - LANE_REGION_BYTES) / unit * unit, most = (uint64_t)(step->limit + 1u) * unit, got = 0;
    struct text text = {0, TEXT_FAULT};
    if (plausible(address, most))
        text = read_text(walker->source, to, address, most < room ? most : room, unit);
    got = text.bytes;
    if (text.why == TEXT_FAULT)
        state = LANE_REGION_STATE_UNREADABLE;
    if (text.why == TEXT_LIMIT) {
        state = LANE_REGION_STATE_CUT;
        walker->stopped |= room < most;
        got = got < most ? got : most - unit;
    }
    struct lane_region head = {address, (uint32_t)got, state};
    __builtin_memcpy(region, &head, sizeof head);
    seen_add(walker, place, address, TEXT_TARGET, walker->used);
    for (; got & 7; got++)
        to[got] = 0;
    walker->used += LANE_REGION_BYTES + (uint32_t)got;
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
    if (!address || !plausible(vtable, 16) || read_bytes(walker->source, (uint8_t *)&bytes, vtable + 8, 8) < 8)
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
        errand_add(walker, &(struct errand){address + step->offset, step->target, step->size, (uint16_t)at, walker->region, (uint16_t)count, 0});
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
    walker->first = walker->last = walker->inserted = walker->stopped = 0;
    if (UNLIKELY(!++walker->turn)) {
        for (uint32_t i = 0; i < SEEN_SIZE; i++)
            walker->seen[i].turn = 0;
        walker->turn = 1;
    }
}

/* The object lies in the payload at `at`; its address is not known. */
void walk_root(struct walker *walker, uint32_t target, uint32_t at)
{
    errand_add(walker, &(struct errand){at, target, 0, (uint16_t)at, REGION_NONE, 1, 0});
}

void walk_run(struct walker *walker, uint8_t *flags)
{
    while (walker->first != walker->last && !walker->stopped) {
        struct errand errand = walker->errands[walker->first++ % ERRANDS];
        walker->region = errand.region;
        for (uint32_t i = 0; i < errand.count && !walker->stopped; i++)
            program_run(walker, errand.target, walker->payload + errand.at + i * errand.stride, errand.address + (uint64_t)i * errand.stride);
    }
    if (walker->stopped)
        *flags |= LANE_ENTRY_FLAG_TRUNCATED;
}
