/* Capture plans: compiled once per hook, run at each call. */
#include "recorder_lane.h"
#include "recorder_maps.h"

/* Readable memory that stays for the target's life: the executable's own segments. Strings in it need no system call. */
static struct { uint64_t start, end; } lasting[8];
static uint32_t lasting_count;

void maps_learn(uint64_t in_executable)
{
    struct maps maps;
    struct mapping mapping;
    for (uint64_t inode = 0, pass = 0; pass < 2; pass++) {
        if (!maps_open(&maps))
            return;
        while (maps_next(&maps, &mapping)) {
            if (in_executable >= mapping.start && in_executable < mapping.end)
                inode = mapping.inode;
            if (!pass || !inode || mapping.inode != inode || !mapping.readable)
                continue;
            if (lasting_count && lasting[lasting_count - 1].end == mapping.start)
                lasting[lasting_count - 1].end = mapping.end;
            else if (lasting_count < 8) {
                lasting[lasting_count].start = mapping.start;
                lasting[lasting_count++].end = mapping.end;
            }
        }
        maps_close(&maps);
    }
}

/* Bytes from `address` on that can be read as they are: the executable's memory, and the used part of the thread's own stack. */
static uint64_t lasting_bytes(const struct thread *thread, uint64_t address)
{
    if (is_native(thread, address) && address >= (uint64_t)__builtin_frame_address(0) && is_native(thread, (uint64_t)__builtin_frame_address(0)))
        return thread->native_high - address;
    for (uint32_t i = 0; i < lasting_count; i++)
        if (address - lasting[i].start < lasting[i].end - lasting[i].start)
            return lasting[i].end - address;
    return 0;
}

/* Copies a C string of at most `limit` bytes without its NUL. Sets how many; returns a StringState. */
static uint32_t string_read(const struct thread *thread, uint64_t from, uint8_t *to, uint32_t limit, uint32_t *length)
{
    uint32_t done = 0;
    *length = 0;
    while (done < limit) {
        uint64_t address = from + done, direct = lasting_bytes(thread, address), step = direct ? direct : 4096 - (address & 4095);
        if (step > limit - done)
            step = limit - done;
        uint64_t got = direct ? step : read_safely(to + done, address, step);
        for (uint64_t i = 0; i < got; i++, done++) {
            if (direct)
                to[done] = ((const uint8_t *)from)[done];
            if (!to[done]) {
                *length = done;
                return LANE_STRING_STATE_OK;
            }
        }
        if (got < step) {
            *length = done;
            return LANE_STRING_STATE_UNREADABLE;
        }
    }
    *length = done;
    uint8_t next = 1; /* exactly `limit` bytes long is not truncated */
    return read_safely(&next, from + done, 1) == 1 && !next ? LANE_STRING_STATE_OK : LANE_STRING_STATE_TRUNCATED;
}

static uint64_t string_put(const struct thread *thread, uint64_t from, uint8_t *payload, uint32_t used, uint32_t room, uint32_t limit, uint8_t *place, uint8_t *flags)
{
    uint32_t length = 0, state = LANE_STRING_STATE_NULL;
    bool cut = limit > room - used;
    if (from)
        state = string_read(thread, from, payload + used, cut ? room - used : limit, &length);
    struct lane_string descriptor = {.offset = (uint16_t)used, .length = (uint16_t)length, .state = (uint8_t)state};
    copy_bytes(place, &descriptor, sizeof descriptor);
    if (state == LANE_STRING_STATE_TRUNCATED)
        *flags |= LANE_ENTRY_FLAG_TRUNCATED;
    return length;
}

/* Copies `bytes` of the caller's stack. Wrong plans may reach past its end, so only a page that is surely there is read directly. */
static void stack_put(const struct thread *thread, const uint64_t *stack, int64_t offset, uint8_t *to, uint32_t bytes)
{
    uint64_t from = (uint64_t)stack + (uint64_t)offset;
    bool near = (from & ~4095ull) == ((uint64_t)stack & ~4095ull) && ((from + bytes - 1) & ~4095ull) == ((uint64_t)stack & ~4095ull);
    bool own = is_native(thread, from) && is_native(thread, from + bytes - 1) && from >= (uint64_t)stack;
    if (near || own)
        copy_bytes(to, (const void *)from, bytes);
    else
        for (uint64_t got = read_safely(to, from, bytes); got < bytes; got++)
            to[got] = 0;
}

static uint64_t stack_word(const struct thread *thread, const uint64_t *stack, int64_t offset)
{
    uint64_t word = 0;
    stack_put(thread, stack, offset, (uint8_t *)&word, 8);
    return word;
}

/* Runs a plan's steps into `payload` of `room` bytes, of which the first `fixed` are at fixed places. Returns the bytes used. */
uint32_t capture(struct thread *thread, const struct strobe_plan_op *steps, const struct values *values, uint8_t *payload, uint32_t room, uint32_t fixed, uint8_t *flags)
{
    static const uint8_t register_of[8] = {0, 1, 2, 3, 4, 5, 6, 2};
    uint32_t used = fixed;
    for (uint32_t i = 0; i < fixed; i += 8)
        __builtin_memset(payload + i, 0, 8);
    for (; steps->op != LANE_PLAN_OP_END; steps++) {
        uint8_t *to = payload + steps->dst;
        uint64_t gpr = values->gpr[register_of[steps->arg & 7]];
        switch (steps->op) {
        case LANE_PLAN_OP_GPR:
            copy_bytes(to, &gpr, steps->size);
            break;
        case LANE_PLAN_OP_XMM:
            copy_bytes(to, &values->xmm[steps->arg & 7], steps->size);
            break;
        case LANE_PLAN_OP_STACK:
            stack_put(thread, values->stack, 8 + (int64_t)steps->imm, to, steps->size);
            break;
        case LANE_PLAN_OP_CSTR:
            used += (uint32_t)string_put(thread, gpr, payload, used, room, (uint32_t)steps->imm, to, flags);
            break;
        case LANE_PLAN_OP_STACK_CSTR:
            gpr = stack_word(thread, values->stack, 8 + (steps->imm >> 12));
            used += (uint32_t)string_put(thread, gpr, payload, used, room, (uint32_t)steps->imm & 4095, to, flags);
            break;
        }
    }
    return used;
}

static uint32_t step_bytes(const struct strobe_plan_op *step)
{
    return step->op == LANE_PLAN_OP_CSTR || step->op == LANE_PLAN_OP_STACK_CSTR ? sizeof(struct lane_string) : step->op == LANE_PLAN_OP_WORD_XMM ? 0 : step->size;
}

/* True when the step is one of those known, within its limits. */
static bool step_valid(const struct strobe_plan_op *step, bool at_exit)
{
    switch (step->op) {
    case LANE_PLAN_OP_GPR:
        return step->size >= 1 && step->size <= 8 && step->arg < 8;
    case LANE_PLAN_OP_XMM:
        return (step->size == 4 || step->size == 8) && step->arg < (at_exit ? 2 : 8);
    case LANE_PLAN_OP_STACK:
        return step->size >= 1 && step->imm >= 0 && !at_exit;
    case LANE_PLAN_OP_CSTR:
        return step->imm >= 0 && step->imm < 4096 && step->arg < 8;
    case LANE_PLAN_OP_STACK_CSTR:
        return step->imm >= 0 && !at_exit;
    case LANE_PLAN_OP_WORD_XMM:
        return at_exit;
    }
    return false;
}

/* The steps of one list: their number without END, and the bytes of their fixed part (a multiple of 8). -1: not a plan. */
static int32_t list_length(const struct strobe_plan_op *steps, uint32_t count, bool at_exit, uint32_t *fixed)
{
    *fixed = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].op == LANE_PLAN_OP_END)
            return (int32_t)i;
        uint32_t end = steps[i].dst + step_bytes(&steps[i]);
        if (!step_valid(&steps[i], at_exit))
            return -1;
        *fixed = end > *fixed ? (end + 7) & ~7u : *fixed;
    }
    return -1;
}

/* Makes moves of the enter list. False when it must be run step by step. */
static bool compile_moves(struct strobe_hook *hook, const struct strobe_plan_op *steps, uint32_t count, uint32_t room)
{
    uint32_t end = 0;
    hook->stack_reach = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct strobe_plan_op *step = &steps[i];
        struct move *move = &hook->move[i];
        if (i == MOVES_MAX || step->size > 8 || step->dst < end || step->dst + 8u > room)
            return false; /* a move stores 8 bytes, so it must not reach back into the one before or past the entry */
        switch (step->op) {
        case LANE_PLAN_OP_GPR:
            move->source = step->arg == 7 ? 16 : 8 * step->arg;
            break;
        case LANE_PLAN_OP_XMM:
            move->source = 8 * step->arg - 64;
            break;
        case LANE_PLAN_OP_STACK:
            move->source = (int32_t)offsetof(struct saved, slot) + 8 + step->imm;
            hook->stack_reach = 16 + (uint32_t)step->imm > hook->stack_reach ? 16 + (uint32_t)step->imm : hook->stack_reach;
            if (step->imm > 2048)
                return false;
            break;
        default:
            return false;
        }
        move->dst = step->dst;
        move->mask = step->size == 8 ? ~0ull : (1ull << (8 * step->size)) - 1;
        end = step->dst + step->size;
    }
    hook->moves = (uint8_t)count;
    return true;
}

/* Fills in the hook from its plan. False when the plan is not valid. `plan` must last as long as the hook. */
bool hook_compile(struct strobe_hook *hook, const struct strobe_plan_op *plan, uint32_t steps)
{
    uint32_t fixed, exit_fixed;
    int32_t enter = list_length(plan, steps, false, &fixed);
    if (enter < 0)
        return false;
    int32_t leave = list_length(plan + enter + 1, steps - (uint32_t)enter - 1, true, &exit_fixed);
    if (leave < 0)
        return false;
    hook->enter = plan;
    hook->exit = plan + enter + 1;
    hook->fixed = (uint16_t)fixed;
    hook->exit_fixed = (uint16_t)exit_fixed;
    hook->slots = (uint8_t)(1 + (fixed + LANE_SLOT_BYTES - 1) / LANE_SLOT_BYTES);
    hook->direct = compile_moves(hook, plan, (uint32_t)enter, (hook->slots - 1u) * LANE_SLOT_BYTES);
    for (int32_t i = 0; i < leave; i++)
        if (hook->exit[i].op == LANE_PLAN_OP_WORD_XMM)
            hook->word_xmm = 1;
        else
            hook->exit_steps = 1;
    return true;
}
