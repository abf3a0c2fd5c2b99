/* What one traced call costs in the recorder itself: ns per call of an almost empty function, by what is recorded. Prints one JSON object.
 *
 *     gcc -O2 -pthread tests/bench/native_floor.c -o native_floor -ldl && ./native_floor agent/native/build/strobe-recorder.so
 *
 * A thread of this program frees closed chunks at once, so nothing is dropped. Each figure is the best of ROUNDS rounds less the plain
 * call's: on a shared machine the best is the least disturbed. `rdtscPair` is what the two time stamps of a call cost on this processor.
 */
#define _GNU_SOURCE
#include "../../agent/native/layout.gen.h"
#include "../targets/native_selftest/patching.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>

#define CALLS 4000
#define ROUNDS 1500
#define CHUNKS 64

static struct lane_pool *shared;
static volatile int over;

TRACED long empty(long a, long b) { __asm__ volatile("" : : : "memory"); return a; }
TRACED long with_exit(long a, long b) { __asm__ volatile("" : : : "memory"); return a; }
TRACED long enter_only(long a, long b) { __asm__ volatile("" : : : "memory"); return a; }
TRACED long two_ints(long a, long b) { __asm__ volatile("" : : : "memory"); return a; }
TRACED long six_ints(long a, long b) { __asm__ volatile("" : : : "memory"); return a; }
TRACED long text(long a, long b) { __asm__ volatile("" : : : "memory"); return a; }
TRACED long disabled(long a, long b) { __asm__ volatile("" : : : "memory"); return a; }
TRACED long sampled(long a, long b) { __asm__ volatile("" : : : "memory"); return a; }

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *free_chunks(void *unused)
{
    while (!over) {
        for (uint32_t i = 0; i < CHUNKS; i++) {
            struct lane_chunk *chunk = (struct lane_chunk *)((uint8_t *)shared + LANE_CHUNKS_OFFSET + (uint64_t)i * LANE_CHUNK_BYTES);
            if (__atomic_load_n(&chunk->state, __ATOMIC_ACQUIRE) != LANE_CHUNK_STATE_CLOSED)
                continue;
            __atomic_store_n(&chunk->state, LANE_CHUNK_STATE_FREE, __ATOMIC_RELEASE);
            __atomic_fetch_add(&shared->chunks_free, 1, __ATOMIC_ACQ_REL);
        }
        usleep(200);
    }
    return unused;
}

static void make_pool(const char *path)
{
    int file = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    off_t bytes = LANE_CHUNKS_OFFSET + (off_t)CHUNKS * LANE_CHUNK_BYTES;
    if (file < 0 || posix_fallocate(file, 0, bytes))
        fail("cannot make %s", path);
    shared = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    shared->version = LANE_LAYOUT_VERSION;
    shared->clock = getenv("NO_TSC") ? LANE_CLOCK_MONOTONIC : LANE_CLOCK_TSC;
    shared->chunk_count = shared->chunks_free = CHUNKS;
    shared->hooks_offset = LANE_HOOKS_OFFSET;
    shared->hook_capacity = LANE_HOOK_CAPACITY;
    shared->crash_count = LANE_CRASH_COUNT;
    shared->crash_offset = LANE_CRASH_OFFSET;
    shared->chunks_offset = LANE_CHUNKS_OFFSET;
    shared->pool_bytes = (uint64_t)bytes;
    shared->recording = 1;
    shared->magic = LANE_POOL_MAGIC;
}

static double cost(long (*function)(long, long), long a)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = seconds();
        for (int i = 0; i < CALLS; i++)
            function(a, i);
        double took = (seconds() - begin) / CALLS * 1e9;
        best = took < best ? took : best;
    }
    return best;
}

static double stamps(void)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = seconds();
        for (int i = 0; i < CALLS; i++) {
            (void)__builtin_ia32_rdtsc();
            (void)__builtin_ia32_rdtsc();
        }
        double took = (seconds() - begin) / CALLS * 1e9;
        best = took < best ? took : best;
    }
    return best;
}

static ucontext_t home, other;
static double there, here;
static void routine(void) { there = cost(two_ints, 0); }

static void on_a_coroutine(void)
{
    getcontext(&other);
    other.uc_stack.ss_sp = malloc(65536);
    other.uc_stack.ss_size = 65536;
    other.uc_link = &home;
    makecontext(&other, routine, 0);
    swapcontext(&home, &other);
    here = cost(two_ints, 0);
}

int main(int count, char **arguments)
{
    static const struct plan_op six[] = {{GPR, 0, 8, 0, 0}, {GPR, 1, 8, 8, 0}, {GPR, 2, 8, 16, 0}, {GPR, 3, 8, 24, 0}, {GPR, 4, 8, 32, 0}, {GPR, 5, 8, 40, 0}, {END, 0, 0, 0, 0}, {END, 0, 0, 0, 0}};
    static const struct plan_op string[] = {{CSTR, 0, 8, 0, 256}, {END, 0, 0, 0, 0}, {END, 0, 0, 0, 0}};
    const struct { const char *name; long (*function)(long, long); const struct plan_op *plan; uint32_t flags; long argument; } cases[] = {
        {"enter", enter_only, NO_PLAN, 1, 0}, {"enterExit", with_exit, NO_PLAN, 3, 0}, {"twoInts", two_ints, TWO_INTS, 3, 0}, {"sixInts", six_ints, six, 3, 0},
        {"literal", text, string, 3, (long)"a string of 28 characters..."}, {"disabled", disabled, NO_PLAN, 0, 0}, {"sampled1of100", sampled, NO_PLAN, 3, 0},
    };
    char path[64];
    if (count < 2)
        fail("RECORDER");
    snprintf(path, sizeof path, "/dev/shm/strobe-bench-%d", getpid());
    make_pool(path);
    load_recorder(arguments[1], path);
    unlink(path);
    pthread_t collector;
    pthread_create(&collector, NULL, free_chunks, NULL);
    double plain = cost(empty, 0);
    printf("{\"plain\": %.2f, \"rdtscPair\": %.2f", plain, stamps());
    struct lane_hook *hooks = (struct lane_hook *)((uint8_t *)shared + LANE_HOOKS_OFFSET);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hooks[i].flags = cases[i].flags;
        hooks[i].sample_period = cases[i].function == sampled ? 100 : 0;
        trace((void *)cases[i].function, i, cases[i].plan);
        printf(", \"%s\": %.2f", cases[i].name, cost(cases[i].function, cases[i].argument) - plain);
        fflush(stdout);
    }
    on_a_coroutine();
    printf(", \"onCoroutine\": %.2f, \"afterwards\": %.2f", there - plain, here - plain);
    char *heap = strdup("a string of 28 characters...");
    printf(", \"heapString\": %.2f, \"dropped\": %llu}\n", cost(text, (long)heap) - plain, (unsigned long long)shared->dropped_by_kind[LANE_KIND_ENTER]);
    over = 1;
    pthread_join(collector, NULL);
    free(heap);
    return 0;
}
