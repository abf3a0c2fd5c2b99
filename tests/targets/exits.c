/* Ends in every way a program can: `exits code N`, `_exit N`, `signal N`, `abort`, `return N`, `quick N`, `thread N` (exit from a thread). */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void at_exit(void) { printf("at exit\n"); }

__attribute__((noinline)) static void end_with_exit(int code) { exit(code); }
__attribute__((noinline)) static void end_at_once(int code) { fflush(stdout); _exit(code); }
__attribute__((noinline)) static void end_quickly(int code) { fflush(stdout); quick_exit(code); }
__attribute__((noinline)) static void end_by_signal(int number) { fflush(stdout); raise(number); }
__attribute__((noinline)) static void end_by_abort(void) { fflush(stdout); abort(); }

static void *exit_from_thread(void *code) { end_with_exit((int)(long)code); return NULL; }

__attribute__((noinline)) static int end(const char *how, int number) {
    if (!strcmp(how, "code")) end_with_exit(number);
    if (!strcmp(how, "_exit")) end_at_once(number);
    if (!strcmp(how, "quick")) end_quickly(number);
    if (!strcmp(how, "signal")) end_by_signal(number);
    if (!strcmp(how, "abort")) end_by_abort();
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, exit_from_thread, (void *)(long)number);
        for (;;) pause();
    }
    return number;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    atexit(at_exit);
    printf("ending by %s\n", argv[1]);
    fprintf(stderr, "to stderr\n");
    return end(argv[1], argc > 2 ? atoi(argv[2]) : 0);
}
