/* A steady load: `bench_rate CALLS_PER_S SECONDS [THREADS]` calls `work` at that rate in slices of 1 ms, and prints how many calls it made and how long it took. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds;
static long per_slice;

__attribute__((noinline)) int work(int a, int b) {
    __asm__ volatile("" ::: "memory");
    return a * 3 + b;
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void *load(void *unused) {
    (void)unused;
    int value = 0;
    long slices = 0;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    double end = now() + seconds;
    while (now() < end) {
        for (long i = 0; i < per_slice; i++) value = work((int)i, value);
        slices++;
        next.tv_nsec += 1000000;
        if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec++; }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL); /* returns at once while behind, so the rate is caught up */
    }
    return (void *)(slices * per_slice);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int threads = argc > 3 ? atoi(argv[3]) : 1;
    if (threads < 1 || threads > 64) return 2;
    per_slice = atol(argv[1]) / threads / 1000;
    seconds = atof(argv[2]);
    pthread_t workers[64];
    double start = now();
    for (int i = 0; i < threads; i++) pthread_create(&workers[i], NULL, load, NULL);
    long calls = 0;
    for (int i = 0; i < threads; i++) {
        void *made;
        pthread_join(workers[i], &made);
        calls += (long)made;
    }
    printf("calls %ld seconds %.3f\n", calls, now() - start);
    return 0;
}
