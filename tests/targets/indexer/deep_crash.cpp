// Crashes inside a signal handler, under a comparison function that libc's qsort calls, under inlined calls. argv[1]: "handler" or "call".
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

static volatile int *nowhere;
static void (*volatile target)();

struct Box {
    int values[8];
    __attribute__((noinline)) int largest(int limit);
};

static inline __attribute__((always_inline)) void poke(int value) {
    if (target)
        target();
    *nowhere = value;
}

extern "C" __attribute__((noinline)) void on_signal(int number) {
    volatile char pad[100];
    memset((void *)pad, number, sizeof pad);
    poke(pad[3]);
}

static int compare(const void *left, const void *right) {
    raise(SIGUSR1);
    return *(const int *)left - *(const int *)right;
}

int Box::largest(int limit) {
    volatile int copy[64];
    copy[limit & 63] = limit;
    qsort(values, 8, sizeof values[0], compare);
    return values[7] + copy[limit & 63];
}

template <class T> __attribute__((noinline)) T twice(T value, Box &box) {
    volatile T kept = value;
    int big = box.largest((int)value);
    return kept * 2 + big;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "call"))
        target = (void (*)())0x10;
    signal(SIGUSR1, on_signal);
    Box box = {{5, 3, 8, 1, 2, 9, 7, 6}};
    printf("%d\n", (int)twice<long>(argc, box));
    return 0;
}
