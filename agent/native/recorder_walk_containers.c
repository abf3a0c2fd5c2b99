/* Steps that copy containers: chains and trees of nodes, rows in blocks, hash tables. What the target's memory says is believed as far as it
 * can do no harm: numbers are bounded by the step's limit, loops by the event's fuel. */
#include "recorder_walk.h"

#define BTREE_KEYS 11u
#define BTREE_LEVELS 24u
#define CONTROL_PIECE 256u /* control bytes of a large table copied at once */

static void walk_list(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object, uint64_t address)
{
    uint64_t first = walk_field(object, step->offset), end = step->flags & LANE_WALK_FLAG_SENTINEL ? address + step->b : 0, node = first;
    for (uint32_t i = 0; i < step->limit && node && node != end; i++) {
        const uint8_t *copy = walk_visit(walker, step, node, step->size, LANE_REGION_STATE_OK, 1);
        node = copy ? walk_field(copy, step->a) : 0;
        if (node == first)
            return;
    }
}

/* In order from the left; each node is copied on the way down. On the path: those whose left side is being walked. */
static void walk_tree(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object)
{
    uint64_t node = walk_field(object, step->offset);
    for (uint32_t depth = 0, done = 0; done < step->limit; done++) {
        copied_at copied = 0;
        while (node) {
            copied = walk_copy(walker, step, node, step->size, LANE_REGION_STATE_OK);
            if (COPIED_BYTES(copied) < step->size)
                copied = 0;
            node = copied ? walk_field(walker->payload + COPIED_AT(copied), step->a) : 0;
            if (!node)
                break;
            if (depth == PATH_MAX)
                return;
            walker->path[depth++] = copied;
        }
        if (!copied) {
            if (!depth)
                return;
            copied = walker->path[--depth];
        }
        if (COPIED_FRESH(copied))
            walk_send(walker, step, walk_address(walker, copied), 1, copied);
        node = walk_field(walker->payload + COPIED_AT(copied), step->b);
    }
}

struct deque_iterator { uint64_t current, first, last, node; };

/* std::deque of libstdc++: the block pointers between its first and last iterator, and the blocks. */
static void walk_blocks(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object)
{
    struct deque_iterator start, finish;
    __builtin_memcpy(&start, object + step->offset, sizeof start);
    __builtin_memcpy(&finish, object + step->a, sizeof finish);
    uint64_t blocks = (finish.node - start.node) / 8 + 1, most = step->limit / step->b + 2, left = step->limit;
    if (!start.node || finish.node < start.node)
        return;
    const uint8_t *pointers = walk_visit(walker, &walk_plain, start.node, 8 * (blocks < most ? blocks : most), LANE_REGION_STATE_OK, 1);
    for (uint64_t i = 0; pointers && i < blocks && i < most && left; i++) {
        uint64_t begin = i ? walk_field(pointers, 8 * i) : start.current;
        uint64_t end = i + 1 == blocks ? finish.current : i ? begin + step->b * step->size : start.last;
        uint64_t count = end > begin ? (end - begin) / step->size : 0;
        if (count > step->b)
            return;
        uint64_t taken = count < left ? count : left;
        if (count && !walk_visit(walker, step, begin, taken * step->size, taken < count ? LANE_REGION_STATE_CUT : LANE_REGION_STATE_OK, (uint32_t)taken))
            return;
        left -= taken;
    }
}

/* std::deque of libc++: a start index, a count, pointers to blocks of `b` elements. */
static void walk_mapped(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object)
{
    uint64_t pointers_at = walk_field(object, step->offset), start = walk_field(object, low_half(step->a)), count = walk_field(object, high_half(step->a));
    uint64_t left = count < step->limit ? count : step->limit, first = start / step->b, skip = start % step->b;
    if (!pointers_at || !left || start > WALK_ELEMENTS_MAX)
        return;
    uint64_t blocks = (skip + left - 1) / step->b + 1;
    const uint8_t *pointers = walk_visit(walker, &walk_plain, pointers_at + 8 * first, 8 * blocks, LANE_REGION_STATE_OK, 1);
    for (uint64_t i = 0; pointers && i < blocks; i++, skip = 0) {
        uint64_t taken = step->b - skip < left ? step->b - skip : left;
        if (!walk_visit(walker, step, walk_field(pointers, 8 * i) + skip * step->size, taken * step->size, LANE_REGION_STATE_OK, (uint32_t)taken))
            return;
        left -= taken;
    }
}

static void walk_ring(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object)
{
    uint64_t address = walk_field(object, step->offset), capacity = walk_field(object, low_half(step->a)), first = walk_field(object, high_half(step->a));
    uint64_t count = walk_field(object, low_half(step->b)), taken = count < step->limit ? count : step->limit;
    if (!address || capacity > WALK_ELEMENTS_MAX || first >= capacity || count > capacity)
        return;
    uint64_t ahead = capacity - first < taken ? capacity - first : taken;
    walk_visit(walker, step, address + first * step->size, ahead * step->size, LANE_REGION_STATE_OK, (uint32_t)ahead);
    walk_visit(walker, step, address, (taken - ahead) * step->size, LANE_REGION_STATE_OK, (uint32_t)(taken - ahead));
}

/* Buckets that follow each other are one region. Answers how many elements may still come. */
static uint32_t swiss_piece(struct walker *walker, const struct lane_walk_step *step, uint64_t below, const uint8_t *control, uint32_t count, uint32_t left)
{
    for (uint32_t from = 0, to; from < count && left; from = to) {
        to = from + 1;
        if (control[from] & 0x80)
            continue;
        while (to < count && to - from < left && !(control[to] & 0x80))
            to++;
        if (!walk_visit(walker, step, below - (uint64_t)to * step->size, (uint64_t)(to - from) * step->size, LANE_REGION_STATE_OK, to - from))
            return 0;
        left -= to - from;
    }
    return left;
}

static void walk_swiss(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object)
{
    uint64_t control = walk_field(object, step->offset), mask = walk_field(object, step->a);
    uint32_t left = step->limit;
    if (!control || (mask & (mask + 1)) || mask > WALK_ELEMENTS_MAX)
        return;
    for (uint64_t at = 0; at <= mask && left; at += CONTROL_PIECE) {
        uint32_t count = mask + 1 - at < CONTROL_PIECE ? (uint32_t)(mask + 1 - at) : CONTROL_PIECE;
        const uint8_t *copy = walk_visit(walker, &walk_plain, control + at, count, LANE_REGION_STATE_OK, 1);
        if (!copy)
            return;
        left = swiss_piece(walker, step, control - at * step->size, copy, count, left);
    }
}

/* How many keys a node of a BTreeMap has. */
INLINE uint32_t keys_of(const uint8_t *node, uint32_t length)
{
    uint32_t keys = node[length] | (uint32_t)node[length + 1] << 8;
    return keys < BTREE_KEYS ? keys : BTREE_KEYS;
}

/* Nodes on the way down, until those passed hold `limit` keys. On the path, by level: where the node's copy is; << 16: the edge taken. */
static void walk_btree(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object)
{
    uint64_t node = walk_field(object, step->offset), height = walk_field(object, step->a), level = height;
    uint32_t edges = low_half(step->b), length = high_half(step->b), left = step->limit;
    while (height < BTREE_LEVELS && left) {
        const uint8_t *copy = walk_visit(walker, step, node, level ? edges + 8 * (BTREE_KEYS + 1) : step->size, LANE_REGION_STATE_OK, 1);
        if (!copy)
            return;
        walker->path[level] = (uint64_t)(copy - walker->payload);
        if (level) {
            level--;
            node = walk_field(copy, edges);
            continue;
        }
        uint32_t keys = keys_of(copy, length);
        left -= keys < left ? keys : left;
        do { /* up to a node that has one more edge */
            if (level++ == height)
                return;
            copy = walker->payload + COPIED_AT(walker->path[level]);
            walker->path[level] += 1u << 16;
        } while (walker->path[level] >> 16 > keys_of(copy, length));
        left -= left > 0;
        node = walk_field(copy, edges + 8 * (walker->path[level] >> 16));
        level--;
    }
}

void walk_container(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object, uint64_t address)
{
    switch (step->op) {
    case LANE_WALK_OP_LIST:
        walk_list(walker, step, object, address);
        break;
    case LANE_WALK_OP_TREE:
        walk_tree(walker, step, object);
        break;
    case LANE_WALK_OP_BLOCKS:
        walk_blocks(walker, step, object);
        break;
    case LANE_WALK_OP_MAPPED:
        walk_mapped(walker, step, object);
        break;
    case LANE_WALK_OP_RING:
        walk_ring(walker, step, object);
        break;
    case LANE_WALK_OP_SWISS:
        walk_swiss(walker, step, object);
        break;
    case LANE_WALK_OP_BTREE:
        walk_btree(walker, step, object);
        break;
    }
}
