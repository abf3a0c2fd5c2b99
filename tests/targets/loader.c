/* `loader COMMAND...`: loads libraries (plugin.c) as it is told, one command after the other, and prints what came of each.
 *
 *   open=PATH   mopen=PATH (dlmopen)   close   call=N   call (plugin_work of the library opened last)
 *   fork=PATH   a child opens PATH, calls and exits; prints whether that took less than a second
 *   blocked=PATH   in a thread with all signals blocked
 *   rounds=COUNT,THREADS,PATH,PATH...   each thread opens one after the other, calls, closes, COUNT times
 *   wait=FILE   until FILE is there
 *   clock   from here on, opening prints the microseconds it took on stderr
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIBRARIES 64
static void *opened[LIBRARIES];
static int count, timed;

static long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static long work(void *library, long value) {
    long (*call)(long) = (long (*)(long))dlsym(library, "plugin_work");
    return call ? call(value) : -1;
}

__attribute__((noinline)) static void *load(const char *path, int apart) {
    long before = microseconds();
    void *library = apart ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW);
    if (timed) fprintf(stderr, "%ld\n", microseconds() - before);
    return library;
}

static void *open_blocked(void *path) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    return load(path, 0);
}

static void fork_and_load(char *path) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        long before = microseconds();
        void *library = load(path, 0);
        long value = library ? work(library, 2) : -1;
        _exit(value > 0 && microseconds() - before < 1000000 ? 7 : 8);
    }
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

struct rounds { int count, paths; char *path[8]; };

static void *go_round(void *argument) {
    const struct rounds *rounds = argument;
    long sum = 0;
    for (int n = 0; n < rounds->count; n++) {
        void *library = load(rounds->path[n % rounds->paths], 0);
        sum += library && work(library, 1) > 0;
        if (library) dlclose(library);
    }
    return (void *)sum;
}

static void go_rounds(char *text) {
    struct rounds rounds = {atoi(strtok(text, ",")), 0, {NULL}};
    int threads = atoi(strtok(NULL, ","));
    pthread_t thread[16];
    long sum = 0;
    for (char *path; rounds.paths < 8 && (path = strtok(NULL, ","));) rounds.path[rounds.paths++] = path;
    for (int n = 0; n < threads && n < 16; n++) pthread_create(&thread[n], NULL, go_round, &rounds);
    for (int n = 0; n < threads && n < 16; n++) {
        void *part;
        pthread_join(thread[n], &part);
        sum += (long)part;
    }
    printf("rounds %ld\n", sum);
}

static void obey(char *command) {
    char *value = strchr(command, '=');
    if (value) *value++ = 0;
    if (!strcmp(command, "open") || !strcmp(command, "mopen") || !strcmp(command, "blocked")) {
        void *library = NULL;
        if (*command == 'b') {
            pthread_t thread;
            pthread_create(&thread, NULL, open_blocked, value);
            pthread_join(thread, &library);
        } else {
            library = load(value, *command == 'm');
        }
        if (library) opened[count++ % LIBRARIES] = library;
        printf("%s %s\n", command, library ? "done" : "failed");
    } else if (!strcmp(command, "close")) {
        printf("close %d\n", dlclose(opened[--count]));
    } else if (!strcmp(command, "call")) {
        printf("call %ld\n", work(opened[count - 1], value ? atol(value) : 1));
    } else if (!strcmp(command, "fork")) {
        fork_and_load(value);
    } else if (!strcmp(command, "rounds")) {
        go_rounds(value);
    } else if (!strcmp(command, "wait")) {
        while (access(value, F_OK)) usleep(1000);
    } else if (!strcmp(command, "clock")) {
        timed = 1;
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    for (int n = 1; n < argc; n++) obey(argv[n]);
    return 5;
}
