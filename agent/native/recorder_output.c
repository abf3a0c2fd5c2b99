/* What the program writes to its stdout and stderr, copied into the lanes (`copy_output` of the pool): where a process was attached to, nobody else
 * reads it. The bytes are taken from the program's own memory when the call returns, as many as the kernel took; what finds no room is counted. */
#include "recorder_lane.h"
#include "recorder_shadow.h"

#define PIECE_HEAD 16u /* struct piece */
#define PIECE_BYTES (254u * LANE_SLOT_BYTES - PIECE_HEAD)
#define COPIED_MAX (1u << 20) /* of one write */
#define PARTS_MAX 64u         /* of one writev */

struct piece { uint64_t offset, bytes; };
struct part { uint64_t from, bytes; };

/* Calls of write under way, found again by the slot of their return address. */
struct write_call { uint64_t slot, from, count, vector; };
#define WRITES ((WRITES_BYTES - 8) / sizeof(struct write_call))
struct write_calls { uint32_t next, gap; struct write_call calls[WRITES]; };
_Static_assert(sizeof(struct write_calls) <= WRITES_BYTES, "they lie at the end of the thread's page");

static struct write_calls *calls_of(const struct thread *thread) { return (struct write_calls *)((uint8_t *)thread_gaps(thread) + GAPS_BYTES - WRITES_BYTES); }

/* The place of the call at `slot`: that of an earlier call there, which is over (it failed, wrote to another file, or was left by a longjmp) and would be
 * found for this one; else a free one; else the next in turn, whose call's output is then counted as lost. */
static struct write_call *place_of(struct write_calls *calls, uint64_t slot)
{
    struct write_call *unused = NULL;
    for (uint32_t i = 0; i < WRITES; i++) {
        if (calls->calls[i].slot == slot)
            return &calls->calls[i];
        if (!calls->calls[i].slot)
            unused = &calls->calls[i];
    }
    return unused ? unused : &calls->calls[add_own32(&calls->next, 1) % WRITES];
}

void write_enters(struct thread *thread, const struct saved *saved, bool vector)
{
    uint64_t slot = (uint64_t)&saved->slot;
    struct write_call *call = place_of(calls_of(thread), slot);
    call->slot = slot;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* from here on a signal handler that writes takes another place */
    call->from = saved->rsi, call->count = saved->rdx, call->vector = vector;
}

/* Bytes [offset, …) of a stream, one record. Answers how many were copied. */
static uint64_t copy_piece(struct thread *thread, uint32_t stream, uint64_t from, uint64_t bytes, uint64_t offset, uint64_t parent, uint64_t ts)
{
    struct place place;
    uint32_t slots = 1 + (uint32_t)(PIECE_HEAD + bytes + LANE_SLOT_BYTES - 1) / LANE_SLOT_BYTES;
    if (!lane_reserve(thread, slots, LANE_KIND_OUTPUT_MARK, &place)) {
        lane_drop(NULL, LANE_KIND_OUTPUT_MARK);
        return 0;
    }
    struct piece *piece = (struct piece *)((uint8_t *)place.entry + LANE_SLOT_BYTES);
    piece->offset = offset;
    piece->bytes = read_safely(piece + 1, from, bytes);
    entry_head(place.entry, ts, parent, stream + 1, LANE_KIND_OUTPUT_MARK, 0, slots, piece->bytes);
    lane_publish(&place, slots);
    return piece->bytes;
}

/* As many as are left of a contiguous part of it. */
static uint64_t copy_part(struct thread *thread, uint32_t stream, struct part part, uint64_t offset, uint64_t parent, uint64_t ts)
{
    uint64_t done = 0;
    while (done < part.bytes) {
        uint64_t bytes = part.bytes - done < PIECE_BYTES ? part.bytes - done : PIECE_BYTES;
        uint64_t got = copy_piece(thread, stream, part.from + done, bytes, offset + done, parent, ts);
        done += got;
        if (got < bytes)
            break;
    }
    return done;
}

static uint64_t copy_call(struct thread *thread, uint32_t stream, const struct write_call *call, uint64_t written, uint64_t offset, uint64_t parent, uint64_t ts)
{
    uint64_t left = written < COPIED_MAX ? written : COPIED_MAX, copied = 0;
    if (!call->vector)
        return copy_part(thread, stream, (struct part){call->from, left}, offset, parent, ts);
    for (uint64_t i = 0; i < call->count && i < PARTS_MAX && left; i++) {
        struct part part;
        if (read_safely(&part, call->from + i * sizeof part, sizeof part) < sizeof part)
            break;
        part.bytes = part.bytes < left ? part.bytes : left;
        uint64_t got = copy_part(thread, stream, part, offset + copied, parent, ts);
        copied += got;
        left -= got;
        if (got < part.bytes)
            break;
    }
    return copied;
}

/* The write whose return address lies at `slot` has returned. */
void write_leaves(struct thread *thread, uint32_t stream, uint64_t slot, uint64_t written, uint64_t parent, uint64_t ts)
{
    struct write_calls *calls = calls_of(thread);
    struct write_call found = {0};
    uint64_t offset = SHARED_ADD(&pool->stream_bytes[stream], written), copied = 0;
    for (uint32_t i = 0; i < WRITES && !found.slot; i++)
        if (calls->calls[i].slot == slot) {
            found = calls->calls[i];
            calls->calls[i].slot = 0;
        }
    if (found.slot)
        copied = copy_call(thread, stream, &found, written, offset, parent, ts);
    if (copied < written)
        SHARED_ADD(&pool->output_lost, written - copied);
}
