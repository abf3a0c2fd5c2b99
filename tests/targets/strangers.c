/* Says what a program finds when it starts: signals, files, groups, limits, its argv and environment, one fact a line. */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv) {
    for (int i = 1; i <= 64; i++) {
        struct sigaction now;
        if (sigaction(i, NULL, &now) == 0 && now.sa_handler != SIG_DFL) printf("signal %d\n", i);
    }
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i <= 64; i++)
        if (sigismember(&mask, i) == 1) printf("blocked %d\n", i);
    DIR *files = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(files)) != NULL;)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(files)) printf("file %s\n", entry->d_name);
    closedir(files);
    printf("leader %d\n", getsid(0) == getpid() && getpgrp() == getpid());
    printf("terminal %d%d%d\n", isatty(0), isatty(1), isatty(2));
    char folder[4096], line[256];
    printf("cwd %s\n", getcwd(folder, sizeof folder));
    for (int i = 0; i < argc; i++) printf("arg %s\n", argv[i]);
    for (char **item = environ; *item != NULL; item++) printf("env %s\n", *item);
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "TracerPid", 9) == 0) printf("tracer %d\n", atoi(line + 10));
    return 0;
}
