/* Finding and starting the state of a thread. */
#include "recorder_faults.h"
#include "recorder_lane.h"
#include "recorder_maps.h"
#include "recorder_shadow.h"

struct thread threads[1u << THREAD_BITS];
uint32_t *tokens;
struct thread *thread_list; /* all entries of `threads` that were ever used */

#define MAIN_GAP (128ull << 20)  /* the kernel keeps at least so much below the main stack free of mappings */
#define STACK_USUAL (8ull << 20)

/* The bounds of the thread's own stack, within which slots are read and written without a look whether memory is there. The main thread's
 * grows down to its limit; in any other, glibc keeps struct pthread (the thread pointer) at the upper end of the stack, however the
 * memory was got. The main thread of a child that another thread forked runs on that thread's stack. A stack that is deeper than what is
 * certain works like one of a coroutine: right, but slower. */
static void find_native_stack(struct thread *thread)
{
    struct maps maps;
    struct mapping mapping;
    uint64_t limit[2] = {STACK_USUAL, 0}, here = (uint64_t)__builtin_frame_address(0);
    thread->native_low = thread->native_high = 0;
    system_call(CALL_GETRLIMIT, 3 /* RLIMIT_STACK */, (uint64_t)limit, 0, 0, 0, 0);
    if (!maps_open(&maps))
        return;
    while (maps_next(&maps, &mapping)) {
        bool below_key = thread->key > mapping.start && thread->key <= mapping.end;
        if (below_key && (thread->tid != thread->pid || (here >= mapping.start && here < thread->key))) {
            uint64_t most = limit[0] < MAIN_GAP && limit[0] > STACK_USUAL ? limit[0] : STACK_USUAL;
            thread->native_low = thread->key - mapping.start > most ? thread->key - most : mapping.start; /* neighbours look like one mapping */
            thread->native_high = thread->key;
            break;
        }
        if (mapping.is_stack && thread->tid == thread->pid) {
            uint64_t low = mapping.end - (limit[0] < MAIN_GAP ? limit[0] : MAIN_GAP);
            thread->native_low = low < mapping.start ? low : mapping.start;
            thread->native_high = mapping.end;
        }
    }
    maps_close(&maps);
}

/* One reservation a thread: guard page, alternate signal stack, scratch, gaps, shadow stack. Not in core dumps, and without huge pages, of
 * which the first call would clear one. Where memory is strictly accounted a smaller shadow stack is tried. */
static bool find_memory(struct thread *thread)
{
    if (thread->shadow)
        return true;
    for (uint64_t shadow = SHADOW_BYTES; shadow >= 65536; shadow /= 16) {
        uint64_t bytes = 4096 + ALTSTACK_BYTES + SCRATCH_BYTES + GAPS_BYTES + shadow;
        uint8_t *memory = map_private(bytes);
        if (!memory)
            continue;
        system_call(CALL_MADVISE, (uint64_t)memory, bytes, 15 /* NOHUGEPAGE */, 0, 0, 0);
        system_call(CALL_MADVISE, (uint64_t)memory, bytes, 16 /* DONTDUMP */, 0, 0, 0);
        system_call(CALL_MPROTECT, (uint64_t)memory, 4096, 0, 0, 0, 0);
        thread->scratch = memory + 4096 + ALTSTACK_BYTES;
        thread->capacity = (uint32_t)(shadow / sizeof(struct shadow));
        thread->shadow = (struct shadow *)(thread->scratch + SCRATCH_BYTES + GAPS_BYTES);
        thread->next = SHARED_LOAD(&thread_list);
        while (!__atomic_compare_exchange_n(&thread_list, &thread->next, thread, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            continue;
        return true;
    }
    return false;
}

/* The entries of a thread that ended, which had the same thread pointer. Calls on its own stack ended with it; those of coroutines that
 * were suspended may yet be resumed, by any thread. */
static void forget_calls(struct thread *thread)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < thread->depth; i++) {
        struct shadow entry = thread->shadow[i];
        uint64_t value;
        bool lives = entry.slot && (TAG(entry.slot) == TAG_LIVE || TAG(entry.slot) == TAG_TAIL) && !is_native(thread, UNTAG(entry.slot));
        thread->shadow[i].slot = 0;
        if (lives && read_safely(&value, UNTAG(entry.slot), 8) == 8 && value == EXIT_STUB)
            thread->shadow[kept++] = entry;
    }
    thread->depth = kept;
    thread->dead = thread->restored = thread->mixed_low = thread->carved = 0;
    thread->slow = kept ? SLOW_MIXED : 0;
    thread->unwinding = 0;
}

/* A forked child goes on in the frames of its parent: they return as they must, but their exits are the parent's to record. */
static void inherit_calls(struct thread *thread)
{
    for (uint32_t i = 0; i < thread->depth; i++)
        thread->shadow[i].hook |= SHADOW_INHERITED;
}

static bool thread_start(struct thread *thread, uint32_t pid, uint32_t tid, uint64_t mask)
{
    bool forked = thread->tid && thread->pid != pid && tid == pid; /* of the parent's threads only the one that called fork lives on */
    if (!find_memory(thread))
        return false;
    thread->pid = pid;
    thread->tid = tid;
    thread->busy = 0;
    thread->scratch_used = thread->nested = thread->doubt = 0;
    if (mask & FAULT_MASK)
        faults_masked(thread);
    if (forked) {
        inherit_calls(thread);
    } else {
        forget_calls(thread);
        find_native_stack(thread);
    }
    lane_forget(thread);
    thread->index = SHARED_ADD(&pool->threads, 1) + 1;
    thread->spans = (uint64_t)thread->index << LANE_SPAN_THREAD_SHIFT;
    if (armed)
        crash_altstack(thread->scratch - ALTSTACK_BYTES);
    return true;
}

/* The entry for `key`, claimed if there was none; NULL when the table is full. Probing is linear, entries are never given up: a later
 * thread with the same thread pointer takes the entry over. */
static struct thread *thread_entry(uint64_t key)
{
    uint32_t from = thread_hash(key);
    for (uint32_t i = 0; i < 1u << THREAD_BITS; i++) {
        struct thread *thread = &threads[(from + i) % (1u << THREAD_BITS)];
        uint64_t found = SHARED_LOAD(&thread->key);
        if (!found)
            __atomic_compare_exchange_n(&thread->key, &found, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        if (SHARED_LOAD(&thread->key) == key)
            return thread;
    }
    return NULL;
}

/* True in a child that shares its parent's memory (vfork, posix_spawn): it uses the state of the parent's thread, which waits for it.
 * Forked children find FORK_MARK cleared. */
static bool shares_memory(uint32_t pid)
{
    if (!tokens[FORK_MARK])
        tokens[FORK_MARK] = pid;
    return tokens[FORK_MARK] != pid;
}

bool in_vforked_child(void) { return shares_memory((uint32_t)my_pid()); }

NOINLINE struct thread *thread_find(uint64_t key, uint32_t token)
{
    struct thread *thread = thread_entry(key);
    if (!thread)
        return NULL;
    uint32_t *place = &tokens[thread - threads];
    if (*place == token)
        return thread;
    uint64_t mask = signals_off(); /* no handler sees a thread half started */
    uint32_t pid = (uint32_t)my_pid(), tid = (uint32_t)my_tid();
    if (shares_memory(pid)) { /* acts for its parent, whose tid struct pthread has */
        pid = tokens[FORK_MARK];
        tid = token;
    } else if (token != tid && tid != pid) {
        tid_offset = 0; /* struct pthread keeps no tid there after all (but a raw fork leaves the parent's) */
    }
    bool ready = thread_start(thread, pid, tid, mask);
    if (ready)
        SHARED_STORE(place, token);
    signals_back(mask);
    return ready ? thread : NULL;
}

struct thread *thread_known(void)
{
    uint64_t key = thread_pointer();
    for (uint32_t i = 0, from = thread_hash(key); i < 1u << THREAD_BITS; i++) {
        uint32_t at = (from + i) % (1u << THREAD_BITS);
        if (threads[at].key == key)
            return tokens[at] == current_token() ? &threads[at] : NULL;
        if (!threads[at].key)
            return NULL;
    }
    return NULL;
}

NOINLINE void thread_heal(struct thread *thread)
{
    thread->scratch_used = 0;
    thread_flight(thread)->ends = 0;
    lane_heal(thread);
    for (uint32_t i = 0; i < thread->depth; i++) {
        struct shadow *entry = &thread->shadow[i];
        if (!entry->slot || TAG(entry->slot) == TAG_BUSY) {
            entry->slot = UNTAG(entry->slot) | TAG_DEAD;
            thread->dead++;
            shadow_mixed(thread, i);
        }
    }
    thread->busy = 0;
}
