/* Threads with thread-local state, locks and conditions; threads that end by pthread_exit from nested calls and by cancellation, with cleanup handlers. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 16, ROUNDS = 2000 };

static __thread unsigned long own = 7;
static __thread char text[64];
static pthread_key_t key;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long shared_total, cleanups, destructed;
static pthread_barrier_t barrier;
static sem_t waiting;

__attribute__((noinline)) static unsigned long step(unsigned long value, int round) { own = own * 1103515245u + 12345u; return value + (own >> 16) % 100 + (unsigned long)round; }

__attribute__((noinline)) static void add(unsigned long value) {
    pthread_mutex_lock(&lock);
    shared_total += value;
    pthread_mutex_unlock(&lock);
}

static void cleanup(void *unused) { (void)unused; __atomic_fetch_add(&cleanups, 1, __ATOMIC_SEQ_CST); }
static void destruct(void *value) { free(value); __atomic_fetch_add(&destructed, 1, __ATOMIC_SEQ_CST); }

__attribute__((noinline)) static void leave(int depth, void *result) {
    pthread_cleanup_push(cleanup, NULL);
    if (depth == 0) pthread_exit(result);
    leave(depth - 1, result);
    pthread_cleanup_pop(0);
}

static void *work(void *argument) {
    long number = (long)argument;
    pthread_setspecific(key, malloc(16));
    own += (unsigned long)number;
    unsigned long sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        sum = step(sum, round);
        if (round % 100 == 0) add(sum % 1000);
        if (round % 500 == 0) pthread_barrier_wait(&barrier);
    }
    snprintf(text, sizeof text, "%ld:%lu", number, sum);
    if (number % 2) leave((int)number, (void *)sum);
    return (void *)sum;
}

__attribute__((noinline)) static void wait_for_cancel(int depth) {
    pthread_cleanup_push(cleanup, NULL);
    if (depth == 0) { sem_post(&waiting); for (;;) pause(); }
    wait_for_cancel(depth - 1);
    pthread_cleanup_pop(0);
}

static void *cancelled(void *unused) { (void)unused; wait_for_cancel(10); return NULL; }

int main(void) {
    pthread_t threads[THREADS];
    pthread_key_create(&key, destruct);
    sem_init(&waiting, 0, 0);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        printf("thread %d %lu\n", i, (unsigned long)result);
    }
    for (int i = 0; i < 20; i++) {
        void *result;
        pthread_create(&threads[0], NULL, cancelled, NULL);
        sem_wait(&waiting);
        pthread_cancel(threads[0]);
        pthread_join(threads[0], &result);
        if (result != PTHREAD_CANCELED) return 4;
    }
    printf("total %lu cleanups %lu destructed %lu own %lu\n", shared_total, cleanups, destructed, own);
    return 0;
}
