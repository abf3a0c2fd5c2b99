/* Checking walk programs once, so that running them needs few checks: operations known, targets within the section, numbers bounded, and
 * each program reads no further in its object than the object goes. Loops of programs are not looked for: fuel ends them. */
#include "recorder_walk.h"

#define ROUNDS_MAX 512u
#define LEVELS_BYTES_MAX (1u << 16) /* of a node of a BTreeMap */

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Bytes of its object that the step itself reads. ~0: it is not valid. */
static uint64_t step_reads(const struct lane_walk_step *step)
{
    uint64_t pointer = (uint64_t)step->offset + 8, a = step->a, b = step->b, size = step->size;
    uint64_t low_a = (uint64_t)low_half(a) + 8, high_a = (uint64_t)high_half(a) + 8, low_b = (uint64_t)low_half(b) + 8;
    bool small_a = a <= WALK_BYTES_MAX, small_b = b <= WALK_BYTES_MAX;
    switch (step->op) {
    case LANE_WALK_OP_END:
        return 0;
    case LANE_WALK_OP_POINT:
        return pointer;
    case LANE_WALK_OP_TEXT:
        return size == 1 || size == 2 || size == 4 ? pointer : ~0ull;
    case LANE_WALK_OP_ARRAY:
        return size && small_a && (small_b || -b <= WALK_BYTES_MAX) ? most(pointer, a + (step->flags & LANE_WALK_FLAG_COUNT_32 ? 4 : 8)) : ~0ull;
    case LANE_WALK_OP_EACH:
        return small_a ? most(step->offset + size * step->limit, step->flags & LANE_WALK_FLAG_COUNTED ? a + 2 : 0) : ~0ull;
    case LANE_WALK_OP_WHEN:
        return size == 1 || size == 2 || size == 4 || size == 8 ? step->offset + size : ~0ull;
    case LANE_WALK_OP_LIST:
        return small_a && a + 8 <= size ? pointer : ~0ull;
    case LANE_WALK_OP_TREE:
        return small_a && small_b && most(a, b) + 8 <= size ? pointer : ~0ull;
    case LANE_WALK_OP_BLOCKS:
        return size && b && small_a && small_b ? most(step->offset, a) + 32 : ~0ull;
    case LANE_WALK_OP_MAPPED:
        return size && b && small_b ? most(pointer, most(low_a, high_a)) : ~0ull;
    case LANE_WALK_OP_RING:
        return size ? most(most(pointer, low_b), most(low_a, high_a)) : ~0ull;
    case LANE_WALK_OP_SWISS:
        return size && small_a ? most(pointer, a + 8) : ~0ull;
    case LANE_WALK_OP_BTREE: /* an inner node begins like a leaf, and ends with its edges */
        return small_a && low_half(b) < LEVELS_BYTES_MAX && low_half(b) + 96u >= size && high_half(b) + 2ull <= size ? most(pointer, a + 8) : ~0ull;
    case LANE_WALK_OP_AT:
        return 0;
    case LANE_WALK_OP_DYNAMIC:
        return small_a ? most(pointer, a + 8) : ~0ull;
    case LANE_WALK_OP_NEAR:
        return (small_a || -a <= WALK_BYTES_MAX) && (small_b || -b <= WALK_BYTES_MAX) ? (step->flags & LANE_WALK_FLAG_TOLD ? pointer : 0) : ~0ull;
    }
    return ~0ull;
}

/* Of the object that the step's target runs on: bytes that are there for certain. */
static uint64_t target_has(const struct lane_walk_step *step) { return step->op == LANE_WALK_OP_DYNAMIC ? step->limit : step->size; }

static bool step_valid(const struct lane_walk_step *step, uint32_t count)
{
    const uint32_t flags = LANE_WALK_FLAG_END_POINTER | LANE_WALK_FLAG_COUNT_32 | LANE_WALK_FLAG_NOT | LANE_WALK_FLAG_SENTINEL | LANE_WALK_FLAG_THREAD_LOCAL |
        LANE_WALK_FLAG_SOFT | LANE_WALK_FLAG_COUNTED | LANE_WALK_FLAG_TOLD;
    if ((step->flags & ~flags) || step->offset > WALK_BYTES_MAX || step->size > WALK_BYTES_MAX || step_reads(step) > 2ull * WALK_BYTES_MAX)
        return false;
    return step->op == LANE_WALK_OP_END || step->target == LANE_WALK_NOTHING || step->target < count;
}

/* Carries what programs read from targets to those that run them on the same object. Answers whether anything changed. */
static bool needs_carried(const struct lane_walk_step *steps, uint32_t count, uint32_t *needs, bool upwards)
{
    bool changed = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = upwards ? i : count - 1 - i;
        const struct lane_walk_step *step = &steps[at];
        if (step->op == LANE_WALK_OP_END)
            continue;
        uint32_t need = (uint32_t)most(step_reads(step), needs[at + 1]);
        if (step->op == LANE_WALK_OP_WHEN && step->target != LANE_WALK_NOTHING)
            need = (uint32_t)most(need, needs[step->target]);
        changed |= need != needs[at];
        needs[at] = need;
    }
    return changed;
}

bool walk_compile(const struct lane_walk_step *steps, uint32_t count, uint32_t *needs)
{
    if (!count)
        return true;
    if (count > WALK_STEPS_MAX || steps[count - 1].op != LANE_WALK_OP_END)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        needs[i] = 0;
        if (!step_valid(&steps[i], count))
            return false;
    }
    bool changed = true;
    for (uint32_t round = 0; changed && round < ROUNDS_MAX; round++)
        changed = needs_carried(steps, count, needs, round & 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct lane_walk_step *step = &steps[i];
        bool runs = step->op != LANE_WALK_OP_END && step->op != LANE_WALK_OP_WHEN && step->target != LANE_WALK_NOTHING;
        if (runs && needs[step->target] > target_has(step))
            return false;
    }
    return !changed;
}
