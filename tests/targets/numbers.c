/* Load for kill tests: `numbers LINES [THREADS] [CALLS_PER_LINE] [LINE_US]`. Worker threads call a small chain of functions without pause; the main thread
 * prints LINES numbered lines, each LINE_US apart (1000 by default), calling `numbered_line` once a line. Ends with status 17 and the exact number of calls. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static atomic_int stop;
static atomic_ulong all_calls;

__attribute__((noinline)) unsigned long leaf(unsigned long value, int step) { return value * 31 + (unsigned long)step; }
__attribute__((noinline)) unsigned long middle(unsigned long value, int step) { return leaf(value, step) ^ leaf(value, step + 1); }
__attribute__((noinline)) unsigned long chain(unsigned long value) { return middle(value, 1) + middle(value, 3); } /* 7 calls with its own */

static void *work(void *argument) {
    long burst = (long)argument;
    unsigned long value = 1, calls = 0;
    struct timespec breath = {0, 200000};
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (long i = 0; i < burst; i++) value = chain(value);
        calls += 7ul * (unsigned long)burst;
        nanosleep(&breath, NULL);
    }
    atomic_fetch_add(&all_calls, calls);
    return (void *)value;
}

__attribute__((noinline)) void numbered_line(int number) {
    printf("line %d\n", number);
    fflush(stdout);
}

int main(int argc, char **argv) {
    int lines = argc > 1 ? atoi(argv[1]) : 1000;
    int threads = argc > 2 ? atoi(argv[2]) : 2;
    long burst = argc > 3 ? atol(argv[3]) : 10;
    long line_us = argc > 4 ? atol(argv[4]) : 1000;
    pthread_t workers[64];
    if (threads > 64) return 2;
    for (int i = 0; i < threads; i++) pthread_create(&workers[i], NULL, work, (void *)burst);
    struct timespec between = {line_us / 1000000, line_us % 1000000 * 1000};
    for (int i = 0; i < lines; i++) {
        numbered_line(i);
        nanosleep(&between, NULL);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < threads; i++) pthread_join(workers[i], NULL);
    fprintf(stderr, "calls %lu\n", atomic_load(&all_calls) + (unsigned long)lines);
    return 17;
}
