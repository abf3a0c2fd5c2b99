/* Claiming, switching and closing chunks; what happens when there is none. */
#include "recorder_lane.h"

static uint64_t populated[1024]; /* chunks whose pages this process has already mapped: 65536 of them */

/* The first writes to shared memory fault page by page (0.5 µs each); one call maps all 64 pages of a chunk. */
static void chunk_populate(uint32_t index)
{
    if (index >= 65536 || populated[index / 64] >> (index % 64) & 1)
        return;
    system_call(CALL_MADVISE, (uint64_t)chunk_at(index), LANE_CHUNK_BYTES, 23 /* MADV_POPULATE_WRITE, Linux 5.14: else it faults as ever */, 0, 0, 0);
    __atomic_fetch_or(&populated[index / 64], 1ull << (index % 64), __ATOMIC_RELAXED);
}

/* Another pool is mapped there. */
void chunks_forget(void)
{
    for (uint32_t i = 0; i < sizeof populated / sizeof *populated; i++)
        populated[i] = 0;
}

static void chunk_prepare(struct thread *thread, uint32_t index)
{
    struct lane_chunk *chunk = chunk_at(index);
    chunk_populate(index);
    uint64_t *map = (uint64_t *)((uint8_t *)chunk + LANE_CHUNK_MAP_OFFSET);
    for (uint32_t i = 0; i < LANE_CHUNK_SLOTS / 8; i++)
        map[i] = 0;
    chunk->written = 0;
    chunk->read = 0;
    chunk->thread = thread->index;
    chunk->order = thread->order++;
    system_call(CALL_PRCTL, 16 /* PR_GET_NAME */, (uint64_t)chunk->comm, 0, 0, 0, 0);
    uint32_t serial = chunk->serial + 1;
    SHARED_STORE(&chunk->serial, serial ? serial : 1); /* last: until then the chunk counts as not begun */
}

/* Claims a free chunk; -1 when there is none for this kind of record. */
static int64_t chunk_claim(struct thread *thread, bool trace, bool *reserve)
{
    int32_t keep = (int32_t)pool->reserve_chunks;
    int32_t left = __atomic_sub_fetch(&pool->chunks_free, 1, __ATOMIC_ACQ_REL);
    *reserve = left < keep;
    uint32_t count = pool->chunk_count;
    if (left >= (trace ? keep : 0)) {
        uint32_t from = SHARED_LOAD(&pool->claim_hint) % count;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t index = from + i < count ? from + i : from + i - count, expected = LANE_CHUNK_STATE_FREE;
            struct lane_chunk *chunk = chunk_at(index);
            if (chunk->state != LANE_CHUNK_STATE_FREE || !__atomic_compare_exchange_n(&chunk->state, &expected, LANE_CHUNK_STATE_OWNED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                continue;
            SHARED_STORE(&pool->claim_hint, index + 1);
            chunk->pid = thread->pid;
            chunk->tid = thread->tid;
            chunk_prepare(thread, index);
            return index;
        }
    }
    SHARED_ADD(&pool->chunks_free, 1);
    return -1;
}

static void pad_place(uint64_t word, uint32_t slots)
{
    struct place place;
    place_at(&place, word);
    entry_head(place.entry, 0, 0, 0, LANE_KIND_PAD, 0, slots, 0);
    lane_publish(&place, slots);
}

static void pad_rest(uint64_t word)
{
    for (uint32_t at = (uint32_t)word; at < LANE_CHUNK_SLOTS;) {
        uint32_t slots = LANE_CHUNK_SLOTS - at < 255 ? LANE_CHUNK_SLOTS - at : 255;
        pad_place((word & ~0xffffffffull) | at, slots);
        at += slots;
    }
}

static void chunk_close(uint32_t index)
{
    struct lane_chunk *chunk = chunk_at(index);
    chunk->written = LANE_CHUNK_SLOTS; /* counts what an interrupted frame has reserved but not yet added */
    SHARED_STORE(&chunk->state, LANE_CHUNK_STATE_CLOSED);
}

/* The first slot from `at` on that nothing is published over; `end` when there is none. */
static uint32_t chunk_gap(uint32_t index, uint32_t at, uint32_t end)
{
    const volatile uint8_t *map = (uint8_t *)chunk_at(index) + LANE_CHUNK_MAP_OFFSET;
    for (uint8_t slots; at < end && (slots = map[at]);)
        at += slots;
    return at < end ? at : end;
}

static bool gap_stays(const struct gap *gap)
{
    struct lane_chunk *chunk = chunk_at(gap->chunk);
    return gap->serial && SHARED_LOAD(&chunk->state) == LANE_CHUNK_STATE_CLOSED && SHARED_LOAD(&chunk->serial) == gap->serial;
}

/* A chunk is closed in which an interrupted frame may leave a gap: noted for lane_heal. */
static void gap_note(struct thread *thread, uint32_t index)
{
    struct gap *gaps = thread_gaps(thread);
    for (uint32_t i = 0; i < GAPS && chunk_gap(index, 0, LANE_CHUNK_SLOTS) < LANE_CHUNK_SLOTS; i++)
        if (!gap_stays(&gaps[i])) {
            gaps[i] = (struct gap){index, chunk_at(index)->serial};
            return;
        }
}

/* The current chunk is full, or may not be used for this kind of record: goes on to another. Signals are blocked, so no handler can
 * come between the claim and the switch; an interrupted frame further out finds the new word at its next xadd. */
static bool lane_switch(struct thread *thread, uint32_t slots, bool trace)
{
    uint64_t mask = signals_off(), word = thread->word;
    bool reserve = false, usable = (uint32_t)word + slots <= LANE_CHUNK_SLOTS && !(trace && (word & WORD_RESERVE));
    if (!usable) {
        int64_t index = chunk_claim(thread, trace, &reserve);
        bool keep = index < 0 && (uint32_t)word < LANE_CHUNK_SLOTS; /* a half-full chunk of the reserve: marks may go on in it */
        if (!keep) {
            thread->word = index < 0 ? WORD_NONE : (uint64_t)index << 32 | (reserve ? WORD_RESERVE : 0);
            if (WORD_CHUNK(word) != WORD_NO_CHUNK) {
                pad_rest(word);
                if (thread->nested)
                    gap_note(thread, WORD_CHUNK(word));
                chunk_close(WORD_CHUNK(word));
            }
            if (reserve && index >= 0)
                set_bits_own(&thread->slow, SLOW_RESERVE);
            else
                clear_bits_own(&thread->slow, SLOW_RESERVE);
        }
        usable = index >= 0;
    }
    signals_back(mask);
    return usable;
}

/* Of the `reserved` slots at `place` only the first `used` are needed. Unless a handler has reserved behind them meanwhile the rest is free again.
 * `written` comes first: a chunk that a handler closes in between counts as full whatever is added to it. */
NOINLINE void lane_give_back(struct thread *thread, const struct place *place, uint32_t reserved, uint32_t used)
{
    uint64_t offset = (uint64_t)((uint8_t *)place->entry - chunk_memory), index = offset / LANE_CHUNK_BYTES;
    uint64_t word = index << 32 | (offset % LANE_CHUNK_BYTES - LANE_CHUNK_SLOTS_OFFSET) / LANE_SLOT_BYTES;
    struct lane_chunk *chunk = chunk_at((uint32_t)index);
    count_own32(&chunk->written, used - reserved);
    if (swap_own64(&thread->word, word + reserved, word + used))
        return;
    count_own32(&chunk->written, reserved - used);
    pad_place(word + used, reserved - used);
}

/* `word` is what the refused reservation returned, or WORD_NONE when none was tried. */
NOINLINE bool lane_reserve_slowly(struct thread *thread, uint32_t slots, uint32_t kind, uint64_t word, struct place *place)
{
    bool trace = is_trace(kind);
    for (uint32_t tries = 0; tries < 8; tries++) {
        if ((uint32_t)word < LANE_CHUNK_SLOTS) /* the rest that this reservation did not fit into is its to fill */
            pad_rest(word);
        uint64_t current = thread->word;
        if (WORD_CHUNK(current) == WORD_NO_CHUNK) {
            swap_own64(&thread->word, current, WORD_NONE); /* refused reservations must not add up */
            if (pool->chunks_free <= (trace ? (int32_t)pool->reserve_chunks : 0))
                return false;
        }
        if (trace && (current & WORD_RESERVE) && pool->chunks_free <= (int32_t)pool->reserve_chunks)
            return false;
        if (!lane_switch(thread, slots, trace))
            return false;
        if (lane_take(thread, slots, &word, place))
            return true;
    }
    return false;
}

NOINLINE void lane_drop(struct lane_hook *counts, uint32_t kind)
{
    SHARED_ADD(&pool->dropped_by_kind[kind], 1);
    if (counts)
        SHARED_ADD(&counts->dropped, 1);
}

/* The thread starts anew (or in a forked child): the chunk it had is not its to close. */
void lane_forget(struct thread *thread)
{
    thread->word = WORD_NONE;
    thread->order = 0;
    for (uint32_t i = 0; i < GAPS; i++)
        thread_gaps(thread)[i].serial = 0;
    thread_flight(thread)->raised = thread_flight(thread)->ends = 0;
    clear_bits_own(&thread->slow, SLOW_RESERVE);
}

/* Publishes PAD over the gaps in the first `end` slots of a chunk that is in this state and use. A closed chunk with a gap is never freed; one
 * without may be someone else's by now, who leaves the state CLOSED before clearing the map and changes `serial` before closing it. */
static void chunk_heal(struct gap chunk, uint32_t state, uint32_t end)
{
    const volatile uint8_t *map = (uint8_t *)chunk_at(chunk.chunk) + LANE_CHUNK_MAP_OFFSET;
    for (uint32_t at = 0; (at = chunk_gap(chunk.chunk, at, end)) < end;) {
        uint32_t from = at;
        while (at < end && !map[at] && at - from < 255)
            at++;
        if (SHARED_LOAD(&chunk_at(chunk.chunk)->state) != state || SHARED_LOAD(&chunk_at(chunk.chunk)->serial) != chunk.serial)
            return;
        pad_place((uint64_t)chunk.chunk << 32 | from, at - from);
    }
}

/* Publishes PAD over what frames that are gone have reserved and will never publish, in the current chunk and in those closed meanwhile.
 * Only called when no frame of the recorder is running in this thread, so every gap below the reserved mark is such a one. */
void lane_heal(struct thread *thread)
{
    uint64_t mask = signals_off(), word = thread->word;
    uint32_t index = WORD_CHUNK(word), end = (uint32_t)word < LANE_CHUNK_SLOTS ? (uint32_t)word : LANE_CHUNK_SLOTS;
    struct gap *gaps = thread_gaps(thread);
    for (uint32_t i = 0; i < GAPS; i++) {
        if (gap_stays(&gaps[i]))
            chunk_heal(gaps[i], LANE_CHUNK_STATE_CLOSED, LANE_CHUNK_SLOTS);
        gaps[i].serial = 0;
    }
    if (index != WORD_NO_CHUNK) {
        chunk_at(index)->written = end;
        chunk_heal((struct gap){index, chunk_at(index)->serial}, LANE_CHUNK_STATE_OWNED, end);
    }
    signals_back(mask);
}
