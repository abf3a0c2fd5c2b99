/* The recorder's C parts in an ordinary program, so that sanitizers can watch them: plans compiled and run on memory of exact size, lanes
 * filled by threads, handlers and abandoned frames, memory maps read. What sanitizers cannot watch: thunks and the exit stub (they are
 * assembly), the hijacked return addresses (AddressSanitizer keeps its own idea of frames), and the recorder's own mappings.
 *
 *     PROGRAM POOL SEED
 */
#define _GNU_SOURCE
#include "../../../agent/native/recorder_record.c"
#include "../../../agent/native/recorder_maps.h"
#include "../../../agent/native/recorder_walk.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What recorder_thunk.S defines. */
char strobe_exit_stub[16], strobe_enter_gpr[1], strobe_enter_xmm[1], strobe_enter_internal[1], strobe_enter_backtrace[1], strobe_signal_return[1];

static uint64_t seed;
static uint32_t chance(uint32_t below)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 33) % below;
}

#define CHECK(condition) do { if (!(condition)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); exit(1); } } while (0)

static uint32_t random_plan(struct strobe_plan_op *plan)
{
    uint32_t count = 0;
    for (uint32_t list = 0; list < 2; list++) {
        for (uint32_t steps = chance(list ? 3 : 7); steps; steps--)
            plan[count++] = (struct strobe_plan_op){(uint8_t)(1 + chance(7)), (uint8_t)chance(9), (uint8_t)(chance(4) ? 1u << chance(4) : chance(256)), (uint8_t)(chance(3) ? 8 * chance(8) : chance(256)), (int32_t)(chance(4) ? chance(200) : seed >> 40)};
        plan[count++] = (struct strobe_plan_op){0, 0, 0, 0, 0};
    }
    return count;
}

/* Any plan is refused, or writes nothing outside the room it was given. */
static void plans(uint32_t times)
{
    static const char *const texts[] = {"", "short", "a text that is somewhat longer than a slot of the lane has room for", NULL, (const char *)16, (const char *)0x123456789000};
    struct thread *thread = thread_self();
    struct walker *walker = calloc(1, sizeof *walker);
    uint32_t accepted = 0, direct = 0;
    uint64_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(thread && page != MAP_FAILED);
    munmap(page + 512, 4096); /* a stack that ends where memory does */
    for (uint32_t i = 0; i < times; i++) {
        struct strobe_plan_op plan[16];
        uint64_t xmm[8], registers[9], *stack = page + 511 - chance(60);
        uint32_t count = random_plan(plan);
        struct strobe_hook *hook = calloc(1, sizeof *hook);
        for (uint32_t r = 0; r < 9; r++)
            registers[r] = (uint64_t)texts[chance(6)];
        for (uint64_t *word = stack; word < page + 512; word++)
            *word = (uint64_t)texts[chance(6)];
        if (hook_compile(hook, plan, count * sizeof *plan, NULL)) {
            struct values values = {registers, xmm, stack, NULL, true};
            uint32_t room = hook->fixed + chance(600);
            uint8_t *payload = malloc(room ? room : 1);
            struct capture to = {walker, payload, room, 0};
            memset(xmm, 7, sizeof xmm);
            uint32_t used = capture(thread, hook, false, &values, &to);
            CHECK(used <= room && used >= hook->fixed);
            free(payload);
            if (hook->direct && !hook->stack_reach) {
                struct { uint64_t xmm[8]; struct saved saved; } *frame = calloc(1, sizeof *frame);
                struct lane_entry *entry = malloc(hook->slots * LANE_SLOT_BYTES);
                moves_run(hook, &frame->saved, (uint8_t *)entry + LANE_SLOT_BYTES);
                free(entry);
                free(frame);
                direct++;
            }
            accepted++;
        }
        free(hook);
    }
    free(walker);
    printf("plans %u accepted %u direct %u\n", times, accepted, direct);
    CHECK(accepted > times / 50 && direct > times / 200);
}

/* Fills lanes with entries of every size, and frees closed chunks, checking that what is published is whole. */
static uint64_t published;
static void free_closed(void)
{
    for (uint32_t i = 0; i < pool->chunk_count; i++) {
        struct lane_chunk *chunk = chunk_at(i);
        const uint8_t *map = (uint8_t *)chunk + LANE_CHUNK_MAP_OFFSET, *slots = (uint8_t *)chunk + LANE_CHUNK_SLOTS_OFFSET;
        if (SHARED_LOAD(&chunk->state) != LANE_CHUNK_STATE_CLOSED)
            continue;
        uint32_t at = 0, whole = 0;
        for (; at < LANE_CHUNK_SLOTS && map[at]; at += map[at]) {
            const struct lane_entry *entry = (const struct lane_entry *)(slots + (uint64_t)at * LANE_SLOT_BYTES);
            CHECK(entry->slots == map[at]);
            CHECK(entry->kind == LANE_KIND_PAD || entry->word == (entry->span ^ chunk->thread));
            whole += entry->kind != LANE_KIND_PAD;
        }
        if (at < LANE_CHUNK_SLOTS)
            continue; /* an interrupted frame has not finished */
        published += whole;
        SHARED_STORE(&chunk->state, LANE_CHUNK_STATE_FREE);
        SHARED_ADD(&pool->chunks_free, 1);
    }
}

static uint64_t put_entries(uint32_t times, uint32_t longest)
{
    struct thread *thread = thread_self();
    uint64_t done = 0;
    for (uint32_t i = 0; i < times; i++) {
        struct place place;
        uint32_t slots = 1 + (i * 2654435761u >> 8) % longest;
        if (!lane_reserve(thread, slots, LANE_KIND_ENTER, &place))
            continue;
        entry_head(place.entry, 0, i, 0, LANE_KIND_ENTER, 0, slots, i ^ thread->index);
        memset((uint8_t *)place.entry + LANE_SLOT_BYTES, 0xab, (slots - 1) * LANE_SLOT_BYTES);
        lane_publish(&place, slots);
        done++;
    }
    return done;
}

static uint64_t in_handlers;
static void on_signal(int signo)
{
    (void)signo;
    SHARED_ADD(&in_handlers, put_entries(1 + (uint32_t)(SHARED_LOAD(&in_handlers) % 40), 255));
}

/* On a busy machine all chunks may be full for long: whoever frees them waits for a processor. */
static void *filler(void *sum)
{
    uint64_t put = 0;
    for (uint32_t tries = 0; tries < 1000 && put < 1000; tries++)
        put += put_entries(60000, 255);
    *(uint64_t *)sum = put;
    return NULL;
}

static void lanes(uint64_t before)
{
    pthread_t threads_of[4];
    uint64_t sums[4] = {0}, total = before;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads_of[i], NULL, filler, &sums[i]);
    for (int i = 0, alive = 4; alive; i = (i + 1) % 4) {
        free_closed();
        alive = 0;
        for (int k = 0; k < 4; k++)
            alive += threads_of[k] && pthread_tryjoin_np(threads_of[k], NULL) ? 1 : (threads_of[k] = 0, 0);
        if (threads_of[i] && SHARED_LOAD(&in_handlers) < 100000) /* else, on a busy machine, they may do nothing but handle signals */
            pthread_kill(threads_of[i], SIGUSR1);
    }
    for (int i = 0; i < 4; i++)
        total += sums[i];
    for (uint32_t i = 1; i <= 1u << THREAD_BITS; i++) /* what is left in chunks of threads that are gone */
        if (threads[i - 1].key && WORD_CHUNK(threads[i - 1].word) != WORD_NO_CHUNK) {
            uint64_t word = threads[i - 1].word;
            for (uint32_t at = (uint32_t)word < LANE_CHUNK_SLOTS ? (uint32_t)word : LANE_CHUNK_SLOTS, pad; at < LANE_CHUNK_SLOTS; at += pad) {
                struct place place;
                pad = LANE_CHUNK_SLOTS - at < 255 ? LANE_CHUNK_SLOTS - at : 255;
                place_at(&place, (word & ~0xffffffffull) | at);
                entry_head(place.entry, 0, 0, 0, LANE_KIND_PAD, 0, pad, 0);
                lane_publish(&place, pad);
            }
            chunk_at(WORD_CHUNK(word))->state = LANE_CHUNK_STATE_CLOSED;
            threads[i - 1].word = WORD_NONE;
        }
    free_closed();
    printf("published %llu put %llu handlers %llu dropped %llu free %d\n", (unsigned long long)published, (unsigned long long)total, (unsigned long long)in_handlers, (unsigned long long)pool->dropped_by_kind[LANE_KIND_ENTER], pool->chunks_free);
    CHECK(published == total + in_handlers && total > 1000 && in_handlers > 0);
    CHECK(pool->chunks_free == (int32_t)pool->chunk_count);
}

/* A frame that reserved and was never finished: the next one that runs further out publishes what it left as PAD. */
static uint64_t heal(void)
{
    struct thread *thread = thread_self();
    struct place place;
    uint64_t put = put_entries(10, 3);
    thread->busy = thread->native_low + 4096;
    CHECK(lane_reserve(thread, 7, LANE_KIND_ENTER, &place) && !*place.map);
    put += put_entries(1, 3);
    CHECK(frame_begins(thread, thread->native_low + 4096));
    CHECK(*place.map == 7 && place.entry->kind == LANE_KIND_PAD);
    frame_ends(thread, thread->native_low + 4096, true);
    CHECK(!thread->busy);
    thread->busy = thread->native_high - 64;
    CHECK(!frame_begins(thread, thread->native_low + 64) && thread->nested == 1);
    frame_ends(thread, thread->native_low + 64, false);
    CHECK(thread->nested == 0 && thread->busy == thread->native_high - 64);
    thread->busy = 0;
    return put;
}

static void reading(void)
{
    struct maps maps;
    struct mapping mapping;
    uint32_t count = 0, found = 0;
    uint8_t bytes[9000];
    char *pages = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(maps_open(&maps));
    while (maps_next(&maps, &mapping)) {
        count++;
        found += (uint64_t)&reading >= mapping.start && (uint64_t)&reading < mapping.end && mapping.executable && !mapping.writable;
    }
    maps_close(&maps);
    CHECK(count > 5 && found == 1);
    memset(pages, 5, 12288);
    munmap(pages + 4096, 4096);
    CHECK(read_safely(bytes, (uint64_t)pages + 100, 9000) == 3996);
    CHECK(read_safely(bytes, (uint64_t)pages + 8192, 4096) == 4096);
    CHECK(read_safely(bytes, 0, 8) == 0 && read_safely(bytes, ~0ull - 3, 8) == 0);
    CHECK(!write_safely((uint64_t)pages + 4096, bytes, 8) && write_safely((uint64_t)pages, bytes, 8));
}

/* Gates: threads stand for processes that wait, the main one for the session. */
uint64_t strobe_remote(uint64_t what, uint64_t a, uint64_t b) { return what * 1000000 + a * 1000 + b; }

#define WAITING 48 /* more than there are gates */
static struct lane_gate *gate_table(void) { return (struct lane_gate *)((uint8_t *)pool + LANE_GATES_OFFSET); }

static void *wait_at_gate(void *path)
{
    struct saved saved = {.rdi = (uint64_t)path};
    exec_asks(&saved, INTERNAL_EXEC);
    return NULL;
}

static uint32_t asking(void)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < LANE_GATE_COUNT; i++)
        found += SHARED_LOAD(&gate_table()[i].state) == LANE_GATE_STATE_ASKS;
    return found;
}

static void gates(void)
{
    pthread_t threads[WAITING];
    wait_at_gate("/bin/sh"); /* nobody follows: nobody waits */
    CHECK(!pool->gate_asks);
    SHARED_STORE(&pool->follower, (uint32_t)getpid());
    wait_at_gate("/there/is/no/such/program");
    CHECK(!pool->gate_asks);
    for (uint32_t i = 0; i < WAITING; i++)
        CHECK(!pthread_create(&threads[i], NULL, wait_at_gate, "/bin/sh"));
    while (asking() < LANE_GATE_COUNT || SHARED_LOAD(&pool->gates_full) < WAITING - LANE_GATE_COUNT)
        usleep(100);
    for (uint32_t i = 0; i < LANE_GATE_COUNT; i++) {
        struct lane_gate *gate = &gate_table()[i];
        CHECK(gate->pid == (uint32_t)getpid() && gate->reason == LANE_GATE_REASON_EXEC && gate->folder == -100 && !strcmp((char *)gate->path, "/bin/sh"));
        gate->order = 3;
        gate->first = i;
        gate->second = 7;
        if (i % 3 == 0)
            SHARED_STORE(&gate->state, LANE_GATE_STATE_HELD);
        SHARED_STORE(&gate->state, LANE_GATE_STATE_ORDER);
        while (SHARED_LOAD(&gate->state) != LANE_GATE_STATE_DONE)
            usleep(100);
        CHECK(gate->answer == 3000007 + i * 1000);
        SHARED_STORE(&gate->state, LANE_GATE_STATE_GO);
    }
    for (uint32_t i = 0; i < WAITING; i++)
        pthread_join(threads[i], NULL);
    CHECK(!asking() && !pool->gates_left);
    pid_t dead = fork(); /* a session that is killed lets everybody go */
    if (!dead) {
        pause();
        _exit(0);
    }
    SHARED_STORE(&pool->follower, (uint32_t)dead);
    CHECK(!pthread_create(&threads[0], NULL, wait_at_gate, "/bin/sh"));
    while (!asking())
        usleep(100);
    kill(dead, SIGKILL);
    waitpid(dead, NULL, 0);
    pthread_join(threads[0], NULL);
    wait_at_gate("/bin/sh"); /* and nobody waits for it any more */
    CHECK(!pool->gates_left && !asking());
    SHARED_STORE(&pool->follower, (uint32_t)getpid()); /* and so does one that does not answer, after a while */
    uint64_t began = clock_slowly();
    wait_at_gate("/bin/sh");
    CHECK(clock_slowly() - began > 1900000000ull && clock_slowly() - began < 20000000000ull && !pool->follower && pool->gates_left == 1 && !asking());
    for (uint32_t i = 0; i < LANE_GATE_COUNT; i++)
        CHECK(gate_table()[i].state == LANE_GATE_STATE_FREE);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    seed = strtoull(arguments[2], NULL, 10);
    CHECK(strobe_init(arguments[1]) == 0 && strobe_init(arguments[1]) == 0 && strobe_init("/dev/null") < 0);
    reading();
    gates();
    plans(20000);
    lanes(heal());
    return 0;
}
