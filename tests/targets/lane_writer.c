/* Fills a pool as the recorder does (agent/native/recorder_lane.c), at a known rate and with numbered records, so that what arrives can be
 * compared with what was written. `lane_writer POOL COMMAND …`:
 *   run THREADS RECORDS RATE WAIT   each thread writes RECORDS records (an enter of 2 slots, an exit of 1, …) at RATE a second (0: as fast
 *                                   as it can); without a free chunk it drops and counts, or with WAIT=1 waits
 *   lines N CHILD                   prints N numbered lines, each between two records and with its mark; each CHILD-th by an unmarked child
 *   die RECORDS                     leaves a gap behind RECORDS records, then three more, and is killed
 *   crash                           fills a crash page and dies of SIGSEGV
 *   hold                            writes 10 records, then sleeps for good
 * Record i of a thread has hook = thread number (from 1) and word = i; an enter's payload is i, ~i. Says on stderr what it did. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "../../agent/native/layout.gen.h"

struct lane { uint32_t thread, order, at; int64_t chunk; uint64_t recorded, dropped; bool wait; };
struct work { struct lane lane; uint64_t records, rate; uint32_t number; };

static struct lane_pool *pool;

static uint64_t monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uint64_t now(void) { return pool->clock == LANE_CLOCK_TSC ? __rdtsc() : monotonic(); }
static char *chunk_at(int64_t index) { return (char *)pool + pool->chunks_offset + index * LANE_CHUNK_BYTES; }
static struct lane_hook *hook_at(uint32_t id) { return (struct lane_hook *)((char *)pool + pool->hooks_offset) + id; }

static bool claim(struct lane *lane, bool trace)
{
    int32_t keep = trace ? (int32_t)pool->reserve_chunks : 0;
    if (__atomic_sub_fetch(&pool->chunks_free, 1, __ATOMIC_ACQ_REL) < keep) {
        __atomic_add_fetch(&pool->chunks_free, 1, __ATOMIC_ACQ_REL);
        return false;
    }
    uint32_t from = __atomic_load_n(&pool->claim_hint, __ATOMIC_RELAXED), count = pool->chunk_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (from + i) % count, expected = LANE_CHUNK_STATE_FREE;
        struct lane_chunk *chunk = (struct lane_chunk *)chunk_at(index);
        if (!__atomic_compare_exchange_n(&chunk->state, &expected, LANE_CHUNK_STATE_OWNED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&pool->claim_hint, index + 1, __ATOMIC_RELAXED);
        chunk->pid = getpid();
        chunk->tid = syscall(SYS_gettid);
        memset((char *)chunk + LANE_CHUNK_MAP_OFFSET, 0, LANE_CHUNK_SLOTS);
        chunk->written = chunk->read = 0;
        chunk->thread = lane->thread;
        chunk->order = lane->order++;
        prctl(PR_GET_NAME, chunk->comm);
        __atomic_store_n(&chunk->serial, chunk->serial + 1, __ATOMIC_RELEASE);
        lane->chunk = index;
        lane->at = 0;
        return true;
    }
    __atomic_add_fetch(&pool->chunks_free, 1, __ATOMIC_ACQ_REL);
    return false;
}

static struct lane_entry *reserve(struct lane *lane, uint32_t slots)
{
    struct lane_chunk *chunk = (struct lane_chunk *)chunk_at(lane->chunk);
    chunk->written += slots;
    lane->at += slots;
    return (struct lane_entry *)((char *)chunk + LANE_CHUNK_SLOTS_OFFSET) + lane->at - slots;
}

static void publish(struct lane *lane, struct lane_entry *entry)
{
    uint32_t slot = entry - (struct lane_entry *)(chunk_at(lane->chunk) + LANE_CHUNK_SLOTS_OFFSET);
    __atomic_store_n((uint8_t *)chunk_at(lane->chunk) + LANE_CHUNK_MAP_OFFSET + slot, entry->slots, __ATOMIC_RELEASE);
}

static void leave(struct lane *lane)
{
    while (lane->at < LANE_CHUNK_SLOTS) {
        uint32_t left = LANE_CHUNK_SLOTS - lane->at;
        struct lane_entry *pad = reserve(lane, left < 255 ? left : 255);
        *pad = (struct lane_entry){.kind = LANE_KIND_PAD, .slots = left < 255 ? left : 255};
        publish(lane, pad);
    }
    __atomic_store_n(&((struct lane_chunk *)chunk_at(lane->chunk))->state, LANE_CHUNK_STATE_CLOSED, __ATOMIC_RELEASE);
    lane->chunk = -1;
}

static bool record(struct lane *lane, struct lane_entry head, const void *payload)
{
    bool trace = head.kind != LANE_KIND_OUTPUT_MARK;
    while (lane->chunk < 0 || lane->at + head.slots > LANE_CHUNK_SLOTS) {
        if (lane->chunk >= 0)
            leave(lane);
        if (claim(lane, trace))
            break;
        if (lane->wait) {
            usleep(200);
            continue;
        }
        __atomic_add_fetch(&pool->dropped_by_kind[head.kind], 1, __ATOMIC_RELAXED);
        if (trace)
            __atomic_add_fetch(&hook_at(head.hook)->dropped, 1, __ATOMIC_RELAXED);
        lane->dropped++;
        return false;
    }
    struct lane_entry *entry = reserve(lane, head.slots);
    *entry = head;
    if (payload)
        memcpy(entry + 1, payload, (head.slots - 1) * LANE_SLOT_BYTES);
    publish(lane, entry);
    lane->recorded++;
    return true;
}

static void numbered(struct lane *lane, uint32_t hook, uint64_t number)
{
    uint64_t payload[4] = {number, ~number}, span = (uint64_t)lane->thread << LANE_SPAN_THREAD_SHIFT | (number / 2 + 1);
    bool enter = number % 2 == 0;
    struct lane_entry head = {now(), span, hook, enter ? LANE_KIND_ENTER : LANE_KIND_EXIT, 0, enter ? 2 : 1, 0, number};
    record(lane, head, payload);
}

static void *thread_main(void *argument)
{
    struct work *work = argument;
    char name[16];
    snprintf(name, sizeof name, "writer-%u", work->number);
    prctl(PR_SET_NAME, name);
    uint64_t start = monotonic();
    for (uint64_t i = 0; i < work->records; i++) {
        numbered(&work->lane, work->number, i);
        if (work->rate && i % 64 == 0) {
            uint64_t due = start + i * 1000000000ull / work->rate, at = monotonic();
            if (due > at + 50000)
                nanosleep(&(struct timespec){(due - at) / 1000000000ull, (due - at) % 1000000000ull}, NULL);
        }
    }
    if (work->lane.chunk >= 0)
        leave(&work->lane);
    return NULL;
}

static struct lane new_lane(bool wait)
{
    return (struct lane){.thread = __atomic_add_fetch(&pool->threads, 1, __ATOMIC_RELAXED), .chunk = -1, .wait = wait};
}

static void run(uint32_t threads, uint64_t records, uint64_t rate, bool wait)
{
    struct work *work = calloc(threads, sizeof *work);
    pthread_t *handles = calloc(threads, sizeof *handles);
    uint64_t start = monotonic(), recorded = 0, dropped = 0;
    for (uint32_t i = 0; i < threads; i++) {
        work[i] = (struct work){new_lane(wait), records, rate, i + 1};
        pthread_create(&handles[i], NULL, thread_main, &work[i]);
    }
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(handles[i], NULL);
        recorded += work[i].lane.recorded;
        dropped += work[i].lane.dropped;
    }
    fprintf(stderr, "recorded %lu dropped %lu ns %lu\n", recorded, dropped, monotonic() - start);
}

static void lines(uint32_t count, uint32_t child)
{
    struct lane lane = new_lane(false);
    char line[64];
    for (uint32_t i = 0; i < count; i++) {
        int length = snprintf(line, sizeof line, "line %u\n", i);
        numbered(&lane, 1, 2 * i);
        if (child && i % child == child - 1) {
            pid_t pid = fork();
            if (pid == 0)
                _exit(write(1, line, length) != length);
            waitpid(pid, NULL, 0);
            usleep(60000);
        } else {
            ssize_t wrote = write(1, line, length);
            struct lane_entry mark = {now(), (uint64_t)lane.thread << LANE_SPAN_THREAD_SHIFT | (i + 1), 1, LANE_KIND_OUTPUT_MARK, 0, 1, 0, wrote};
            record(&lane, mark, NULL);
        }
        numbered(&lane, 1, 2 * i + 1);
    }
    fprintf(stderr, "recorded %lu dropped %lu\n", lane.recorded, lane.dropped);
}

static void die(uint64_t records)
{
    struct lane lane = new_lane(false);
    for (uint64_t i = 0; i < records; i++)
        numbered(&lane, 1, i);
    reserve(&lane, 2);
    for (uint64_t i = records; i < records + 3; i++)
        numbered(&lane, 1, i);
    reserve(&lane, 1);
    kill(getpid(), SIGKILL);
}

static void crash(void)
{
    struct lane_crash *page = (struct lane_crash *)((char *)pool + pool->crash_offset) + 0;
    *page = (struct lane_crash){.state = 1, .signo = SIGSEGV, .code = 1, .pid = getpid(), .tid = getpid(), .address = 0xdead, .ts = now(), .stack_base = 0x7000, .stack_bytes = 16, .maps_bytes = 5, .span = 7};
    for (int i = 0; i < 23; i++)
        page->regs[i] = 100 + i;
    memcpy(page->comm, "crasher", 8);
    memcpy((char *)page + LANE_CRASH_STACK_OFFSET, "sixteen bytes of", 16);
    memcpy((char *)page + LANE_CRASH_MAPS_OFFSET, "maps\n", 5);
    __atomic_store_n(&page->state, 2, __ATOMIC_RELEASE);
    raise(SIGSEGV);
}

int main(int argc, char **argv)
{
    int file = argc < 3 ? -1 : open(argv[1], O_RDWR);
    struct stat facts;
    if (file < 0 || fstat(file, &facts) != 0)
        return 2;
    pool = mmap(NULL, facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    const char *command = argv[2];
    if (!strcmp(command, "run"))
        run(atoi(argv[3]), strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10), atoi(argv[6]));
    else if (!strcmp(command, "lines"))
        lines(atoi(argv[3]), atoi(argv[4]));
    else if (!strcmp(command, "die"))
        die(strtoull(argv[3], NULL, 10));
    else if (!strcmp(command, "crash"))
        crash();
    else if (!strcmp(command, "hold")) {
        struct lane lane = new_lane(false);
        for (int i = 0; i < 10; i++)
            numbered(&lane, 1, i);
        for (;;)
            pause();
    }
    return 0;
}
