/* Registering hooks, and the memory their thunks are written to. Called by the agent alone, one call at a time. */
#include "recorder_maps.h"
#include "recorder_state.h"

#define ARENA_BYTES (1u << 20)
#define PLAN_BYTES_MAX (256u << 10)
#define NEAR (0x7fffffffull - (100u << 20)) /* a little less than ±2 GiB */

static uint8_t *arena;
static uint64_t arena_left;

static void *arena_take(uint64_t bytes)
{
    bytes = (bytes + 63) & ~63ull;
    if (bytes > ARENA_BYTES)
        return NULL;
    if (bytes > arena_left) {
        arena = map_private(ARENA_BYTES);
        arena_left = arena ? ARENA_BYTES : 0;
        if (!arena)
            return NULL;
    }
    void *taken = arena;
    arena += bytes;
    arena_left -= bytes;
    return taken;
}

EXPORT int strobe_plan_needs_xmm(const void *plan, uint32_t plan_bytes)
{
    const struct strobe_plan_op *steps = plan;
    for (uint32_t i = 0; i < plan_bytes / LANE_PLAN_OP_BYTES && steps[i].op != LANE_PLAN_OP_END; i++)
        if (steps[i].op == LANE_PLAN_OP_XMM)
            return 1;
    return 0;
}

static struct strobe_hook *hook_list;
static struct lane_hook retired; /* its flags stay 0 */

/* The hooks of a session that is over: whoever still comes by one of their thunks goes on into the function. */
void hooks_retire(void)
{
    for (struct strobe_hook *hook = hook_list; hook; hook = hook->next)
        hook->shared = &retired;
    hook_list = NULL;
}

EXPORT uint64_t strobe_hook_new(uint32_t hook_id, uint64_t function, const void *plan, uint32_t plan_bytes)
{
    if (!pool || hook_id >= pool->hook_capacity || plan_bytes > PLAN_BYTES_MAX || plan_bytes % LANE_PLAN_OP_BYTES)
        return 0;
    struct strobe_hook *hook = arena_take(sizeof *hook + plan_bytes + plan_bytes / LANE_WALK_STEP_BYTES * sizeof(uint32_t));
    if (!hook)
        return 0;
    struct strobe_plan_op *steps = (struct strobe_plan_op *)(hook + 1);
    copy_bytes(steps, plan, plan_bytes);
    hook->id = hook_id;
    hook->shared = &hook_table[hook_id];
    hook->function = function;
    if (!hook_compile(hook, steps, plan_bytes, (uint32_t *)((uint8_t *)steps + plan_bytes)))
        return 0;
    hook->next = hook_list;
    hook_list = hook;
    return (uint64_t)hook;
}

/* The free gap nearest to `near` for `bytes`, as an address; 0 when none is near enough. */
static uint64_t nearest_gap(uint64_t near, uint64_t bytes)
{
    struct maps maps;
    struct mapping mapping;
    uint64_t best = 0, distance = NEAR - bytes, gap = 65536;
    if (!maps_open(&maps))
        return 0;
    for (bool more = true; more;) {
        more = maps_next(&maps, &mapping);
        uint64_t end = more ? mapping.start : 0x7ffffffff000ull, low = gap, high = end - bytes;
        uint64_t limit = more && mapping.is_stack ? bytes + (256u << 20) : bytes; /* leaves the main stack room to grow */
        if (end > gap && end - gap >= limit) {
            uint64_t place = near < low ? low : near > high ? high & ~4095ull : near & ~4095ull;
            if (more && mapping.is_stack && place > end - limit)
                place = (end - limit) & ~4095ull;
            uint64_t away = place > near ? place - near : near - place;
            if (away < distance) {
                distance = away;
                best = place;
            }
        }
        gap = mapping.end;
    }
    maps_close(&maps);
    return best;
}

#define SLABS 256u
static struct { uint64_t at, bytes; } slabs[SLABS];
static uint32_t slab_count;

/* True when a thunk was written whose hook word is that of such an internal hook. */
bool internal_is_in(uint32_t what)
{
    for (uint32_t i = 0; i < slab_count; i++)
        for (const uint64_t *word = (const uint64_t *)slabs[i].at; (uint64_t)word < slabs[i].at + slabs[i].bytes; word++) {
            uint64_t index = (*word - (uint64_t)strobe_internals) / sizeof *strobe_internals;
            if (index < strobe_internals_count && *word == (uint64_t)&strobe_internals[index] && strobe_internals[index].reserved == what)
                return true;
        }
    return false;
}

EXPORT uint64_t strobe_slab(uint64_t near_address, uint64_t bytes)
{
    bytes = (bytes + 4095) & ~4095ull;
    for (uint32_t tries = 0; tries < 16; tries++) {
        uint64_t place = nearest_gap(near_address, bytes);
        if (!place)
            return 0;
        /* PRIVATE ANONYMOUS FIXED_NOREPLACE; older kernels take the address as a hint */
        int64_t memory = system_call(CALL_MMAP, place, bytes, 5, 0x100022, ~0ull, 0);
        if (memory == (int64_t)place) {
            if (slab_count < SLABS) {
                slabs[slab_count].at = place;
                slabs[slab_count++].bytes = bytes;
            }
            return place;
        }
        if (memory > 0 || memory < -4095)
            system_call(CALL_MUNMAP, (uint64_t)memory, bytes, 0, 0, 0, 0);
    }
    return 0;
}
