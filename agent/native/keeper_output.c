/* What the target prints, appended to the spool as records: header, bytes, padding (KEEPER.md). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "keeper.h"

enum { READ_BYTES = 1 << 20, END_OF_STREAM = 1, CATCH_UP_READS = 64 };

struct record {
    uint64_t arrival_ns;
    uint64_t offset;
    uint32_t bytes;
    uint8_t stream;
    uint8_t flags;
    uint16_t zero;
    unsigned char data[READ_BYTES + 8];
};
_Static_assert(offsetof(struct record, data) == 24, "an output record's header is 24 bytes");

static struct record record;
static int output = -1;
static size_t record_bytes, record_written; /* of the record that is being written; both 0 when there is none */

bool output_open(const char *name) {
    output = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    return output >= 0;
}

bool output_waits(void) { return record_bytes != 0; }

void output_forget(void) { record_bytes = record_written = 0; }

/* Writes on where the last attempt ended. The record counts, for readers, once all of it is in the file. */
void output_retry(void) {
    while (record_written < record_bytes) {
        ssize_t wrote = pwrite(output, (char *)&record + record_written, record_bytes - record_written, (off_t)(status->output_bytes + record_written));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) {
            if (status->disk_full_ns == 0) {
                STATUS_SET(disk_full_ns, now_ns());
                status_changed();
            }
            return;
        }
        record_written += (size_t)wrote;
    }
    int stream = record.stream - 1;
    STATUS_SET(stream_bytes[stream], record.offset + record.bytes);
    STATUS_SET(output_bytes, status->output_bytes + record_bytes);
    if (record.flags & END_OF_STREAM) STATUS_SET(stream_ended[stream], 1);
    if (status->disk_full_ns != 0) STATUS_SET(disk_full_ns, 0);
    status_changed();
    output_forget();
}

bool output_read(struct channels *channels, int stream, bool keep) {
    ssize_t count = read(channels->stream[stream], record.data, READ_BYTES);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    bool more = count > 0;
    /* A pty that nobody has open says EIO. Closing it hangs up its session, whose leader may be on its way to a clean exit. */
    channels->hung = count <= 0 && channels->pty && channels->root_alive;
    if (channels->hung) return false;
    if (count <= 0) {
        close(channels->stream[stream]);
        if (channels->pty && channels->input == channels->stream[stream]) channels->input = -1;
        channels->stream[stream] = -1;
        count = 0;
    }
    if (!keep) {
        if (count == 0) STATUS_SET(stream_ended[stream], 1);
        return more;
    }
    /* Taken after the read: whatever wrote these bytes had begun to by then. */
    record.arrival_ns = now_ns();
    record.offset = status->stream_bytes[stream];
    record.bytes = (uint32_t)count;
    record.stream = (uint8_t)(stream + 1);
    record.flags = count == 0 ? END_OF_STREAM : 0;
    size_t padding = (size_t)(-count & 7);
    memset(record.data + count, 0, padding);
    record_bytes = offsetof(struct record, data) + (size_t)count + padding;
    record_written = 0;
    output_retry();
    return more;
}

int32_t output_catch_up(struct channels *channels, bool keep) {
    for (int stream = 0; stream < STREAMS; stream++) {
        for (int read = 0; read < CATCH_UP_READS; read++) {
            if (output_waits()) return -ENOSPC;
            if (channels->stream[stream] < 0 || !output_read(channels, stream, keep)) break;
        }
    }
    return output_waits() ? -ENOSPC : 0;
}
