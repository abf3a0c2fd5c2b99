/* What capturing values costs: ns per call of an almost empty function, next to a plain memcpy of the same bytes and to the thunk alone, all in
 * turns in one run. Prints one JSON object: {"thunk": ns, "<case>": {"call": ns, "memcpy": ns, "bytes": n, "ratio": call / (thunk + memcpy)}, …}.
 * "memcpy" is one memcpy for each stretch where it lies, "memcpyAtOnce" one of as many bytes in a row.
 *
 *     g++ -O2 -pthread tests/bench/native_values.cpp -o native_values -ldl && ./native_values agent/native/build/strobe-recorder.so
 *
 * Each figure is the best of ROUNDS rounds less the plain call's.
 */
#define _Static_assert static_assert
extern "C" {
#include "../../agent/native/layout.gen.h"
#include "../targets/native_selftest/patching.h"
}
#include <map>
#include <string>
#include <sys/mman.h>
#include <time.h>
#include <vector>

#define CALLS 400
#define ROUNDS 3000
#define CHUNKS 64

static lane_pool *shared;

extern "C" {
#define FUNCTION(name) TRACED long name(long a, long b, long c, long d, long e, long f) { __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f) : "memory"); return a; }
FUNCTION(plain) FUNCTION(nothing) FUNCTION(two) FUNCTION(six) FUNCTION(deep) FUNCTION(string) FUNCTION(map) FUNCTION(bad)
}
typedef long Function(long, long, long, long, long, long);

static double seconds()
{
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/* Between the rounds, so that nothing is dropped and no other thread is needed; the first chunks are claimed again. */
static void free_chunks()
{
    for (uint32_t i = 0; i < CHUNKS; i++) {
        lane_chunk *chunk = (lane_chunk *)((uint8_t *)shared + LANE_CHUNKS_OFFSET + uint64_t(i) * LANE_CHUNK_BYTES);
        if (chunk->state != LANE_CHUNK_STATE_CLOSED)
            continue;
        chunk->state = LANE_CHUNK_STATE_FREE;
        shared->chunks_free++;
    }
    shared->claim_hint = 0;
}

static void make_pool(const char *path)
{
    int file = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    off_t bytes = LANE_CHUNKS_OFFSET + off_t(CHUNKS) * LANE_CHUNK_BYTES;
    if (file < 0 || posix_fallocate(file, 0, bytes))
        fail("cannot make %s", path);
    shared = (lane_pool *)mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    shared->version = LANE_LAYOUT_VERSION;
    shared->clock = LANE_CLOCK_TSC;
    shared->chunk_count = shared->chunks_free = CHUNKS;
    shared->hooks_offset = LANE_HOOKS_OFFSET;
    shared->hook_capacity = LANE_HOOK_CAPACITY;
    shared->crash_count = LANE_CRASH_COUNT;
    shared->crash_offset = LANE_CRASH_OFFSET;
    shared->chunks_offset = LANE_CHUNKS_OFFSET;
    shared->pool_bytes = uint64_t(bytes);
    shared->recording = 1;
    shared->magic = LANE_POOL_MAGIC;
}

struct Stretch { const void *from; size_t bytes; };

static void once(Function *function, long a, double &best)
{
    free_chunks();
    double begin = seconds();
    for (int i = 0; i < CALLS; i++)
        function(a, i, 3, 4, 5, 6);
    double took = (seconds() - begin) / CALLS * 1e9;
    best = took < best ? took : best;
}

static char buffer[65536];
static size_t total(const std::vector<Stretch> &stretches)
{
    size_t bytes = 0;
    for (const Stretch &stretch : stretches)
        bytes += stretch.bytes;
    return bytes;
}
static void copy_once(const std::vector<Stretch> &stretches, double &best)
{
    double begin = seconds();
    for (int i = 0; i < CALLS; i++) {
        char *to = buffer;
        for (const Stretch &stretch : stretches) {
            memcpy(to, stretch.from, stretch.bytes);
            to += stretch.bytes;
        }
        __asm__ volatile("" : : "r"(buffer) : "memory");
    }
    double took = (seconds() - begin) / CALLS * 1e9;
    best = took < best ? took : best;
}

struct Town { long code; char name[24]; };
struct Address { Town *town; long number; char street[32]; };
struct Customer { long id; Address *address; double limit; };
struct Order { long id; Customer *customer; double total; };

/* A plan: `registers` integer registers, then, with `section`, the image and the walk of register 0. */
static std::vector<uint8_t> plan(unsigned registers, const std::vector<lane_walk_step> &section)
{
    std::vector<plan_op> ops;
    for (unsigned i = 0; i < registers; i++)
        ops.push_back({LANE_PLAN_OP_GPR, uint8_t(i), 8, uint8_t(8 * i), 0});
    if (!section.empty()) {
        ops.push_back({LANE_PLAN_OP_IMAGE, 0, 0, uint8_t(8 * registers), 4096});
        ops.push_back({LANE_PLAN_OP_WALK, 0, 0, 0, 0});
    }
    ops.push_back({0, 0, 0, 0, 0});
    ops.push_back({0, 0, 0, 0, 0});
    std::vector<uint8_t> made((const uint8_t *)ops.data(), (const uint8_t *)(ops.data() + ops.size()));
    made.insert(made.end(), (const uint8_t *)section.data(), (const uint8_t *)(section.data() + section.size()));
    return made;
}

static lane_walk_step point(uint32_t offset, size_t size, uint32_t target) { return {LANE_WALK_OP_POINT, 0, 0, offset, uint32_t(size), target, 0, 0}; }
static const lane_walk_step end = {LANE_WALK_OP_END, 0, 0, 0, 0, LANE_WALK_NOTHING, 0, 0};

int main(int count, char **arguments)
{
    char path[64];
    if (count < 2)
        fail("RECORDER");
    snprintf(path, sizeof path, "/dev/shm/strobe-bench-%d", getpid());
    make_pool(path);
    load_recorder(arguments[1], path);
    unlink(path);
    trace_internals();
    if (recorder.arm())
        fail("strobe_arm");

    Town *town = new Town{7, "Utrecht"};
    Address *address = new Address{town, 12, "Oudegracht"};
    Customer *customer = new Customer{3, address, 100.5};
    Order *order = new Order{17, customer, -4};
    std::string *text = new std::string("forty characters, which are on the heap.");
    std::map<int, int> *numbers = new std::map<int, int>;
    for (int i = 0; i < 10; i++)
        (*numbers)[i] = i * i;
    std::vector<Stretch> nodes{{numbers, sizeof *numbers}};
    for (auto &pair : *numbers)
        nodes.push_back({(const char *)&pair - 32, 40});
    /* the register, then one stretch for each region */
    const struct { const char *name; Function *function; std::vector<uint8_t> plan; long argument; std::vector<Stretch> stretches; } cases[] = {
        {"nothing", nothing, plan(0, {}), 0, {}},
        {"twoScalars", two, plan(2, {}), 0, {{buffer + 60000, 16}}},
        {"sixScalars", six, plan(6, {}), 0, {{buffer + 60000, 48}}},
        {"structThreeDeep", deep, plan(1, {point(0, sizeof *order, 2), end, point(8, sizeof *customer, 4), end, point(8, sizeof *address, 6), end, point(0, sizeof *town, LANE_WALK_NOTHING), end}), (long)order,
            {{&order, 8}, {order, sizeof *order}, {customer, sizeof *customer}, {address, sizeof *address}, {town, sizeof *town}}},
        {"string", string, plan(1, {point(0, sizeof *text, 2), end, {LANE_WALK_OP_ARRAY, 0, 1024, 0, 1, LANE_WALK_NOTHING, 8, 0}, end}), (long)text,
            {{&text, 8}, {text, sizeof *text}, {text->data(), text->size()}}},
        {"mapOfTen", map, plan(1, {point(0, sizeof *numbers, 2), end, {LANE_WALK_OP_TREE, 0, 100, 16, 40, LANE_WALK_NOTHING, 16, 24}, end}), (long)numbers, nodes},
        {"badPointer", bad, plan(1, {point(0, 64, LANE_WALK_NOTHING), end}), 0x10000, {}},
    };
    constexpr int kinds = sizeof cases / sizeof cases[0];
    lane_hook *hooks = (lane_hook *)((uint8_t *)shared + LANE_HOOKS_OFFSET);
    double untraced = 1e9, calls[kinds], copies[kinds], at_once[kinds];
    for (int i = 0; i < kinds; i++) {
        hooks[i].flags = 3;
        calls[i] = copies[i] = at_once[i] = 1e9;
        uint64_t hook = recorder.hook_new(uint32_t(i), (uint64_t)cases[i].function, cases[i].plan.data(), uint32_t(cases[i].plan.size()));
        if (!hook)
            fail("the plan of %s is refused", cases[i].name);
        patch_with((uint64_t)cases[i].function, hook, recorder.enter_gpr);
    }
    for (int round = 0; round < ROUNDS; round++) {
        once(plain, 0, untraced);
        for (int i = 0; i < kinds; i++) {
            once(cases[i].function, cases[i].argument, calls[i]);
            copy_once(cases[i].stretches, copies[i]);
            copy_once({{buffer + 32768, total(cases[i].stretches)}}, at_once[i]);
        }
    }
    double thunk = calls[0] - untraced;
    printf("{\"thunk\": %.1f", thunk);
    for (int i = 1; i < kinds; i++) {
        size_t bytes = total(cases[i].stretches);
        double call = calls[i] - untraced, copy = copies[i] - copies[0];
        printf(", \"%s\": {\"call\": %.1f, \"memcpy\": %.1f, \"memcpyAtOnce\": %.1f, \"bytes\": %zu, \"ratio\": %.2f}", cases[i].name, call, copy, at_once[i] - at_once[0], bytes, call / (thunk + copy));
    }
    printf(", \"dropped\": %llu}\n", (unsigned long long)shared->dropped_by_kind[LANE_KIND_ENTER]);
    return 0;
}
