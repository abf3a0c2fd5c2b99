/* Output marks: where in the order of calls a write to the target's stdout or stderr returned. */
#include "recorder_lane.h"

void mark_written(struct thread *thread, uint32_t file, int64_t written, uint64_t parent, uint64_t ts)
{
    uint64_t status[18] = {0}; /* struct stat: st_dev and st_ino come first */
    if (written <= 0 || !SHARED_LOAD(&pool->recording) || system_call(CALL_FSTAT, file, (uint64_t)status, 0, 0, 0, 0))
        return;
    for (uint32_t stream = 0; stream < 2; stream++)
        if (pool->stream_ino[stream] && status[0] == pool->stream_dev[stream] && status[1] == pool->stream_ino[stream]) {
            record_plain(thread, stream + 1, NULL, LANE_KIND_OUTPUT_MARK, parent, (uint64_t)written, ts);
            return;
        }
}
