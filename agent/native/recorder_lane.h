/* Reserving and publishing room in the thread's current chunk.
 *
 * `thread->word` holds the current chunk's index and the slots reserved in it, so one xadd both finds the chunk and reserves: there is
 * no instant at which a signal handler could switch, close and lose a chunk that its interrupted thread is about to reserve in.
 * After the xadd the reserved slots are a gap in the chunk's map, and a chunk with a gap is never freed: `written` of a closed
 * chunk is CHUNK_SLOTS, the reader's prefix ends at the gap, and the session frees a chunk only when prefix and `written` agree.
 * For that to hold every slot is published in the end: the rest that a refused reservation leaves is filled with PAD entries.
 */
#ifndef STROBE_RECORDER_LANE_H
#define STROBE_RECORDER_LANE_H
#include "recorder_state.h"

#pragma GCC visibility push(hidden)

#define WORD_RESERVE (1ull << 63) /* the current chunk is one of the reserve */
#define PREFETCH_BYTES 512
#define WORD_NO_CHUNK 0x7fffffffull
#define WORD_NONE (WORD_NO_CHUNK << 32 | LANE_CHUNK_SLOTS)
#define WORD_CHUNK(word) ((uint32_t)((word) >> 32) & 0x7fffffffu)

struct place { struct lane_entry *entry; uint8_t *map; };

INLINE struct lane_chunk *chunk_at(uint32_t index) { return (struct lane_chunk *)(chunk_memory + (uint64_t)index * LANE_CHUNK_BYTES); }

INLINE bool is_trace(uint32_t kind) { return kind != LANE_KIND_OUTPUT_MARK && kind != LANE_KIND_EXCEPTION && kind != LANE_KIND_LOG; }

void lane_give_back(struct thread *thread, const struct place *place, uint32_t reserved, uint32_t used);
bool lane_reserve_slowly(struct thread *thread, uint32_t slots, uint32_t kind, uint64_t word, struct place *place);
void lane_drop(struct lane_hook *counts, uint32_t kind);
void lane_forget(struct thread *thread);
void lane_heal(struct thread *thread);

INLINE void place_at(struct place *place, uint64_t word)
{
    uint8_t *chunk = (uint8_t *)chunk_at(WORD_CHUNK(word));
    uint32_t slot = (uint32_t)word;
    place->map = chunk + LANE_CHUNK_MAP_OFFSET + slot;
    place->entry = (struct lane_entry *)(chunk + LANE_CHUNK_SLOTS_OFFSET + (uint64_t)slot * LANE_SLOT_BYTES);
}

INLINE bool lane_take(struct thread *thread, uint32_t slots, uint64_t *word, struct place *place)
{
    *word = add_own64(&thread->word, slots);
    if (UNLIKELY((uint32_t)*word + slots > LANE_CHUNK_SLOTS))
        return false;
    place_at(place, *word);
    /* The session's core read these lines last: getting them back takes as long as the rest of the call, unless it is begun calls ahead. */
    __asm__ volatile("prefetchw %0" : : "m"(*((const uint8_t *)place->entry + PREFETCH_BYTES)));
    count_own32(&chunk_at(WORD_CHUNK(*word))->written, slots);
    return true;
}

/* Room for an entry of `slots` slots. False when there is none: the caller counts the drop. */
INLINE bool lane_reserve(struct thread *thread, uint32_t slots, uint32_t kind, struct place *place)
{
    uint64_t word = WORD_NONE;
    if (LIKELY(!(thread->slow & SLOW_RESERVE)) && LIKELY(lane_take(thread, slots, &word, place)))
        return true;
    return lane_reserve_slowly(thread, slots, kind, word, place);
}

/* Writes the 32-byte head. */
INLINE void entry_head(struct lane_entry *entry, uint64_t ts, uint64_t span, uint32_t hook, uint32_t kind, uint32_t flags, uint32_t slots, uint64_t word)
{
    uint64_t *out = (uint64_t *)entry;
    out[0] = ts;
    out[1] = span;
    out[2] = hook | (uint64_t)kind << 32 | (uint64_t)flags << 40 | (uint64_t)slots << 48;
    out[3] = word;
}

/* An entry on its way into the lane. */
struct draft { struct place place; uint32_t slots; uint8_t flags; };

bool sample(struct lane_hook *counts, uint32_t period, uint64_t ts);

/* recorder_draft.c. A block of scratch memory that no interrupted frame uses: room for a payload, then what is answered. NULL when all are taken. */
struct walker *scratch_take(struct thread *thread);
void scratch_give(struct thread *thread, const struct walker *walker);

/* Makes an entry's payload; its head is not written yet. False, and counted, when there is no room. */
bool draft_make(struct thread *thread, const struct strobe_hook *hook, const struct values *values, uint32_t kind, struct draft *draft);

INLINE void moves_run(const struct strobe_hook *hook, const struct saved *saved, uint8_t *payload)
{
    for (uint32_t i = 0; i < hook->moves; i++) {
        uint64_t value; /* neither place need be aligned */
        __builtin_memcpy(&value, (const uint8_t *)saved + hook->move[i].source, 8);
        value &= hook->move[i].mask;
        __builtin_memcpy(payload + hook->move[i].dst, &value, 8);
    }
}

/* The same for an enter list that is moves and nothing else. */
INLINE bool draft_moves(struct thread *thread, const struct strobe_hook *hook, const struct saved *saved, struct draft *draft)
{
    draft->slots = hook->slots;
    if (UNLIKELY(!lane_reserve(thread, hook->slots, LANE_KIND_ENTER, &draft->place))) {
        lane_drop(hook->shared, LANE_KIND_ENTER);
        return false;
    }
    moves_run(hook, saved, (uint8_t *)draft->place.entry + LANE_SLOT_BYTES);
    return true;
}

INLINE void lane_publish(const struct place *place, uint32_t slots)
{
    in_order();
    *(volatile uint8_t *)place->map = (uint8_t)slots;
}
#pragma GCC visibility pop
#endif
