/* setjmp and longjmp over several frames, back into frames that go on calling, out of loops, with signal masks, and a second jump to the same place. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf outer, inner;
static sigjmp_buf masked;
static volatile unsigned long total;

__attribute__((noinline)) static int leaf(int depth, int value) { total += value; return value * 2 + depth; }

__attribute__((noinline)) static int climb(int depth, int jump_at, jmp_buf *to, int value) {
    if (depth > 64) return depth;
    if (depth == jump_at) longjmp(*to, value);
    int below = climb(depth + 1, jump_at, to, value) + leaf(depth, value);
    return below;
}

__attribute__((noinline)) static int attempt(int depth, int value) {
    volatile int tries = 0;
    int got = setjmp(inner);
    tries++;
    if (got == 0) climb(0, depth, &inner, value);
    if (tries < 3) climb(0, depth / 2, &inner, got + 1);
    return got + leaf(depth, tries);
}

__attribute__((noinline)) static int nested(int round) {
    int got = setjmp(outer);
    if (got != 0) return leaf(round, got);
    int sum = attempt(round % 7 + 1, round + 1);
    climb(0, round % 5 + 1, &outer, sum);
    return -1;
}

__attribute__((noinline)) static void jump_from_handler(int number) { siglongjmp(masked, number); }

__attribute__((noinline)) static int handled(int number) {
    if (sigsetjmp(masked, 1) == 0) { raise(number); return -1; }
    return leaf(0, number);
}

int main(void) {
    long sum = 0;
    for (int round = 0; round < 2000; round++) sum += nested(round);
    signal(SIGUSR1, jump_from_handler);
    signal(SIGFPE, jump_from_handler);
    for (int round = 0; round < 200; round++) sum += handled(round % 2 ? SIGUSR1 : SIGFPE);
    printf("sum %ld total %lu\n", sum, total);
    return (int)(sum & 63);
}
