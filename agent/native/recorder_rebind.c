/* Another session comes to a process that has the recorder since an earlier one: its pool takes the place of the former, at the same address, so that
 * nothing that points into it points elsewhere. The world stands still. What the former session left under way goes on without a record: its hooks
 * count as disabled for ever, frames that are still open return as they must. */
#include "recorder_lane.h"
#include "recorder_shadow.h"

#define EAGAIN (-11)
#define EINVAL (-22)
#define MAP_SHARED_FIXED 0x11
#define MAP_NOTHING 0x4032 /* PRIVATE ANONYMOUS FIXED NORESERVE */

/* Whether a thread stands in the middle of a record. */
static bool is_busy(void)
{
    for (const struct thread *thread = SHARED_LOAD(&thread_list); thread; thread = thread->next)
        if (thread->tid && (thread->busy || thread->nested))
            return true;
    return false;
}

/* A thread's open calls are the former session's: no record of their ends, and no parents of what comes. */
static void forget_session(struct thread *thread)
{
    for (uint32_t i = 0; i < thread->depth; i++) {
        struct shadow *entry = &thread->shadow[i];
        bool keeps = (entry->hook & SHADOW_INTERNAL) && ((const struct strobe_internal *)SHADOW_POINTER(entry->hook))->reserved == INTERNAL_SIGACTION;
        if (keeps)
            continue;
        entry->span = 0;
        if (!(entry->hook & SHADOW_INTERNAL))
            entry->hook |= SHADOW_INHERITED;
    }
    lane_forget(thread);
    thread->index = SHARED_ADD(&pool->threads, 1) + 1;
    thread->spans = (uint64_t)thread->index << LANE_SPAN_THREAD_SHIFT;
}

static bool fits(int64_t file, uint64_t bytes, uint64_t *size)
{
    static struct lane_pool head; /* not on a stack that may be small */
    uint64_t status[18] = {0};
    if (system_call(CALL_FSTAT, (uint64_t)file, (uint64_t)status, 0, 0, 0, 0) || status[6] > bytes)
        return false;
    *size = status[6];
    int64_t got = system_call(CALL_READ, (uint64_t)file, (uint64_t)&head, sizeof head, 0, 0, 0);
    return got == sizeof head && head.magic == LANE_POOL_MAGIC && head.version == LANE_LAYOUT_VERSION && head.pool_bytes == status[6] &&
           (uint8_t *)pool + head.hooks_offset == (uint8_t *)hook_table && (uint8_t *)pool + head.chunks_offset == chunk_memory;
}

/* 0, or -errno: EAGAIN while a thread is inside the recorder (unless `anyway`: then nothing of what it began will be finished). */
int64_t rebind(const char *path, bool anyway)
{
    if (!pool || (is_busy() && !anyway))
        return pool ? EAGAIN : EINVAL;
    int64_t file = system_call(CALL_OPEN, (uint64_t)path, 02000002 /* O_RDWR | O_CLOEXEC */, 0, 0, 0, 0);
    uint64_t bytes = pool_mapped(), size = 0;
    if (file < 0)
        return file;
    bool good = fits(file, bytes, &size);
    int64_t memory = good ? system_call(CALL_MMAP, (uint64_t)pool, size, 3, MAP_SHARED_FIXED, (uint64_t)file, 0) : EINVAL;
    system_call(CALL_CLOSE, (uint64_t)file, 0, 0, 0, 0, 0);
    if (memory < 0 && memory > -4096)
        return memory;
    uint64_t end = (size + 4095) & ~4095ull;
    if (end < bytes) /* room for a larger one, some day */
        system_call(CALL_MMAP, (uint64_t)pool + end, bytes - end, 0, MAP_NOTHING, ~0ull, 0);
    hooks_retire();
    pool_took_over(path);
    chunks_forget();
    for (struct thread *thread = SHARED_LOAD(&thread_list); thread; thread = thread->next) {
        bool busy = thread->busy || thread->nested;
        forget_session(thread);
        thread->nested = 0;
        if (busy)
            thread_heal(thread);
    }
    return 0;
}
