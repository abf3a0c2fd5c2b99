/* Compiling a capture plan: checked once, so that running it needs few checks. */
#include "recorder_walk.h"

#define BUDGET_MAX 65535

/* Bytes of payload at a fixed place. */
static uint32_t step_bytes(const struct strobe_plan_op *step)
{
    switch (step->op) {
    case LANE_PLAN_OP_CSTR:
    case LANE_PLAN_OP_STACK_CSTR:
    case LANE_PLAN_OP_IMAGE:
        return sizeof(struct lane_string);
    case LANE_PLAN_OP_WORD_XMM:
    case LANE_PLAN_OP_WALK:
        return 0;
    case LANE_PLAN_OP_LEA:
        return 8;
    case LANE_PLAN_OP_VECTOR:
        return step->size == 32 ? 32 : 16;
    case LANE_PLAN_OP_X87:
        return 16;
    }
    return step->size;
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
    case LANE_PLAN_OP_LEA:
        return !at_exit;
    case LANE_PLAN_OP_VECTOR:
        return step->arg < (at_exit ? 2 : 8);
    case LANE_PLAN_OP_X87:
        return step->arg < 2 && at_exit;
    case LANE_PLAN_OP_IMAGE:
        return step->imm >= 0 && step->imm <= BUDGET_MAX;
    case LANE_PLAN_OP_WALK:
        return step->imm >= 0;
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
        uint32_t bytes = step_bytes(&steps[i]), end = bytes ? steps[i].dst + bytes : 0;
        if (!step_valid(&steps[i], at_exit))
            return -1;
        *fixed = end > *fixed ? (end + 7) & ~7u : *fixed;
    }
    return -1;
}

/* A move for the step; false when it is not one that a move can be made of. */
static bool move_make(struct move *move, const struct strobe_plan_op *step)
{
    if (step->size > 8 || (step->op == LANE_PLAN_OP_STACK && step->imm > 2048))
        return false;
    switch (step->op) {
    case LANE_PLAN_OP_GPR:
        move->source = step->arg == 7 ? 16 : 8 * step->arg;
        break;
    case LANE_PLAN_OP_XMM:
        move->source = 8 * step->arg - 64;
        break;
    case LANE_PLAN_OP_STACK:
        move->source = (int32_t)offsetof(struct saved, slot) + 8 + step->imm;
        break;
    default:
        return false;
    }
    move->dst = step->dst;
    move->mask = step->size == 8 ? ~0ull : (1ull << (8 * step->size)) - 1;
    return true;
}

/* Puts the steps that moves are made of first, in their order. A move stores 8 bytes: they must not reach back into the one before, nor past the
 * entry, whose fixed part has `room` bytes; what they reach of other steps' is written after them. */
static void compile_moves(struct strobe_hook *hook, struct strobe_plan_op *steps, uint32_t count, uint32_t room)
{
    uint32_t end = 0;
    hook->stack_reach = 0;
    hook->moves = 0;
    for (uint32_t i = 0; i < count && hook->moves < MOVES_MAX; i++) {
        const struct strobe_plan_op step = steps[i];
        if (step.dst < end || step.dst + 8u > room || !move_make(&hook->move[hook->moves], &step))
            continue;
        end = step.dst + step.size;
        if (step.op == LANE_PLAN_OP_STACK && 16 + (uint32_t)step.imm > hook->stack_reach)
            hook->stack_reach = 16 + (uint32_t)step.imm;
        for (uint32_t at = i; at > hook->moves; at--)
            steps[at] = steps[at - 1];
        steps[hook->moves++] = step;
    }
    hook->direct = hook->moves == count;
}

/* Slots of an entry with all strings and the image as long as they may be. */
static uint8_t most_slots(const struct strobe_plan_op *steps, uint32_t count, uint32_t fixed)
{
    uint32_t bytes = fixed;
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].op == LANE_PLAN_OP_CSTR)
            bytes += (uint32_t)steps[i].imm;
        if (steps[i].op == LANE_PLAN_OP_STACK_CSTR)
            bytes += (uint32_t)steps[i].imm & 4095;
        if (steps[i].op == LANE_PLAN_OP_IMAGE)
            bytes += 8 + (uint32_t)steps[i].imm;
        if (bytes > LANE_PAYLOAD_BYTES_MAX)
            bytes = LANE_PAYLOAD_BYTES_MAX;
    }
    return (uint8_t)(1 + (bytes + LANE_SLOT_BYTES - 1) / LANE_SLOT_BYTES);
}

/* Each walk begins at a step of the section and reads of the payload only what is at fixed places; one image a list takes what they copy. */
static bool walks_valid(const struct strobe_plan_op *steps, uint32_t count, uint32_t fixed, const uint32_t *needs, uint32_t walk_steps)
{
    uint32_t images = 0, walks = 0;
    for (uint32_t i = 0; i < count; i++) {
        images += steps[i].op == LANE_PLAN_OP_IMAGE;
        if (steps[i].op != LANE_PLAN_OP_WALK)
            continue;
        walks++;
        if ((uint32_t)steps[i].imm >= walk_steps || steps[i].dst + needs[steps[i].imm] > fixed)
            return false;
    }
    return images <= 1 && images >= (walks > 0) && walks <= WALKS_MAX;
}

static bool reads_memory(const struct strobe_plan_op *steps, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (steps[i].op == LANE_PLAN_OP_CSTR || steps[i].op == LANE_PLAN_OP_STACK_CSTR || steps[i].op == LANE_PLAN_OP_WALK)
            return true;
    return false;
}

/* Fills in the hook from its plan. False when the plan is not valid. `plan` and `needs` must last as long as the hook. */
bool hook_compile(struct strobe_hook *hook, struct strobe_plan_op *plan, uint32_t bytes, uint32_t *needs)
{
    uint32_t steps = bytes / LANE_PLAN_OP_BYTES, fixed, exit_fixed;
    int32_t enter = list_length(plan, steps, false, &fixed);
    if (enter < 0)
        return false;
    int32_t leave = list_length(plan + enter + 1, steps - (uint32_t)enter - 1, true, &exit_fixed);
    if (leave < 0)
        return false;
    hook->enter = plan;
    hook->exit = plan + enter + 1;
    hook->walk = (const struct lane_walk_step *)(hook->exit + leave + 1);
    hook->walk_needs = needs;
    uint32_t section = bytes - (uint32_t)((const uint8_t *)hook->walk - (const uint8_t *)plan);
    if (section % LANE_WALK_STEP_BYTES || !walk_compile(hook->walk, section / LANE_WALK_STEP_BYTES, needs))
        return false;
    if (!walks_valid(hook->enter, (uint32_t)enter, fixed, needs, section / LANE_WALK_STEP_BYTES) ||
        !walks_valid(hook->exit, (uint32_t)leave, exit_fixed, needs, section / LANE_WALK_STEP_BYTES))
        return false;
    hook->reads = reads_memory(hook->enter, (uint32_t)enter);
    hook->exit_reads = reads_memory(hook->exit, (uint32_t)leave);
    hook->fixed = (uint16_t)fixed;
    hook->exit_fixed = (uint16_t)exit_fixed;
    hook->slots = (uint8_t)(1 + (fixed + LANE_SLOT_BYTES - 1) / LANE_SLOT_BYTES);
    hook->most = most_slots(plan, (uint32_t)enter, fixed);
    hook->exit_most = most_slots(hook->exit, (uint32_t)leave, exit_fixed);
    compile_moves(hook, plan, (uint32_t)enter, (hook->slots - 1u) * LANE_SLOT_BYTES);
    for (int32_t i = 0; i < leave; i++)
        if (hook->exit[i].op == LANE_PLAN_OP_WORD_XMM)
            hook->word_xmm = 1;
        else
            hook->exit_steps = 1;
    return true;
}
