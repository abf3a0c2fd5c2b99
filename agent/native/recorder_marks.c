/* Output marks: where in the order of calls a write to the target's stdout or stderr returned. */
#include "recorder_lane.h"

/* Where both streams are one file, its descriptor tells which is meant. Launched targets have that on a terminal, and it counts as stdout. */
static uint32_t stream_of(const uint64_t *file_facts, uint32_t file)
{
    bool is[2];
    for (uint32_t stream = 0; stream < 2; stream++)
        is[stream] = pool->stream_ino[stream] && file_facts[0] == pool->stream_dev[stream] && file_facts[1] == pool->stream_ino[stream];
    if (is[0] && is[1])
        return pool->copy_output && file == 2;
    return is[0] ? 0 : is[1] ? 1 : 2;
}

/* `slot`: where the return address of the call lies. */
void mark_written(struct thread *thread, uint32_t file, uint64_t slot, int64_t written, uint64_t parent, uint64_t ts)
{
    uint64_t status[18] = {0}; /* struct stat: st_dev and st_ino come first */
    if (written <= 0 || !SHARED_LOAD(&pool->recording) || system_call(CALL_FSTAT, file, (uint64_t)status, 0, 0, 0, 0))
        return;
    uint32_t stream = stream_of(status, file);
    if (stream < 2 && SHARED_LOAD(&pool->copy_output))
        write_leaves(thread, stream, slot, (uint64_t)written, parent, ts);
    else if (stream < 2)
        record_plain(thread, stream + 1, NULL, LANE_KIND_OUTPUT_MARK, parent, (uint64_t)written, ts);
}
