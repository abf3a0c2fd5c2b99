// Plans with walk programs, and what their images must hold. Included by C++ programs that say on stdout, one a line:
//     expect CALL ADDRESS HEX      these bytes are in the image of call CALL
//     state CALL ADDRESS STATE BYTES    a region begins there, has that RegionState and so many bytes
//     absent CALL ADDRESS          this byte is not in it
//     regions CALL COUNT           it has so many
//     truncated CALL               the entry says that it was cut; no other may
#pragma once
#define _Static_assert static_assert
extern "C" {
#include "../../../agent/native/layout.gen.h"
#include "patching.h"
}
#include <vector>

static long argument;
using Section = std::vector<lane_walk_step>;

extern "C" {
TRACED long take(const void *object, long call) { __asm__ volatile("" : : "r"(object) : "memory"); return call; }
}

static lane_walk_step step(int op, uint32_t offset, size_t size, uint32_t target = LANE_WALK_NOTHING, unsigned limit = 0, unsigned flags = 0, uint64_t a = 0, uint64_t b = 0)
{
    return {uint8_t(op), uint8_t(flags), uint16_t(limit), offset, uint32_t(size), target, a, b};
}
static const lane_walk_step end = step(LANE_WALK_OP_END, 0, 0);
static lane_walk_step point(uint32_t offset, size_t size, uint32_t target = LANE_WALK_NOTHING, unsigned flags = 0) { return step(LANE_WALK_OP_POINT, offset, size, target, 0, flags); }

// rdi at 0, rsi at 8, the image's descriptor at 16; the section's first program runs on rdi.
static std::vector<uint8_t> plan(const Section &section, int budget = 8000, std::vector<plan_op> more = {})
{
    std::vector<plan_op> ops{{GPR, 0, 8, 0, 0}, {GPR, 1, 8, 8, 0}};
    ops.insert(ops.end(), more.begin(), more.end());
    ops.push_back({LANE_PLAN_OP_IMAGE, 0, 0, 16, budget});
    ops.push_back({LANE_PLAN_OP_WALK, 0, 0, 0, 0});
    ops.insert(ops.end(), 2, plan_op{END, 0, 0, 0, 0});
    std::vector<uint8_t> made((const uint8_t *)ops.data(), (const uint8_t *)(ops.data() + ops.size()));
    made.insert(made.end(), (const uint8_t *)section.data(), (const uint8_t *)(section.data() + section.size()));
    return made;
}

static uint64_t hook_for(void *function, uint32_t id, const std::vector<uint8_t> &made)
{
    uint64_t hook = recorder.hook_new(id, (uint64_t)function, made.data(), uint32_t(made.size()));
    if (!hook)
        fail("the plan of hook %u is refused", id);
    return hook;
}

// Traces `take` with the section. A later call gives it another one.
static void walk(const Section &section, int budget = 8000)
{
    static uint64_t thunk_word;
    if (getenv("SELFTEST_PLAIN"))
        return;
    uint64_t hook = hook_for((void *)take, 1, plan(section, budget));
    if (!thunk_word)
        thunk_word = patch_with((uint64_t)take, hook, recorder.enter_gpr);
    else
        poke(thunk_word, &hook, sizeof hook);
}

static void expect(long call, const void *address, size_t bytes)
{
    if (getenv("SELFTEST_QUIET")) // a structure's padding was never written
        return;
    printf("expect %ld %#lx ", call, (unsigned long)address);
    for (size_t i = 0; i < bytes; i++)
        printf("%02x", ((const uint8_t *)address)[i]);
    puts("");
}
template <typename T> static void expect(long call, const T *object) { expect(call, object, sizeof *object); }
static void absent(long call, const void *address) { printf("absent %ld %#lx\n", call, (unsigned long)address); }
static void state(long call, const void *address, unsigned what, size_t bytes) { printf("state %ld %#lx %u %zu\n", call, (unsigned long)address, what, bytes); }
