/* Reads the launch file and brings the target to life. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "keeper.h"

enum { LAUNCH_BYTES_MAX = 16 << 20, EXEC_TIMEOUT_MS = 30000, PIPE_BYTES = 1 << 20, SIGNALS = 64 };

static const char *value_of(char *item, const char *key, char **value) {
    size_t length = strlen(key);
    if (strncmp(item, key, length) != 0 || item[length] != '=') return NULL;
    return *value = item + length + 1;
}

/* Sorts the items of `text` into `launch`; `vectors` has room for all of them and both terminators. */
static bool sort_items(char *text, size_t bytes, char **vectors, size_t arguments, struct launch *launch) {
    char **argument = launch->argv = vectors, **variable = launch->envp = vectors + arguments + 1;
    char *value;
    for (char *item = text; item < text + bytes; item += strlen(item) + 1) {
        if (value_of(item, "arg", &value)) *argument++ = value;
        else if (value_of(item, "env", &value)) *variable++ = value;
        else if (value_of(item, "path", &value)) launch->path = value;
        else if (value_of(item, "cwd", &value)) launch->cwd = value;
        else if (value_of(item, "stdin", &value)) launch->stdin_kind = value;
        else if (value_of(item, "pty", &value)) launch->pty = value[0] == '1';
        else if (value_of(item, "stop", &value)) launch->stop = value[0] == '1';
        else if (value_of(item, "alone", &value)) launch->alone_ns = strtoull(value, NULL, 10) * 1000000u;
        else if (value_of(item, "watch", &value)) launch->watch = (pid_t)strtol(value, NULL, 10);
        else if (value_of(item, "start", &value)) launch->start_ticks = strtoull(value, NULL, 10);
        else return false;
    }
    if (launch->watch != 0) return launch->watch > 0;
    const char *kind = launch->stdin_kind;
    bool known = kind != NULL && (strcmp(kind, "null") == 0 || strcmp(kind, "open") == 0 || strcmp(kind, "file") == 0);
    return known && launch->path != NULL && launch->path[0] == '/' && launch->cwd != NULL && launch->argv[0] != NULL;
}

bool launch_read(const char *name, struct launch *launch) {
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    struct stat facts;
    if (fstat(file, &facts) != 0) return false;
    size_t bytes = (size_t)facts.st_size;
    errno = EINVAL;
    if (bytes == 0 || bytes > LAUNCH_BYTES_MAX) return false;
    char *text = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    if (text == MAP_FAILED) return false;
    if (text[bytes - 1] != 0) return errno = EINVAL, false;
    size_t items = 0, arguments = 0;
    for (char *item = text; item < text + bytes; item += strlen(item) + 1) {
        items++;
        if (strncmp(item, "arg=", 4) == 0) arguments++;
    }
    char **vectors = mmap(NULL, (items + 2) * sizeof *vectors, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (vectors == MAP_FAILED) return false;
    errno = EINVAL;
    return sort_items(text, bytes, vectors, arguments, launch);
}

/* The target's ends: stdin, stdout, stderr. */
struct ends { int file[3]; };

static bool pipe_pair(int *keeper_end, int *target_end, bool target_writes) {
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) != 0) return false;
    *keeper_end = pair[target_writes ? 0 : 1];
    *target_end = pair[target_writes ? 1 : 0];
    if (target_writes) fcntl(*keeper_end, F_SETPIPE_SZ, PIPE_BYTES); /* fewer wake-ups; refused beyond the user's share, which does no harm */
    return fcntl(*keeper_end, F_SETFL, O_NONBLOCK) == 0;
}

/* A terminal that changes no byte on its way out and echoes none: its output is what the target wrote, and no more. */
static bool open_pty(struct channels *channels, int *terminal) {
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK), locked = 0;
    if (master < 0 || ioctl(master, TIOCSPTLCK, &locked) != 0) return false;
    *terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct termios mode;
    struct winsize window = {.ws_row = 24, .ws_col = 80};
    if (*terminal < 0 || tcgetattr(*terminal, &mode) != 0) return false;
    mode.c_oflag &= ~(tcflag_t)OPOST;
    mode.c_lflag &= ~(tcflag_t)ECHO;
    channels->stream[STREAM_STDOUT] = master;
    channels->pty = true;
    return tcsetattr(*terminal, TCSANOW, &mode) == 0 && ioctl(master, TIOCSWINSZ, &window) == 0;
}

static bool open_ends(const struct launch *launch, struct channels *channels, struct ends *ends) {
    bool is_open = strcmp(launch->stdin_kind, "open") == 0, is_file = strcmp(launch->stdin_kind, "file") == 0;
    if (launch->pty) {
        if (!open_pty(channels, &ends->file[1])) return false;
        ends->file[2] = ends->file[1];
        if (!is_file) channels->input = channels->stream[STREAM_STDOUT];
    } else {
        for (int i = 0; i < STREAMS; i++) {
            if (!pipe_pair(&channels->stream[i], &ends->file[i + 1], true)) return false;
        }
    }
    if (launch->pty && !is_file) {
        ends->file[0] = ends->file[1];
        if (!is_open) input_close(channels); /* nobody will type: its first read is at the end of file */
    } else if (is_open) {
        if (!pipe_pair(&channels->input, &ends->file[0], false)) return false;
    } else ends->file[0] = open(is_file ? "stdin" : "/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < STREAMS; i++) {
        struct stat facts;
        if (fstat(ends->file[i + 1], &facts) != 0) return false;
        STATUS_SET(stream_dev[i], facts.st_dev);
        STATUS_SET(stream_ino[i], facts.st_ino);
    }
    if (launch->pty) STATUS_SET(stream_ended[STREAM_STDERR], 1);
    return ends->file[0] >= 0;
}

struct failure { int32_t stage, error; };

static _Noreturn void become_target(const struct launch *launch, const struct ends *ends, int failed) {
    enum launch_stage stage = STAGE_PIPES;
    setsid();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* EINVAL where Yama is absent */
    if (launch->pty && ioctl(ends->file[1], TIOCSCTTY, 0) != 0) goto give_up;
    for (int i = 0; i < 3; i++) {
        if (dup2(ends->file[i], i) < 0) goto give_up;
    }
    stage = STAGE_CHDIR;
    if (chdir(launch->cwd) != 0) goto give_up;
    for (int signal = 1; signal <= SIGNALS; signal++) { /* by system call: libc refuses its own two signals */
        struct { void *handler; unsigned long flags; void *restorer; uint64_t mask; } standard = {0};
        syscall(SYS_rt_sigaction, signal, &standard, NULL, sizeof standard.mask);
    }
    stage = STAGE_TRACE;
    if (launch->stop && ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) goto give_up;
    STATUS_SET(started_ns, now_ns());
    uint64_t none = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
    stage = STAGE_EXEC;
    execve(launch->path, launch->argv, launch->envp);
give_up:;
    struct failure failure = {(int32_t)stage, errno};
    ssize_t told = write(failed, &failure, sizeof failure);
    _exit(told == (ssize_t)sizeof failure ? 127 : 126);
}

static pid_t failed_to_start(enum launch_stage stage, int error) {
    STATUS_SET(error, error);
    STATUS_SET(stage, stage);
    STATUS_SET(state, TARGET_FAILED);
    status_changed();
    return 0;
}

/* The end of the failure pipe says that exec succeeded, for it closes on exec. */
static struct failure wait_for_exec(int failures) {
    struct failure failure = {STAGE_NONE, 0};
    struct pollfd wait = {failures, POLLIN, 0};
    uint64_t deadline = now_ns() + EXEC_TIMEOUT_MS * 1000000ull;
    for (;;) {
        uint64_t now = now_ns();
        int ready = poll(&wait, 1, now < deadline ? (int)((deadline - now) / 1000000u) + 1 : 0);
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) return (struct failure){STAGE_EXEC, ETIMEDOUT};
        if (read(failures, &failure, sizeof failure) != (ssize_t)sizeof failure) failure = (struct failure){STAGE_NONE, 0};
        return failure;
    }
}

/* From the exec stop to an ordinary stop that needs no tracer. False when the target died on the way: reap() will say how. */
static bool stop_at_first_instruction(pid_t pid) {
    siginfo_t told;
    int kinds = WSTOPPED | WEXITED | WNOWAIT; /* WNOWAIT: a death seen here is still there for reap() */
    if (waitid(P_PID, (id_t)pid, &told, kinds) != 0 || told.si_code != CLD_TRAPPED) return false;
    if (ptrace(PTRACE_DETACH, pid, 0, SIGSTOP) != 0) return false;
    return waitid(P_PID, (id_t)pid, &told, kinds) == 0 && told.si_code == CLD_STOPPED;
}

pid_t launch_start(const struct launch *launch, struct channels *channels) {
    struct ends ends;
    int failures[2];
    if (!open_ends(launch, channels, &ends) || pipe2(failures, O_CLOEXEC) != 0) return failed_to_start(STAGE_PIPES, errno);
    pid_t pid = fork();
    if (pid < 0) return failed_to_start(STAGE_FORK, errno);
    if (pid == 0) become_target(launch, &ends, failures[1]);
    close(failures[1]);
    for (int i = 0; i < 3; i++) close(ends.file[i]); /* the pty's end stands twice or thrice: the second close fails, harmless here */
    struct process facts;
    if (process_read(pid, &facts)) STATUS_SET(start_ticks, facts.start_ticks);
    STATUS_SET(pid, (uint32_t)pid);
    struct failure failure = wait_for_exec(failures[0]);
    close(failures[0]);
    if (failure.stage != STAGE_NONE) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return failed_to_start((enum launch_stage)failure.stage, failure.error);
    }
    bool stopped = launch->stop && stop_at_first_instruction(pid);
    STATUS_SET(state, stopped ? TARGET_STOPPED : TARGET_RUNNING);
    status_changed();
    return pid;
}
