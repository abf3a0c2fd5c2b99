/* The control socket: one command a packet, one reply each (KEEPER.md). */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "keeper.h"

enum { PACKET_BYTES = 1 + 65536 };

static int listener = -1;
static int connections[CONTROL_CONNECTIONS];

struct reply { int32_t error; uint32_t accepted; };

bool control_open(const char *name) {
    for (int i = 0; i < CONTROL_CONNECTIONS; i++) connections[i] = -1;
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, name, sizeof address.sun_path - 1);
    return listener >= 0 && fchmod(listener, 0600) == 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && chmod(name, 0600) == 0 &&
           listen(listener, CONTROL_CONNECTIONS) == 0;
}

bool control_connected(void) {
    for (int i = 0; i < CONTROL_CONNECTIONS; i++) {
        if (connections[i] >= 0) return true;
    }
    return false;
}

void control_poll(struct pollfd *polls) {
    for (int i = 0; i < CONTROL_CONNECTIONS; i++) polls[i] = (struct pollfd){connections[i], POLLIN, 0};
    polls[CONTROL_CONNECTIONS] = (struct pollfd){listener, POLLIN, 0};
}

static void accept_one(void) {
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) return;
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    bool ours = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
    for (int i = 0; ours && i < CONTROL_CONNECTIONS; i++) {
        if (connections[i] >= 0) continue;
        connections[i] = connection;
        return;
    }
    close(connection); /* no room, or somebody else */
}

static int32_t resize(const struct channels *channels, const unsigned char *body, size_t count) {
    if (count != 4) return -EINVAL;
    if (!channels->pty || channels->stream[STREAM_STDOUT] < 0) return -ENOTTY;
    uint16_t size[2];
    memcpy(size, body, sizeof size);
    struct winsize window = {.ws_row = size[0], .ws_col = size[1]};
    return ioctl(channels->stream[STREAM_STDOUT], TIOCSWINSZ, &window) == 0 ? 0 : -errno;
}

static struct reply answer(const unsigned char *packet, size_t count, struct channels *channels, pid_t root, bool *drain) {
    struct reply reply = {0, 0};
    const unsigned char *body = packet + 1;
    if (count == 0 || count > PACKET_BYTES) return (struct reply){count == 0 ? -EINVAL : -EMSGSIZE, 0};
    size_t body_bytes = count - 1;
    switch (packet[0]) {
    case 'i':
        reply.error = input_queue(channels, body, (uint32_t)body_bytes);
        if (reply.error < 0) break;
        reply.accepted = (uint32_t)reply.error;
        reply.error = 0;
        break;
    case 'c':
        if (channels->input < 0) reply.error = -EPIPE;
        else input_close(channels);
        break;
    case 'r': reply.error = resize(channels, body, body_bytes); break;
    case 'k': reply.error = body_bytes == 1 && body[0] <= 64 ? tree_signal(root, body[0]) : -EINVAL; break;
    case 'f': reply.error = output_catch_up(channels, !*drain); break;
    case 'd': *drain = true; break;
    default: reply.error = -EINVAL;
    }
    return reply;
}

void control_serve(const struct pollfd *polls, struct channels *channels, pid_t root, bool *drain) {
    static unsigned char packet[PACKET_BYTES];
    for (int i = 0; i < CONTROL_CONNECTIONS; i++) {
        if (polls[i].fd < 0 || polls[i].revents == 0) continue;
        /* With MSG_TRUNC the true length of a packet that is too long comes back, and answer() refuses it. */
        ssize_t count = recv(connections[i], packet, sizeof packet, MSG_DONTWAIT | MSG_TRUNC);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (count > 0) {
            struct reply reply = answer(packet, (size_t)count, channels, root, drain);
            if (send(connections[i], &reply, sizeof reply, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof reply) continue;
        }
        close(connections[i]);
        connections[i] = -1;
    }
    if (polls[CONTROL_CONNECTIONS].revents != 0) accept_one();
}
