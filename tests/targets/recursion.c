/* Deep recursion: linear to `depth` frames, mutual, and Ackermann's. `recursion overflow` goes on until the stack ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned long calls;

__attribute__((noinline)) static unsigned long down(unsigned depth, unsigned long value) {
    calls++;
    if (depth == 0) return value;
    return down(depth - 1, value * 3 + depth) ^ value;
}

static int is_odd(unsigned n);
__attribute__((noinline)) static int is_even(unsigned n) { calls++; return n == 0 ? 1 : !!is_odd(n - 1) + 0; }
__attribute__((noinline)) static int is_odd(unsigned n) { calls++; return n == 0 ? 0 : !!is_even(n - 1) + 0; }

__attribute__((noinline)) static unsigned ackermann(unsigned m, unsigned n) {
    calls++;
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__attribute__((noinline)) static unsigned long endless(unsigned long depth) {
    volatile char frame[512];
    frame[depth % 512] = 1;
    return depth == ~0ul ? 0 : endless(depth + 1) + (unsigned long)frame[depth % 512];
}

int main(int argc, char **argv) {
    unsigned depth = argc > 1 && strcmp(argv[1], "overflow") ? (unsigned)atoi(argv[1]) : 40000;
    printf("down %lu\n", down(depth, 1));
    printf("even %d odd %d\n", is_even(20000), is_odd(20001));
    printf("ackermann %u\n", ackermann(2, 60));
    printf("calls %lu\n", calls);
    fflush(stdout);
    if (argc > 1 && !strcmp(argv[1], "overflow")) printf("%lu\n", endless(0));
    return 0;
}
