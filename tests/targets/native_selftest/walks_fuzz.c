/* Random capture plans on random memory, against the recorder's copier. A plan is refused, or what it copies stays within the payload, with
 * nothing faulting and nothing hanging, and is the same read by loads and by system calls. Some cases are written to a file, for a model of
 * what they mean (tests/harness/walk_model.py) to check.
 *
 *     PROGRAM POOL SEED CASES [FILE EVERY]
 */
#define _GNU_SOURCE
#include "../../../agent/native/recorder_walk.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK(condition) do { if (!(condition)) { fprintf(stderr, "%s:%d: case %u: %s\n", __FILE__, __LINE__, case_number, #condition); _exit(1); } } while (0)
#define ARENA 0x200000000000ull
#define PAGES 8u
#define PAGE 4096u
#define PROGRAMS 8u
#define STEPS 64u
#define HEAD 12u /* plan steps at most */

static uint32_t case_number;
static uint64_t seed;
static uint8_t readable[PAGES];

static uint64_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1dull >> 11;
}
static uint32_t chance(uint32_t below) { return (uint32_t)(draw() % below); }
static bool one_in(uint32_t times) { return !chance(times); }

static uint64_t random_pointer(void)
{
    uint64_t inside = ARENA + chance(PAGES * PAGE);
    switch (chance(16)) {
    case 0: return 0;
    case 1: return draw() << 11 ^ draw();
    case 2: return chance(5000);
    case 3: return inside;
    case 4: return ARENA + chance(PAGES) * PAGE + PAGE - 1 - chance(70);
    case 5: return ~0ull - chance(100);
    default: return ARENA + chance(PAGES * PAGE / 512) * 512 + 8 * chance(16); /* few places, so that things meet */
    }
}

static uint64_t random_word(void)
{
    switch (chance(16)) {
    case 0: return chance(8);
    case 1: return chance(200);
    case 2: return (1ull << chance(12)) - 1;
    case 3: return draw() << 11 ^ draw();
    case 4: return 0x0000006f6c6c6568;
    default: return random_pointer();
    }
}

static void memory_change(void)
{
    if (one_in(8)) { /* another page cannot be read */
        uint32_t page = chance(PAGES);
        readable[page] = !one_in(3) || page < 3;
        CHECK(!mprotect((void *)(ARENA + page * PAGE), PAGE, readable[page] ? PROT_READ | PROT_WRITE : PROT_NONE));
    }
    for (uint32_t words = one_in(64) ? PAGES * PAGE / 8 : 200; words; words--) {
        uint32_t at = 8 * chance(PAGES * PAGE / 8);
        if (readable[at / PAGE])
            *(uint64_t *)(ARENA + at) = random_word();
    }
}

static uint32_t sizes[PROGRAMS], starts[PROGRAMS], programs;

static uint32_t field_in(uint32_t size, uint32_t bytes) { return size > bytes ? (one_in(10) ? chance(size - bytes + 1) : 8 * chance((size - bytes) / 8 + 1)) : 0; }
static uint64_t two_fields(uint32_t size) { return field_in(size, 8) | (uint64_t)field_in(size, 8) << 32; }

/* A step for objects of `size` bytes that is likely to be valid. */
static struct lane_walk_step random_step(uint32_t size)
{
    struct lane_walk_step step = {.op = (uint8_t)(1 + chance(15)), .limit = (uint16_t)(one_in(4) ? chance(200) : chance(12)), .offset = field_in(size, 8)};
    uint32_t target = chance(programs);
    step.target = one_in(3) ? LANE_WALK_NOTHING : starts[target];
    step.size = (step.target == LANE_WALK_NOTHING ? 0 : sizes[target]) + (one_in(3) ? 8 * chance(6) : 0);
    step.a = field_in(size, 8);
    switch (step.op) {
    case LANE_WALK_OP_POINT: step.flags = one_in(3) ? LANE_WALK_FLAG_SOFT : 0; break;
    case LANE_WALK_OP_TEXT: step.size = 1u << chance(3); break;
    case LANE_WALK_OP_ARRAY:
        step.flags = (uint8_t)(chance(4) & 3);
        step.b = one_in(3) ? 8 * chance(4) : 0;
        step.size = step.size ? step.size : 1 + chance(20);
        break;
    case LANE_WALK_OP_EACH: {
        uint32_t room = size - step.offset;
        step.limit = (uint16_t)(step.size ? room / step.size : chance(5));
        step.flags = one_in(2) ? LANE_WALK_FLAG_COUNTED : 0;
        break;
    }
    case LANE_WALK_OP_WHEN:
        step.size = 1u << chance(4);
        step.limit = one_in(2) ? 0 : (uint16_t)(1u << chance(9));
        step.flags = one_in(2) ? LANE_WALK_FLAG_NOT : 0;
        step.a = chance(4);
        step.b = step.a + (one_in(2) ? 0 : draw());
        for (uint32_t tries = 0; tries < 8 && step.target != LANE_WALK_NOTHING && sizes[target] > size; tries++) {
            target = chance(programs);
            step.target = starts[target];
        }
        break;
    case LANE_WALK_OP_LIST:
        step.size += 8;
        step.a = field_in(step.size, 8);
        step.flags = one_in(2) ? LANE_WALK_FLAG_SENTINEL : 0;
        step.b = 8 * chance(4);
        break;
    case LANE_WALK_OP_TREE:
        step.size += 16;
        step.a = field_in(step.size, 8);
        step.b = field_in(step.size, 8);
        break;
    case LANE_WALK_OP_BLOCKS:
        step.offset = field_in(size, 32);
        step.a = field_in(size, 32);
        step.size += !step.size;
        step.b = 1 + chance(9);
        break;
    case LANE_WALK_OP_MAPPED:
        step.a = two_fields(size);
        step.size += !step.size;
        step.b = 1 + chance(9);
        break;
    case LANE_WALK_OP_RING:
        step.a = two_fields(size);
        step.b = field_in(size, 8);
        step.size += !step.size;
        break;
    case LANE_WALK_OP_SWISS: step.size += !step.size; break;
    case LANE_WALK_OP_BTREE:
        step.size += 8;
        step.b = step.size | (uint64_t)chance(step.size - 1) << 32;
        break;
    case LANE_WALK_OP_AT: step.a = random_pointer(); break;
    case LANE_WALK_OP_DYNAMIC: step.limit = (uint16_t)(step.size + chance(40)); break;
    case LANE_WALK_OP_NEAR:
        step.a = 8 * (uint64_t)((int64_t)chance(40) - 20);
        step.b = 8 * (uint64_t)((int64_t)chance(8) - 6);
        step.flags = (uint8_t)((one_in(2) ? LANE_WALK_FLAG_TOLD : 0) | (one_in(2) ? LANE_WALK_FLAG_SOFT : 0));
        break;
    }
    return step;
}

/* The section and where its programs begin. */
static uint32_t random_section(struct lane_walk_step *steps)
{
    uint32_t count = 0, lengths[PROGRAMS];
    programs = 1 + chance(PROGRAMS);
    for (uint32_t i = 0; i < programs; i++) {
        sizes[i] = 8 * (1 + chance(one_in(4) ? 24 : 8));
        lengths[i] = chance(5);
        starts[i] = count;
        count += lengths[i] + 1;
    }
    for (uint32_t i = 0, at = 0; i < programs; i++) {
        for (uint32_t k = 0; k < lengths[i]; k++)
            steps[at++] = random_step(sizes[i]);
        steps[at++] = (struct lane_walk_step){.op = LANE_WALK_OP_END, .target = LANE_WALK_NOTHING};
    }
    return count;
}

/* Enter list, END, END, section. Returns the bytes of all. */
static uint32_t random_plan(uint8_t *plan)
{
    struct strobe_plan_op *head = (struct strobe_plan_op *)plan;
    static struct lane_walk_step steps[STEPS];
    uint32_t count = random_section(steps), registers = 1 + chance(6), at = 0, walks = 1 + chance(3);
    for (uint32_t i = 0; i < registers; i++)
        head[at++] = (struct strobe_plan_op){LANE_PLAN_OP_GPR, (uint8_t)i, 8, (uint8_t)(8 * i), 0};
    if (one_in(3))
        head[at++] = (struct strobe_plan_op){LANE_PLAN_OP_CSTR, 0, 8, (uint8_t)(8 * registers + 8), (int32_t)chance(300)};
    head[at++] = (struct strobe_plan_op){LANE_PLAN_OP_IMAGE, 0, 0, (uint8_t)(8 * registers), (int32_t)(one_in(3) ? chance(400) : chance(9000))};
    for (uint32_t i = 0; i < walks; i++) {
        uint32_t dst = 8 * chance(registers), program = chance(programs);
        for (uint32_t tries = 0; tries < 6 && sizes[program] > 8 * registers + 8 - dst; tries++) {
            program = chance(programs);
            dst = one_in(2) ? 0 : dst;
        }
        head[at++] = (struct strobe_plan_op){LANE_PLAN_OP_WALK, 0, 0, (uint8_t)dst, (int32_t)starts[program]};
    }
    head[at++] = (struct strobe_plan_op){0};
    head[at++] = (struct strobe_plan_op){0};
    CHECK(at <= HEAD + 2);
    memcpy(head + at, steps, count * sizeof *steps);
    uint32_t bytes = at * 8 + count * (uint32_t)sizeof *steps;
    if (one_in(3)) /* a damaged plan */
        for (uint32_t i = 1 + chance(3); i; i--)
            plan[chance(bytes)] = (uint8_t)draw();
    if (one_in(50))
        bytes = chance(bytes);
    return bytes;
}

/* Runs the plan into `room` bytes right before a page that is not there. */
static uint32_t run(struct thread *thread, const struct strobe_hook *hook, const uint64_t *registers, uint32_t room, bool direct, struct walker *walker, uint8_t *end, uint8_t *flags)
{
    uint64_t xmm[8] = {0};
    struct values values = {registers, xmm, registers, NULL, false}; /* a damaged plan may ask for vectors: not this program's own */
    struct capture to = {walker, end - room, room, 0};
    uint32_t ours = faults_ours;
    faults_ours = direct ? ours : 0;
    memset(end - room, 0xee, room);
    uint32_t used = capture(thread, hook, false, &values, &to);
    faults_ours = ours;
    *flags = to.flags;
    return used;
}

static void write_case(FILE *file, const uint8_t *plan, uint32_t bytes, const uint64_t *registers, uint32_t room, const uint8_t *payload, uint32_t used, uint8_t flags)
{
    uint32_t numbers[] = {case_number, bytes, room, used, flags};
    fwrite(numbers, sizeof numbers, 1, file);
    fwrite(plan, bytes, 1, file);
    fwrite(registers, 8, 9, file);
    fwrite(payload, used, 1, file);
    fwrite(readable, PAGES, 1, file);
    static const uint8_t nothing[PAGE];
    for (uint32_t page = 0; page < PAGES; page++)
        fwrite(readable[page] ? (const void *)(ARENA + page * PAGE) : nothing, PAGE, 1, file);
}

int main(int count, char **arguments)
{
    CHECK(count == 4 || count == 6);
    seed = strtoull(arguments[2], NULL, 10) * 0x9e3779b97f4a7c15ull + 1;
    uint32_t cases = (uint32_t)atol(arguments[3]), every = count == 6 ? (uint32_t)atol(arguments[5]) : 0, accepted = 0, cut = 0, regions = 0;
    FILE *file = count == 6 ? fopen(arguments[4], "wb") : NULL;
    CHECK(!strobe_init(arguments[1]) && !strobe_arm());
    faults_ours |= FAULTS_HOOKED; /* nothing here changes a handler or a mask */
    CHECK(faults_ours == FAULTS_SURE);
    CHECK(mmap((void *)ARENA, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)ARENA);
    memset(readable, 1, sizeof readable);
    struct thread *thread = thread_self();
    struct walker *walkers = calloc(2, sizeof *walkers);
    uint8_t *ends[2];
    for (uint32_t i = 0; i < 2; i++) {
        ends[i] = (uint8_t *)mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 3 * PAGE;
        munmap(ends[i], PAGE);
    }
    for (case_number = 0; case_number < cases; case_number++) {
        memory_change();
        uint8_t plan[HEAD * 8 + 16 + STEPS * 32] __attribute__((aligned(8)));
        uint32_t bytes = random_plan(plan), room = 8 * (40 + chance(one_in(2) ? 100 : 970));
        struct strobe_hook *hook = calloc(1, sizeof *hook);
        uint32_t *needs = malloc(bytes / 32 * sizeof *needs + 4);
        uint8_t *copy = malloc(bytes ? bytes : 1); /* of its exact size */
        memcpy(copy, plan, bytes);
        if (hook_compile(hook, (struct strobe_plan_op *)copy, bytes, needs)) {
            uint64_t registers[9];
            for (uint32_t i = 0; i < 9; i++)
                registers[i] = random_pointer();
            uint8_t flags[2];
            uint32_t used[2];
            for (uint32_t i = 0; i < 2; i++) {
                alarm(10);
                used[i] = run(thread, hook, registers, room, i == 0, &walkers[i], ends[i], &flags[i]);
                CHECK(used[i] <= room && used[i] >= hook->fixed);
            }
            CHECK(used[0] == used[1] && flags[0] == flags[1] && !memcmp(ends[0] - room, ends[1] - room, used[0]));
            accepted++;
            cut += flags[0] & LANE_ENTRY_FLAG_TRUNCATED;
            regions += used[0] > 400;
            if (file && case_number % every == 0)
                write_case(file, plan, bytes, registers, room, ends[0] - room, used[0], flags[0]);
        }
        free(copy);
        free(needs);
        free(hook);
    }
    if (file)
        fclose(file);
    free(walkers);
    printf("cases %u accepted %u cut %u large %u\n", cases, accepted, cut / 2, regions);
    return 0;
}
