/* A process to attach to: `attached THREADS SECONDS EXIT [KIND]`. The workers call `work`, the first one now and then, the others without pause; one thread waits in read(0) the whole time; the main
 * thread prints `step N sum S` lines to stdout and now and then one to stderr, until SECONDS have passed or SIGUSR1 came. At the end it prints
 * `done CALLS` and exits with EXIT; KIND crash: dies by SIGSEGV in `strike` instead. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ended;
static _Atomic int stopping;
static uint64_t calls[64];
int gSteps;

static void on_usr1(int signo) { (void)signo; ended = 1; }

struct order { int number; const char *name; double price; };

__attribute__((noinline)) int weigh(struct order *order, int factor) { return order->number * factor + (int)order->price; }

__attribute__((noinline)) uint64_t work(uint64_t seed, int rounds)
{
    for (int i = 0; i < rounds; i++)
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return seed;
}

__attribute__((noinline)) int step(int number, const char *label)
{
    struct order order = {number, label, 2.5};
    int sum = weigh(&order, 3);
    printf("step %d sum %d\n", number, sum);
    fflush(stdout);
    if (number % 10 == 0) {
        struct iovec parts[] = {{"note ", 5}, {(void *)label, strlen(label)}, {"\n", 1}};
        if (writev(2, parts, 3) < 0)
            return -1;
    }
    gSteps = number;
    return sum;
}

__attribute__((noinline)) int strike(int *where) { return *where; }

static void *worker(void *which)
{
    uint64_t *count = which, seed = 1;
    pthread_setname_np(pthread_self(), "worker");
    while (!stopping) {
        seed = work(seed, 20000);
        ++*count;
        if (count == calls)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return (void *)seed;
}

__attribute__((noinline)) ssize_t wait_for_input(char *to, size_t size) { return read(0, to, size); }

static void *reader(void *unused)
{
    char text[16];
    (void)unused;
    pthread_setname_np(pthread_self(), "reader");
    while (wait_for_input(text, sizeof text) > 0)
        ;
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = atoi(argv[1]), status = atoi(argv[3]);
    double seconds = atof(argv[2]);
    pthread_t workers[64], waiting;
    signal(SIGUSR1, on_usr1);
    pthread_create(&waiting, NULL, reader, NULL);
    for (int i = 0; i < threads; i++)
        pthread_create(&workers[i], NULL, worker, &calls[i]);
    struct timespec now, begin, pause = {0, 5000000};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int number = 1; !ended; number++) {
        step(number, number % 2 ? "odd" : "even");
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec) > seconds)
            break;
    }
    stopping = 1;
    uint64_t total = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i], NULL);
        total += calls[i] > 0;
    }
    printf("done %d\n", (int)total);
    fflush(stdout);
    if (argc > 4 && !strcmp(argv[4], "crash"))
        return strike((int *)0x10);
    return status;
}
