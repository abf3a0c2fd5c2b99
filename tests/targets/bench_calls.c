/* What one call costs: `bench_calls BURST BURSTS PAUSE_MS` times bursts of calls of `work`, with pauses between in which a tracer can drain what it holds,
 * and prints the ns per call of each burst. With BENCH_WAIT set it first waits for a line on stdin. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) int work(int a, int b) {
    __asm__ volatile("" ::: "memory");
    return a * 3 + b;
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    long burst = atol(argv[1]), bursts = atol(argv[2]), pause_ms = atol(argv[3]);
    struct timespec pause_for = {pause_ms / 1000, pause_ms % 1000 * 1000000};
    volatile int sum = 0;
    if (getenv("BENCH_WAIT")) getchar();
    for (int i = 0; i < 1000; i++) sum = work(i, sum);
    for (long round = 0; round < bursts; round++) {
        nanosleep(&pause_for, NULL);
        int local = sum;
        double start = now_ns();
        for (long i = 0; i < burst; i++) local = work((int)i, local);
        double took = now_ns() - start;
        sum = local;
        printf("ns %.3f\n", took / (double)burst);
        fflush(stdout);
    }
    return 0;
}
