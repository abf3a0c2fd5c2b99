/* Ways to wait for each other, by name: locks CASE. Prints "up" once it is (about to be) in that state. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER, lock_b = PTHREAD_MUTEX_INITIALIZER, lock_c = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t slots;
static pthread_barrier_t both;
static pthread_t main_thread;
static atomic_int ready;

static void up(void) { puts("up"); fflush(stdout); }

static void transfer(pthread_mutex_t *from, pthread_mutex_t *to, const char *name) {
    prctl(PR_SET_NAME, name);
    pthread_mutex_lock(from);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(to);
    pthread_mutex_unlock(to);
    pthread_mutex_unlock(from);
}
static void *transfer_ab(void *_) { transfer(&lock_a, &lock_b, "transfer-ab"); return _; }
static void *transfer_ba(void *_) { transfer(&lock_b, &lock_a, "transfer-ba"); return _; }
static void *transfer_bc(void *_) { transfer(&lock_b, &lock_c, "transfer-bc"); return _; }
static void *transfer_ca(void *_) { transfer(&lock_c, &lock_a, "transfer-ca"); return _; }
static void *write_table(void *_) {
    prctl(PR_SET_NAME, "writer");
    pthread_rwlock_wrlock(&table);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&lock_a);
    return _;
}
static void *read_table(void *_) {
    prctl(PR_SET_NAME, "reader");
    pthread_mutex_lock(&lock_a);
    pthread_barrier_wait(&both);
    pthread_rwlock_rdlock(&table);
    return _;
}
static void *wait_change(void *_) {
    prctl(PR_SET_NAME, "waiter");
    pthread_mutex_lock(&lock_a);
    ready = 1;
    for (;;) pthread_cond_wait(&changed, &lock_a);
    return _;
}
static void *take_slot(void *_) { prctl(PR_SET_NAME, "taker"); ready = 1; sem_wait(&slots); return _; }
static void *join_main(void *_) { prctl(PR_SET_NAME, "joiner"); pthread_join(main_thread, NULL); return _; }
static void *die_holding(void *_) { pthread_mutex_lock(&lock_a); return _; }
static void *hold_and_sleep(void *_) { prctl(PR_SET_NAME, "holder"); pthread_mutex_lock(&lock_a); ready = 1; sleep(60); return _; }
static void *timed(void *_) {
    prctl(PR_SET_NAME, "timed-ba");
    struct timespec until;
    pthread_mutex_lock(&lock_b);
    pthread_barrier_wait(&both);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_timedlock(&lock_a, &until);
    return _;
}
static void *compute(void *_) {
    prctl(PR_SET_NAME, "producer");
    volatile double sum = 0;
    for (long i = 1; i < 20000000000L; i++) sum += 1.0 / (double)i;
    pthread_cond_signal(&changed);
    return _;
}
static void until_ready(void) { while (!ready) usleep(1000); }

static void start(int count, void *(*const work[])(void *)) {
    pthread_t threads[8];
    pthread_barrier_init(&both, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, work[i], NULL);
    up();
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}
#define START(...) start(sizeof((void *(*[])(void *)){__VA_ARGS__}) / sizeof(void *), (void *(*const[])(void *)){__VA_ARGS__})

int main(int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "";
    pthread_t thread;
    main_thread = pthread_self();
    if (!strcmp(wanted, "two")) START(transfer_ab, transfer_ba);
    else if (!strcmp(wanted, "three")) START(transfer_ab, transfer_bc, transfer_ca);
    else if (!strcmp(wanted, "rwlock")) START(write_table, read_table);
    else if (!strcmp(wanted, "timed")) START(transfer_ab, timed);
    else if (!strcmp(wanted, "self")) { up(); pthread_mutex_lock(&lock_a); pthread_mutex_lock(&lock_a); }
    else if (!strcmp(wanted, "join")) { pthread_create(&thread, NULL, join_main, NULL); up(); pthread_join(thread, NULL); }
    else if (!strcmp(wanted, "semaphore")) { sem_init(&slots, 0, 0); START(take_slot, take_slot); }
    else if (!strcmp(wanted, "condition")) START(wait_change);
    else if (!strcmp(wanted, "abandoned")) { pthread_create(&thread, NULL, die_holding, NULL); pthread_join(thread, NULL); up(); pthread_mutex_lock(&lock_a); }
    else if (!strcmp(wanted, "sleeper")) { pthread_create(&thread, NULL, hold_and_sleep, NULL); until_ready(); up(); pthread_mutex_lock(&lock_a); }
    else if (!strcmp(wanted, "producer")) START(wait_change, compute);
    else if (!strcmp(wanted, "signal")) { sigset_t set; int got; sigemptyset(&set); sigaddset(&set, SIGUSR1); sigprocmask(SIG_BLOCK, &set, NULL); pthread_create(&thread, NULL, wait_change, NULL); up(); sigwait(&set, &got); }
    else return 2;
    return 0;
}
