/* Four threads that call 2000 functions without a pause, while somebody patches them. Each pass over all functions has a known sum; a wrong
 * one aborts. Commands on stdin: `hold` (all threads wait), `count K` (each thread makes exactly K passes, then waits), `free`, `quit`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4 };

static long offsets[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
static long (*volatile helper)(long);

__attribute__((noinline)) static long help(long a) { return a * 7 + 1; }

/* Starts of several shapes: plain arithmetic, a branch at once, a global (rip-relative), a call at once, pushes, floating point, a loop. */
#define F(n) \
    __attribute__((noinline)) long f_##n(long a, long b) { \
        switch ((n) % 7) { \
        case 0: return a * (n) + b; \
        case 1: return a > (n) ? b - (n) : a + (n); \
        case 2: return offsets[(a + (n)) & 15] + b; \
        case 3: return help(a + (n)) + b; \
        case 4: { long x = helper(a), y = helper(b), z = helper(x + (n)); return x * y + z + a - b; } \
        case 5: return (long)((double)a * 1.5 + (double)b + (n)); \
        default: { long sum = b; for (long i = 0; i < (a & 7); i++) sum = sum * 31 + offsets[i] + (n); return sum; } \
        } \
    }
#define R1(d) F(d##0) F(d##1) F(d##2) F(d##3) F(d##4) F(d##5) F(d##6) F(d##7) F(d##8) F(d##9)
#define R2(d) R1(d##0) R1(d##1) R1(d##2) R1(d##3) R1(d##4) R1(d##5) R1(d##6) R1(d##7) R1(d##8) R1(d##9)
#define R3(d) R2(d##0) R2(d##1) R2(d##2) R2(d##3) R2(d##4) R2(d##5) R2(d##6) R2(d##7) R2(d##8) R2(d##9)
R3(1)
R3(2)
#undef F
#define F(n) f_##n,
static long (*const table[])(long, long) = {R3(1) R3(2)};
enum { FUNCTIONS = sizeof table / sizeof *table };

static long pass(void) {
    long sum = 0;
    for (int i = 0; i < FUNCTIONS; i++) sum = sum * 3 + table[i](i & 63, sum & 1023);
    return sum;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long expected, left[THREADS]; /* passes to make; -1: without end */
static int waiting, ending;

static long next(long number) {
    pthread_mutex_lock(&lock);
    waiting++;
    pthread_cond_broadcast(&changed);
    while (!left[number] && !ending) pthread_cond_wait(&changed, &lock);
    waiting--;
    long passes = left[number] > 0 ? left[number] : 1;
    if (left[number] > 0) left[number] = 0;
    pthread_mutex_unlock(&lock);
    return ending ? 0 : passes;
}

static void *work(void *argument) {
    long number = (long)argument;
    for (long passes; (passes = next(number));)
        while (passes--)
            if (pass() != expected) abort();
    return NULL;
}

/* Gives each thread `passes`; unless they are without end, returns when all wait again. */
static void order(long passes) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < THREADS; i++) left[i] = passes;
    pthread_cond_broadcast(&changed);
    if (passes > 0) {
        int done = 0;
        while (!done) {
            pthread_cond_wait(&changed, &lock);
            done = waiting == THREADS;
            for (int i = 0; i < THREADS; i++) done = done && !left[i];
        }
    }
    while (!passes && waiting < THREADS) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

int main(void) {
    char line[64];
    pthread_t threads[THREADS];
    helper = help;
    expected = pass();
    for (long i = 0; i < THREADS; i++) left[i] = -1;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    printf("ready %d\n", FUNCTIONS);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n")) {
        if (!strncmp(line, "count ", 6)) order(atol(line + 6));
        else order(strcmp(line, "hold\n") ? -1 : 0);
        printf("done %s", line);
        fflush(stdout);
    }
    ending = 1;
    order(-1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    puts("bye");
    return 0;
}
