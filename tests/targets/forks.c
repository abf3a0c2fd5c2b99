/* Children: fork from nested calls, vfork and exec of itself, posix_spawn, system, a grandchild; each prints, each ends with a status of its own. */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *self;

__attribute__((noinline)) static int report(const char *what, int number) {
    printf("%s %d\n", what, number);
    fflush(stdout);
    return number;
}

__attribute__((noinline)) static int wait_status(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) return -1;
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

__attribute__((noinline)) static int child(int number) {
    report("child", number);
    if (number % 5 == 4) { pid_t pid = fork(); if (pid == 0) _exit(report("grandchild", number) + 1); report("grandchild ended", wait_status(pid)); }
    if (number % 5 == 3) raise(SIGTERM);
    if (number % 2) _exit(number);
    return number;
}

__attribute__((noinline)) static int fork_nested(int depth, int number) {
    if (depth) return fork_nested(depth - 1, number) + 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) exit(child(number));
    return wait_status(pid);
}

__attribute__((noinline)) static int vfork_exec(const char *word) {
    pid_t pid = vfork();
    if (pid == 0) { execl(self, self, word, (char *)NULL); _exit(127); }
    return wait_status(pid);
}

__attribute__((noinline)) static int vfork_exit(int code) {
    pid_t pid = vfork();
    if (pid == 0) _exit(code);
    return wait_status(pid);
}

__attribute__((noinline)) static int spawned(const char *word) {
    char *arguments[] = {(char *)self, (char *)word, NULL};
    pid_t pid;
    if (posix_spawn(&pid, self, NULL, NULL, arguments, environ)) return -1;
    return wait_status(pid);
}

int main(int argc, char **argv) {
    self = "/proc/self/exe";
    static char path[4096];
    ssize_t length = readlink(self, path, sizeof path - 1);
    if (length > 0) { path[length] = 0; self = path; }
    if (argc > 1) { report(argv[1], argc); return 42; }
    for (int i = 0; i < 30; i++) report("ended", fork_nested(i % 6, i));
    for (int i = 0; i < 5; i++) report("vfork exec", vfork_exec("by-vfork"));
    for (int i = 0; i < 5; i++) report("vfork exit", vfork_exit(i + 50));
    for (int i = 0; i < 5; i++) report("spawn", spawned("by-spawn"));
    report("system", system("exit 7") >> 8);
    return 0;
}
