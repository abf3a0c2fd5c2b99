/* Walk programs (layout.gen.h, WALK_STEP): what they are compiled to, and the state of one event's run.
 *
 * A program runs on bytes that were copied already, so what it reads of an object cannot change under it, and cannot fault. What it copies
 * becomes a region of the image. Nothing recurses: what is to be run on a copy is an errand, and errands are done in the order they came,
 * so that where a budget ends everything near is there. All state lies in scratch memory: the target's stack may be small.
 */
#ifndef STROBE_RECORDER_WALK_H
#define STROBE_RECORDER_WALK_H
#include "recorder_faults.h"

#pragma GCC visibility push(hidden)

#define WALK_FUEL 4096u       /* steps, elements and nodes an event may take */
#define WALK_STEPS_MAX 8192u
#define WALKS_MAX 256u        /* WALK steps of a list */
#define WALK_BYTES_MAX (1u << 24) /* of an object, an element, a node */
#define WALK_ELEMENTS_MAX (1ull << 40) /* more than any memory has: a damaged number */
#define SEEN_SIZE (1u << SEEN_BITS)
#define SEEN_BITS 10          /* regions take 16 bytes at least, so there are no more than 508 */
#define AGAIN_MAX 400u        /* entries for another program on bytes that the image has */
#define ERRANDS 512u
#define BACK_MAX 64u          /* WHENs within each other that are not the last step of their program */
#define PATH_MAX 128u         /* levels of a tree; a balanced one of 2^60 nodes has no more */
#define REGION_NONE 0xffffu

/* An address whose bytes are in the image, and one program that was run on them: target, region << 32, turn << 48. Valid when the turn is that
 * of the event. */
struct seen { uint64_t address, what; };

/* `target` to be run on `count` objects, `stride` bytes apart. `at`, `region`: offsets in the payload, of the first object and of the region it is in. */
struct errand { uint64_t address; uint32_t target, stride; uint16_t at, region, count, spare; };

/* Where a stretch was copied to; 0: nowhere. Offsets in the payload of the bytes and, << 16, of their region; << 32: 1 when the step's program was
 * not run on them yet; << 48: how many bytes are there. One word: what is stored in pieces and loaded whole makes the processor wait. */
typedef uint64_t copied_at;
#define COPIED_AT(copied) ((uint32_t)(copied) & 0xffffu)
#define COPIED_REGION(copied) ((uint32_t)(copied) >> 16)
#define COPIED_FRESH(copied) ((uint32_t)((copied) >> 32) & 1u)
#define COPIED_BYTES(copied) ((uint32_t)((copied) >> 48))

struct walker {
    const struct lane_walk_step *steps;
    const uint32_t *needs;   /* of each step: bytes of its object that the program beginning there reads */
    uint8_t *payload;
    uint32_t used, end;      /* offsets in the payload: of the next region, and where the image ends at the latest */
    uint32_t fuel;
    uint32_t first, last;    /* errands done, errands there are */
    uint32_t again;          /* entries of `seen` that are not a region's first */
    uint16_t turn;           /* 0: never used */
    uint16_t region;         /* that the object being walked is in; REGION_NONE in the payload */
    uint8_t stopped;         /* the budget or the fuel is used up; the fuel is 0 then */
    uint64_t region_address, region_bytes; /* of it */
    struct faults faults;
    struct source source;
    uint16_t back[BACK_MAX];
    copied_at path[PATH_MAX];
    struct seen seen[SEEN_SIZE];
    struct errand errands[ERRANDS];
};
_Static_assert(sizeof(struct walker) <= SCRATCH_BLOCK - SCRATCH_PAYLOAD, "walker");

/* recorder_walk_compile.c. Checks a section, in place, and fills in `needs`, one a step. False: it is not valid. */
bool walk_compile(const struct lane_walk_step *steps, uint32_t count, uint32_t *needs);

/* recorder_walk.c */
void walk_begin(struct walker *walker, const struct strobe_hook *hook, uint8_t *payload, uint32_t used, uint32_t end);
void walk_root(struct walker *walker, uint32_t target, uint32_t at);
void walk_run(struct walker *walker, uint8_t *flags);

/* What recorder_walk_containers.c needs of it. */

copied_at walk_copy_slowly(struct walker *walker, const struct lane_walk_step *step, uint64_t address, uint64_t bytes, uint32_t state);

/* Has the step's program run on `count` objects of `step->size` bytes, unless it was before, or not enough is there. */
void walk_send(struct walker *walker, const struct lane_walk_step *step, uint64_t address, uint32_t count, copied_at copied);

/* Both. Answers where all the bytes are, or NULL. `walk_plain` is a step without a program. */
const uint8_t *walk_visit(struct walker *walker, const struct lane_walk_step *step, uint64_t address, uint64_t bytes, uint32_t state, uint32_t count);
extern const struct lane_walk_step walk_plain;
void walk_text(struct walker *walker, const struct lane_walk_step *step, uint64_t address);
void walk_container(struct walker *walker, const struct lane_walk_step *step, const uint8_t *object, uint64_t address);

INLINE uint64_t walk_field(const uint8_t *object, uint64_t offset)
{
    uint64_t value;
    __builtin_memcpy(&value, object + offset, 8);
    return value;
}

INLINE uint64_t walk_address(const struct walker *walker, copied_at copied)
{
    return walk_field(walker->payload + COPIED_REGION(copied), 0) + COPIED_AT(copied) - COPIED_REGION(copied) - LANE_REGION_BYTES;
}

INLINE uint32_t low_half(uint64_t both) { return (uint32_t)both; }
INLINE uint32_t high_half(uint64_t both) { return (uint32_t)(both >> 32); }

INLINE void walk_stop(struct walker *walker)
{
    walker->fuel = 0;
    walker->stopped = 1;
}

/* False when the event has taken its time. */
INLINE bool walk_goes_on(struct walker *walker)
{
    if (LIKELY(walker->fuel)) {
        walker->fuel--;
        return true;
    }
    walker->stopped = 1;
    return false;
}

INLINE uint32_t seen_at(uint64_t address) { return (uint32_t)((address >> 3) * 0x9e3779b97f4a7c15ull >> (64 - SEEN_BITS)); }
INLINE bool seen_taken(const struct walker *walker, uint32_t place) { return walker->seen[place].what >> 48 == walker->turn; }

INLINE void seen_put(struct walker *walker, uint32_t place, uint64_t address, uint32_t target, uint32_t region)
{
    walker->seen[place] = (struct seen){address, target | (uint64_t)region << 32 | (uint64_t)walker->turn << 48};
}

/* Has `target` run on `count` objects, later. */
INLINE void errand_add(struct walker *walker, uint64_t address, uint32_t target, uint32_t stride, uint32_t at, uint32_t region, uint32_t count)
{
    if (UNLIKELY(walker->last - walker->first == ERRANDS))
        walk_stop(walker);
    else
        walker->errands[walker->last++ % ERRANDS] = (struct errand){address, target, stride, (uint16_t)at, (uint16_t)region, (uint16_t)count, 0};
}

/* Half of all addresses are no user's; the first page nobody has. */
INLINE bool plausible(uint64_t address, uint64_t bytes) { return address >= 4096 && address < 1ull << 63 && bytes < 1ull << 62; }

/* Two words: what is stored in pieces and loaded whole makes the processor wait. */
INLINE void region_head(uint8_t *region, uint64_t address, uint64_t bytes, uint32_t state)
{
    uint64_t word = bytes | (uint64_t)state << 32;
    __builtin_memcpy(region, &address, 8);
    __builtin_memcpy(region + 8, &word, 8);
}

/* What a region came to: `bytes` of it are there, `ahead` bytes from its start on. */
INLINE copied_at copied_make(uint32_t region, uint64_t ahead, uint64_t bytes, bool fresh)
{
    return (region + LANE_REGION_BYTES + (uint32_t)ahead) | region << 16 | (uint64_t)fresh << 32 | bytes << 48;
}

/* Copies a stretch unless the image has it. `state`: of the region when all of it can be copied. Here only what is usual: whole words that the
 * image has nothing of, and has room for. */
INLINE copied_at walk_copy(struct walker *walker, const struct lane_walk_step *step, uint64_t address, uint64_t bytes, uint32_t state)
{
    uint32_t place = seen_at(address), offset = walker->used, left = walker->end - offset;
    bool usual = !((address - 4096) >> 56) && bytes - 1 < (uint64_t)left - LANE_REGION_BYTES && left > LANE_REGION_BYTES && !(bytes & 7) &&
        address - walker->region_address >= walker->region_bytes && walker->fuel && !seen_taken(walker, place) && may_load(&walker->source, address);
    if (UNLIKELY(!usual))
        return walk_copy_slowly(walker, step, address, bytes, state);
    uint8_t *region = walker->payload + offset;
    uint64_t got = strobe_copy(region + LANE_REGION_BYTES, address, bytes);
    if (UNLIKELY(got < bytes)) {
        read_short(&walker->source, address, got);
        return walk_copy_slowly(walker, step, address, bytes, state);
    }
    walker->fuel--;
    region_head(region, address, bytes, state);
    seen_put(walker, place, address, step->target, offset);
    walker->used = offset + LANE_REGION_BYTES + (uint32_t)bytes;
    return copied_make(offset, 0, bytes, step->target != LANE_WALK_NOTHING);
}
#pragma GCC visibility pop
#endif
