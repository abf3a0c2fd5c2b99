/* The watch over a process that is not the keeper's child (`watch`, KEEPER.md): that it ends, and how, as far as anyone but its parent can know. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "keeper.h"

enum { ENDED_TRIES = 50, ENDED_PAUSE_NS = 1000000, STAT_EXIT_CODE = 52 };

/* <linux/pidfd.h> of 6.15 in its first form, which knows how a process ended that has been reaped. */
struct pidfd_info { uint64_t mask, cgroup; uint32_t ids[11]; int32_t exit_code; };
#define PIDFD_INFO_EXIT (1ull << 3)
#define PIDFD_GET_INFO _IOWR(0xff, 11, struct pidfd_info)
_Static_assert(sizeof(struct pidfd_info) == 64, "PIDFD_INFO_SIZE_VER0");

/* Nobody but the process itself, and who attaches to it, sees what its streams are; that they are the same files is enough here. */
static void find_streams(pid_t pid) {
    for (int i = 0; i < STREAMS; i++) {
        char path[40];
        struct stat facts;
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, i + 1);
        if (stat(path, &facts) == 0) {
            STATUS_SET(stream_dev[i], facts.st_dev);
            STATUS_SET(stream_ino[i], facts.st_ino);
        }
        STATUS_SET(stream_ended[i], 1); /* nothing of it will come through this keeper */
    }
}

int watch_open(const struct launch *launch) {
    int process = (int)syscall(SYS_pidfd_open, launch->watch, 0);
    struct process facts;
    /* After the pidfd: from here on the pid cannot pass to another process unseen. */
    bool same = process >= 0 && process_read(launch->watch, &facts) && facts.start_ticks == launch->start_ticks && facts.state != 'Z' && facts.state != 'X';
    if (!same) {
        if (process >= 0) errno = ESRCH;
        return -1;
    }
    fcntl(process, F_SETFD, FD_CLOEXEC);
    find_streams(launch->watch);
    STATUS_SET(started_ns, now_ns());
    STATUS_SET(start_ticks, facts.start_ticks);
    STATUS_SET(pid, (uint32_t)launch->watch);
    STATUS_SET(state, TARGET_RUNNING);
    status_changed();
    return process;
}

/* Whether /proc tells us of it what ptrace may see. Of others (it has become another user's by a set-uid program) it says 0 for the exit code. */
static bool may_see(pid_t pid) {
    char path[40], link[64];
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return readlink(path, link, sizeof link) > 0;
}

/* Field 52 of /proc/PID/stat while its parent has not reaped it. */
static bool status_of_zombie(pid_t pid, uint32_t *wait_status) {
    struct process facts;
    if (!process_read(pid, &facts) || facts.start_ticks != status->start_ticks || facts.state != 'Z' || !may_see(pid)) return false;
    char path[32], text[2048];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    if (count <= 0) return false;
    text[count] = 0;
    char *field = strrchr(text, ')');
    for (int number = 2; field != NULL && number < STAT_EXIT_CODE; number++) field = strchr(field + 1, ' ');
    if (field == NULL) return false;
    *wait_status = (uint32_t)strtoul(field, NULL, 10);
    return true;
}

static bool status_of_reaped(int process, uint32_t *wait_status) {
    struct pidfd_info info = {.mask = PIDFD_INFO_EXIT};
    if (ioctl(process, PIDFD_GET_INFO, &info) != 0 || !(info.mask & PIDFD_INFO_EXIT)) return false;
    *wait_status = (uint32_t)info.exit_code;
    return true;
}

/* It is over. Its parent may be reaping it just now, so both ways are tried for a while: before that the one works, after it the other. */
void watch_ended(pid_t pid, int process) {
    uint64_t at = now_ns();
    uint32_t wait_status = 0;
    bool known = false;
    for (int tries = 0; !known && tries < ENDED_TRIES; tries++) {
        if (tries > 0) nanosleep(&(struct timespec){0, ENDED_PAUSE_NS}, NULL);
        known = status_of_zombie(pid, &wait_status) || status_of_reaped(process, &wait_status);
    }
    STATUS_SET(wait_status, wait_status);
    STATUS_SET(wait_known, known);
    STATUS_SET(exited_ns, at);
    STATUS_SET(state, TARGET_EXITED);
    status_changed();
}

/* To the process alone: its children and its process group were here before us. */
int32_t watch_signal(int process, int signal) { return syscall(SYS_pidfd_send_signal, process, signal, NULL, 0) == 0 ? 0 : -errno; }

/* Until it ends, or is let go. */
void watch_serve(const struct launch *launch, int process) {
    struct channels channels = {{-1, -1}, -1, false, true, false};
    bool drain = false;
    while (channels.root_alive && !drain) {
        struct pollfd polls[1 + CONTROL_CONNECTIONS + 1] = {{process, POLLIN, 0}};
        control_poll(polls + 1);
        if (poll(polls, sizeof polls / sizeof *polls, -1) < 0) continue; /* EINTR after SIGCONT */
        if (polls[0].revents != 0) {
            watch_ended(launch->watch, process);
            channels.root_alive = false;
        }
        control_serve(polls + 1, &channels, 0, &drain);
    }
}
