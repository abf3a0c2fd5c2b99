/* The keeper's parts and what they share. What the keeper promises stands in KEEPER.md. */
#ifndef STROBE_KEEPER_H
#define STROBE_KEEPER_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The status page. Its layout is STATUS in strobe/launch/status.py; tests/actor/test_keeper.py compares the two. */
struct keeper_status {
    uint64_t magic;
    uint64_t changes;
    uint32_t state;
    uint32_t keeper_pid;
    uint32_t pid;
    uint32_t stage;
    int32_t error;
    uint32_t wait_status;
    uint64_t started_ns;
    uint64_t exited_ns;
    uint64_t output_bytes;
    uint64_t stream_bytes[2];
    uint32_t stream_ended[2];
    uint64_t stream_dev[2];
    uint64_t stream_ino[2];
    uint64_t reaped;
    uint64_t disk_full_ns;
    uint64_t start_ticks;
    uint32_t wait_known;
};
#define STATUS_MAGIC 0x54535045454B5453u
#define STATUS_BYTES 4096u

enum target_state { TARGET_STARTING, TARGET_STOPPED, TARGET_RUNNING, TARGET_EXITED, TARGET_FAILED };
enum launch_stage { STAGE_NONE, STAGE_READ_LAUNCH, STAGE_PIPES, STAGE_FORK, STAGE_CHDIR, STAGE_EXEC, STAGE_TRACE, STAGE_WATCH };

/* What the launch file asks for; every pointer lies in its private mapping. */
struct launch {
    char *path;
    char **argv;
    char **envp;
    char *cwd;
    char *stdin_kind;
    bool pty;
    bool stop;
    uint64_t alone_ns; /* a target that still waits at its first instruction is killed when nobody has been connected for so long */
    pid_t watch; /* 0: there is something to launch */
    uint64_t start_ticks;
};

enum { STREAM_STDOUT, STREAM_STDERR, STREAMS };

/* The keeper's ends of what the target reads and writes; -1 where there is none. */
struct channels {
    int stream[STREAMS];
    int input;
    bool pty;
    bool root_alive;
    bool hung; /* a pty that nobody has open just now, though the root lives */
};

extern struct keeper_status *status;
uint64_t now_ns(void);
void status_changed(void);
/* One status field, so that a reader of another process never sees it half written. */
#define STATUS_SET(field, value) __atomic_store_n(&status->field, (value), __ATOMIC_RELEASE)

/* keeper_launch.c */
bool launch_read(const char *name, struct launch *launch);
/* The target's pid, or 0 when it never ran (the status says why). */
pid_t launch_start(const struct launch *launch, struct channels *channels);

/* keeper_output.c: all return at once. */
bool output_open(const char *name);
/* Reads what a stream holds and appends it as one record; marks the stream's end and closes it. True when there may be more. */
bool output_read(struct channels *channels, int stream, bool keep);
/* Reads all that was written before the call. 0, or -ENOSPC when it waits for disk space. */
int32_t output_catch_up(struct channels *channels, bool keep);
/* True while a record waits for disk space: nothing may be read then. */
bool output_waits(void);
void output_retry(void);
void output_forget(void);

/* keeper_input.c */
/* Bytes accepted, or -errno. All or nothing. */
int32_t input_queue(struct channels *channels, const void *bytes, uint32_t count);
void input_close(struct channels *channels);
bool input_wants_write(const struct channels *channels);
void input_write(struct channels *channels);
/* Nobody reads it any more, or all of it is written: close it and forget what is queued. */
void input_shut(struct channels *channels);

/* keeper_control.c */
enum { CONTROL_CONNECTIONS = 8 };
struct pollfd;
bool control_open(const char *name);
bool control_connected(void);
/* Fills CONTROL_CONNECTIONS + 1 entries. */
void control_poll(struct pollfd *polls);
/* Serves what poll(2) found. Sets *drain once that command came. */
void control_serve(const struct pollfd *polls, struct channels *channels, pid_t root, bool *drain);

/* keeper_tree.c */
struct process { pid_t pid, parent, group; char state; uint64_t start_ticks; };
bool process_read(pid_t pid, struct process *process);
/* Signals every descendant of the keeper, and the root's process group while `root` is not reaped (else 0). 0 or -errno. */
int32_t tree_signal(pid_t root, int signal);
/* From now on signals go to that process alone, which is watched. */
void tree_watch(int process);

/* keeper_watch.c */
/* A pidfd of the process that `launch` names, or -1 with errno: ESRCH also when another process has its pid now. */
int watch_open(const struct launch *launch);
void watch_serve(const struct launch *launch, int process);
int32_t watch_signal(int process, int signal);
#endif
