/* Loops with and without an end, by name. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct node { struct node *next; int value; };
static volatile int done;
static volatile long counter;
static volatile double result;
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;

static void spin_on_flag(void) { while (!done) { } }
static void count_forever(void) { for (;;) counter++; }
static int walk(struct node *node) { int sum = 0; for (; node; node = node->next) sum |= node->value; return sum; }
static void *spinner(void *_) { prctl(PR_SET_NAME, "spinner"); spin_on_flag(); return _; }
static void polite(pthread_mutex_t *first, pthread_mutex_t *second) {
    while (!done) {
        pthread_mutex_lock(first);
        if (pthread_mutex_trylock(second) == 0 && done) return;
        pthread_mutex_unlock(first);
        pthread_mutex_unlock(second);
        sched_yield();
    }
}
static void *polite_left(void *_) { prctl(PR_SET_NAME, "polite-left"); polite(&left, &left); return _; }
static void *polite_right(void *_) { prctl(PR_SET_NAME, "polite-right"); polite(&right, &right); return _; }
static long descend(long depth) {
    char room[512];
    memset(room, (int)depth, sizeof room);
    for (volatile int i = 0; i < 20000; i++) { }
    return descend(depth + 1) + room[depth & 511];
}
static void *recurse(void *_) { prctl(PR_SET_NAME, "recurse"); result = (double)descend(0); return _; }
static void compute(void) { for (long i = 1; i < 20000000000L; i++) result += 1.0 / (double)i; }
static long primes(long limit) {
    long found = 0;
    for (long n = 2; n < limit; n++) {
        long d = 2;
        while (d * d <= n && n % d) d++;
        found += d * d > n;
    }
    return found;
}
static void matrix(void) {
    enum { N = 300 };
    static double a[N][N], b[N][N], c[N][N];
    for (int round = 0; round < 100000; round++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j] + round;
                c[i][j] = sum;
            }
    result = c[1][1];
}
static void copy(void) {
    char block[1 << 16];
    int from = open("/dev/zero", O_RDONLY), to = open("/dev/null", O_WRONLY);
    struct timespec pause = {0, 200000};
    for (long i = 0; i < 100000000; i++) {
        if (read(from, block, sizeof block) < 0 || write(to, block, sizeof block) < 0) return;
        nanosleep(&pause, NULL);
    }
}
static void poll_file(void) { while (access("/nonexistent/flag", F_OK)) usleep(5000); }

int main(int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "";
    pthread_t one, two;
    puts("up");
    fflush(stdout);
    if (!strcmp(wanted, "flag")) spin_on_flag();
    else if (!strcmp(wanted, "count")) count_forever();
    else if (!strcmp(wanted, "list")) { struct node ring[3] = {{&ring[1], 1}, {&ring[2], 2}, {&ring[0], 3}}; return walk(ring); }
    else if (!strcmp(wanted, "spinners")) { pthread_create(&one, NULL, spinner, NULL); pthread_create(&two, NULL, spinner, NULL); pthread_join(one, NULL); }
    else if (!strcmp(wanted, "livelock")) { pthread_create(&one, NULL, polite_left, NULL); pthread_create(&two, NULL, polite_right, NULL); pthread_join(one, NULL); }
    else if (!strcmp(wanted, "recursion")) {
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, (size_t)4 << 30);
        pthread_create(&one, &attr, recurse, NULL);
        pthread_join(one, NULL);
    }
    else if (!strcmp(wanted, "compute")) compute();
    else if (!strcmp(wanted, "primes")) return (int)primes(1L << 40);
    else if (!strcmp(wanted, "matrix")) matrix();
    else if (!strcmp(wanted, "copy")) copy();
    else if (!strcmp(wanted, "poll")) poll_file();
    else return 2;
    return 0;
}
