/* The target's tree: every descendant of the keeper, which inherits all orphans as their subreaper. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper.h"

enum { PROCESSES_MAX = 65536, ROUNDS_MAX = 64 };

struct directory_entry { /* linux_dirent64: opendir(3) would allocate */
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

bool process_read(pid_t pid, struct process *process) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    if (count <= 0) return false;
    text[count] = 0;
    char *after_name = strrchr(text, ')'); /* the name itself may hold anything */
    if (after_name == NULL) return false;
    int parent, group;
    unsigned long long start_ticks;
    if (sscanf(after_name + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &process->state, &parent, &group, &start_ticks) != 4) return false;
    process->pid = pid;
    process->parent = parent;
    process->group = group;
    process->start_ticks = start_ticks;
    return true;
}

static struct process processes[PROCESSES_MAX];
static bool in_tree[PROCESSES_MAX];

static int read_processes(void) {
    int count = 0, directory = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return -errno;
    static _Alignas(8) char entries[32768];
    for (long bytes; (bytes = syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0;) {
        for (long at = 0; at < bytes && count < PROCESSES_MAX;) {
            const struct directory_entry *entry = (const struct directory_entry *)(entries + at);
            at += entry->bytes;
            pid_t pid = atoi(entry->name);
            if (pid > 0 && process_read(pid, &processes[count])) count++;
        }
    }
    close(directory);
    return count;
}

static int by_pid(const void *left, const void *right) {
    return ((const struct process *)left)->pid - ((const struct process *)right)->pid; /* pids are small and positive */
}

/* Marks the keeper's descendants. /proc lists by pid, so parents mostly come first and few passes are needed. */
static void mark_tree(int count) {
    memset(in_tree, 0, sizeof *in_tree * (size_t)count);
    pid_t keeper = getpid();
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < count; i++) {
            if (in_tree[i]) continue;
            struct process key = {.pid = processes[i].parent};
            const struct process *parent = bsearch(&key, processes, (size_t)count, sizeof key, by_pid);
            if (key.pid == keeper || (parent != NULL && in_tree[parent - processes])) in_tree[i] = more = true;
        }
    }
}

static int watched = -1;

void tree_watch(int process) { watched = process; }

int32_t tree_signal(pid_t root, int signal) {
    if (watched >= 0) return watch_signal(watched, signal);
    if (root > 0 && kill(-root, signal) != 0 && errno != ESRCH) return -errno;
    /* A SIGKILL goes round until nothing is left alive: what forked meanwhile is found in the next round. */
    for (int round = 0; round < (signal == SIGKILL ? ROUNDS_MAX : 1); round++) {
        int count = read_processes();
        if (count < 0) return count;
        mark_tree(count);
        int signalled = 0;
        for (int i = 0; i < count; i++) {
            bool reached = signal != SIGKILL && root > 0 && processes[i].group == root;
            if (!in_tree[i] || reached || processes[i].state == 'Z' || processes[i].state == 'X') continue;
            if (kill(processes[i].pid, signal) == 0) signalled++;
        }
        if (signalled == 0) break;
    }
    return 0;
}
