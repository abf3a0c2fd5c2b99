/* strobe-keeper DIR: the parent of one launched target (KEEPER.md). One process, no thread, one poll loop. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "keeper.h"

enum { RETRY_MS = 100, ALONE_MS = 500, POLL_CHILDREN = STREAMS + 1, POLL_CONTROL, POLLS = POLL_CONTROL + CONTROL_CONNECTIONS + 1 };

struct keeper_status *status;

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void status_changed(void) { __atomic_add_fetch(&status->changes, 1, __ATOMIC_RELEASE); }

/* The status file is made exclusively: it is also what keeps a second keeper out of the directory. */
static bool status_open(const char *name) {
    int file = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) return false;
    /* Allocated, not sparse: a store to a page without a block would be a SIGBUS. */
    int error = posix_fallocate(file, 0, STATUS_BYTES);
    if (error == 0) {
        void *page = mmap(NULL, STATUS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (page == MAP_FAILED) error = errno;
        else status = page;
    }
    close(file);
    if (error != 0) {
        unlink(name);
        errno = error;
        return false;
    }
    STATUS_SET(keeper_pid, (uint32_t)getpid());
    STATUS_SET(magic, STATUS_MAGIC);
    return true;
}

/* Leaves the session's terminal, files and signals: only what this process opens itself concerns it. */
static bool detach(void) {
    int null = open("/dev/null", O_RDWR);
    if (null < 0) return false;
    for (int standard = 0; standard <= 2; standard++) dup2(null, standard);
    if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0) {
        for (int file = 3; file < 4096; file++) close(file); /* kernels before 5.9 */
    }
    setsid(); /* fails when it leads a session already, which is as good */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) sigaction(ignored[i], &ignore, NULL);
    /* SIGCHLD ignored, as a caller may have left it, would make the kernel throw the exit status away. */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &standard, NULL);
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

static int child_signals(void) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Takes every child that ended. True once the root is among them. */
static bool reap(pid_t root) {
    bool root_ended = false;
    int wait_status;
    for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG | WCONTINUED)) > 0;) {
        if (WIFCONTINUED(wait_status)) {
            if (pid != root || status->state != TARGET_STOPPED) continue;
            STATUS_SET(state, TARGET_RUNNING);
        } else if (pid == root) {
            root_ended = true;
            STATUS_SET(wait_status, (uint32_t)wait_status);
            STATUS_SET(wait_known, 1);
            STATUS_SET(exited_ns, now_ns());
            STATUS_SET(state, TARGET_EXITED);
        } else {
            STATUS_SET(reaped, status->reaped + 1);
        }
        status_changed();
    }
    return root_ended;
}

static bool streams_open(const struct channels *channels) {
    return channels->stream[STREAM_STDOUT] >= 0 || channels->stream[STREAM_STDERR] >= 0;
}

/* Whether a target that never ran is nobody's: whoever would let it go has died, and no other came in time. Called at least each ALONE_MS while it waits. */
static bool given_up(const struct launch *launch, bool waits) {
    static uint64_t since;
    if (!waits) since = 0;
    else if (since == 0) since = now_ns();
    return waits && now_ns() - since >= launch->alone_ns;
}

static void serve(const struct launch *launch, struct channels *channels, pid_t root, int children) {
    bool drain = false;
    channels->root_alive = true;
    while (channels->root_alive || (!drain && (streams_open(channels) || output_waits()))) {
        struct pollfd polls[POLLS];
        bool held = output_waits() || channels->hung;
        for (int i = 0; i < STREAMS; i++) polls[i] = (struct pollfd){held ? -1 : channels->stream[i], POLLIN, 0};
        bool writes = input_wants_write(channels);
        polls[STREAMS] = (struct pollfd){writes || !channels->pty ? channels->input : -1, writes ? POLLOUT : 0, 0};
        polls[POLL_CHILDREN] = (struct pollfd){children, POLLIN, 0};
        control_poll(polls + POLL_CONTROL);
        bool alone = status->state == TARGET_STOPPED && !control_connected();
        if (given_up(launch, alone)) tree_signal(root, SIGKILL);
        if (poll(polls, POLLS, held ? RETRY_MS : alone ? ALONE_MS : -1) < 0) continue; /* EINTR after SIGCONT */
        for (int i = 0; i < STREAMS; i++) {
            bool readable = polls[i].revents != 0 || (channels->hung && channels->stream[i] >= 0);
            if (readable && !output_waits()) output_read(channels, i, !drain);
        }
        if (output_waits()) output_retry();
        if (polls[STREAMS].revents & POLLERR) input_shut(channels);
        else if (polls[STREAMS].revents != 0) input_write(channels);
        if (polls[POLL_CHILDREN].revents != 0) {
            struct signalfd_siginfo told;
            while (read(children, &told, sizeof told) == (ssize_t)sizeof told) {
            }
            if (reap(root)) channels->root_alive = false;
        }
        control_serve(polls + POLL_CONTROL, channels, channels->root_alive ? root : 0, &drain);
        if (drain && output_waits()) output_forget();
    }
}

int main(int argc, char **argv) {
    if (argc != 2 || chdir(argv[1]) != 0 || !status_open("status")) {
        fprintf(stderr, "strobe-keeper: %s: %s\n", argc == 2 ? argv[1] : "usage: strobe-keeper DIR", strerror(errno));
        return 2;
    }
    struct launch launch = {0};
    struct channels channels = {{-1, -1}, -1, false, false, false};
    int children = -1;
    enum launch_stage stage = STAGE_PIPES;
    errno = 0;
    if (detach() && (children = child_signals()) >= 0 && output_open("output") && control_open("control")) {
        stage = STAGE_READ_LAUNCH;
        if (launch_read("launch", &launch)) stage = STAGE_NONE;
    }
    int process = -1;
    if (stage == STAGE_NONE && launch.watch != 0 && (process = watch_open(&launch)) < 0) stage = STAGE_WATCH;
    if (stage != STAGE_NONE) {
        STATUS_SET(error, errno);
        STATUS_SET(stage, stage);
        STATUS_SET(state, TARGET_FAILED);
        status_changed();
    }
    pid_t root = stage == STAGE_NONE && process < 0 ? launch_start(&launch, &channels) : 0;
    if (root > 0) serve(&launch, &channels, root, children);
    if (process >= 0) {
        tree_watch(process);
        watch_serve(&launch, process);
    }
    unlink("control");
    return root > 0 || process >= 0 ? 0 : 1;
}
