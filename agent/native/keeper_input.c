/* The target's stdin where it was left open: a bounded queue in front of a pipe or pty. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "keeper.h"

enum { QUEUE_BYTES = 1 << 20 };

static unsigned char queue[QUEUE_BYTES];
static uint32_t queue_start, queue_bytes;
static bool closing;

int32_t input_queue(struct channels *channels, const void *bytes, uint32_t count) {
    if (channels->input < 0 || closing) return -EPIPE;
    if (count > QUEUE_BYTES - queue_bytes) return -EAGAIN;
    uint32_t end = (queue_start + queue_bytes) % QUEUE_BYTES;
    uint32_t first = count < QUEUE_BYTES - end ? count : QUEUE_BYTES - end;
    memcpy(queue + end, bytes, first);
    memcpy(queue, (const unsigned char *)bytes + first, count - first);
    queue_bytes += count;
    input_write(channels);
    return (int32_t)count;
}

void input_shut(struct channels *channels) {
    if (channels->input < 0) return;
    if (!channels->pty) close(channels->input);
    channels->input = -1;
    queue_bytes = 0;
}

bool input_wants_write(const struct channels *channels) { return channels->input >= 0 && (queue_bytes > 0 || closing); }

void input_write(struct channels *channels) {
    while (channels->input >= 0 && queue_bytes > 0) {
        uint32_t run = queue_bytes < QUEUE_BYTES - queue_start ? queue_bytes : QUEUE_BYTES - queue_start;
        ssize_t wrote = write(channels->input, queue + queue_start, run);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0 && errno == EAGAIN) return;
        if (wrote < 0) { /* nobody reads it any more */
            input_shut(channels);
            return;
        }
        queue_start = (queue_start + (uint32_t)wrote) % QUEUE_BYTES;
        queue_bytes -= (uint32_t)wrote;
    }
    if (!closing || channels->input < 0) return;
    if (channels->pty) { /* a terminal ends its input by a character: a pty cannot be closed in one direction */
        struct termios terminal;
        unsigned char end = tcgetattr(channels->input, &terminal) == 0 ? terminal.c_cc[VEOF] : 4;
        if (write(channels->input, &end, 1) < 0 && errno == EAGAIN) return;
    }
    input_shut(channels);
}

void input_close(struct channels *channels) {
    closing = true;
    input_write(channels);
}
