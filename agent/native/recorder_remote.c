/* What the session has done in the target by a call on a held thread (ptrace), without Frida: memory for what it hands over, hooks and
 * memory for thunks that are yet to be written, and other plans for those that are in place. The world stands still meanwhile. */
#include "recorder_state.h"

#define DESK_BYTES_MAX (64u << 20)

static uint8_t *desk;
static uint64_t desk_bytes;

/* Private memory for at least `bytes`, that the session writes through /proc/PID/mem; the same each time while it suffices. 0: there is none. */
static uint64_t desk_for(uint64_t bytes)
{
    if (bytes > desk_bytes) {
        if (desk)
            system_call(CALL_MUNMAP, (uint64_t)desk, desk_bytes, 0, 0, 0, 0);
        desk_bytes = (bytes + 4095) & ~4095ull;
        desk = bytes <= DESK_BYTES_MAX ? map_private(desk_bytes) : NULL;
        if (!desk)
            desk_bytes = 0;
    }
    return (uint64_t)desk;
}

/* Fills in `hook` (0: the plan is not valid, or there is no memory) and `entry` (`usual` where any does) of each. The session writes them into thunks. */
static uint64_t replan(struct strobe_replan *items, uint64_t count, uint64_t usual)
{
    uint64_t made = 0;
    for (uint64_t i = 0; i < count; i++) {
        const void *plan = (const uint8_t *)items + items[i].plan_offset;
        items[i].hook = strobe_hook_new(items[i].hook_id, items[i].function, plan, items[i].plan_bytes);
        items[i].entry = strobe_plan_needs_xmm(plan, items[i].plan_bytes) ? (uint64_t)strobe_enter_xmm : usual;
        made += items[i].hook != 0;
    }
    return made;
}

EXPORT uint64_t strobe_remote(uint64_t what, uint64_t a, uint64_t b)
{
    switch (what) {
    case STROBE_REMOTE_DESK:
        return desk_for(a);
    case STROBE_REMOTE_REPLAN:
        return replan((struct strobe_replan *)a, b, 0);
    case STROBE_REMOTE_SLAB:
        return strobe_slab(a, b);
    case STROBE_REMOTE_REGISTER:
        return replan((struct strobe_replan *)a, b, (uint64_t)strobe_enter_gpr);
    case STROBE_REMOTE_REBIND:
        return (uint64_t)rebind((const char *)a, b);
    case STROBE_REMOTE_ARM:
        return (uint64_t)(int64_t)strobe_arm();
    }
    return 0;
}
