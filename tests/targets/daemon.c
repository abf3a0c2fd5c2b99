/* Leaves a daemonised child that goes on printing after the parent ended: `daemon LINES` numbered lines, 10 ms apart. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static void tell(int number) { printf("daemon line %d\n", number); fflush(stdout); }

__attribute__((noinline)) static void live_on(int lines) {
    struct timespec pause_for = {0, 10000000};
    for (int i = 0; i < lines; i++) { nanosleep(&pause_for, NULL); tell(i); }
    _exit(0);
}

int main(int argc, char **argv) {
    int lines = argc > 1 ? atoi(argv[1]) : 50;
    printf("parent\n");
    fflush(stdout);
    pid_t first = fork();
    if (first == 0) {
        setsid();
        if (fork() == 0) live_on(lines);
        _exit(0);
    }
    waitpid(first, NULL, 0);
    return 5;
}
