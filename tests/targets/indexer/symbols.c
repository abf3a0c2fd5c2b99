// Symbols of every kind that the indexer tells apart.
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) int plain(int a) { return a + 1; }
int __plain_internal(int a) __attribute__((alias("plain")));
int weak_plain(int a) __attribute__((weak, alias("plain")));
__attribute__((noinline)) int tail_of_name(int a) { return a + 2; }
__attribute__((noinline)) int name(int a) { return a + 3; } // its name is a tail of the one before: linkers share the string

static int fast(int a) { return a * 2; }
static int (*choose(void))(int) { return fast; }
int indirect(int a) __attribute__((ifunc("choose")));

__attribute__((noinline, cold, noreturn)) void give_up(const char *why) {
    puts(why);
    __builtin_abort();
}

__attribute__((noinline)) static int cloned(int a, int mode, const char *text) {
    int total = 0;
    for (int i = 0; i < a; i++)
        total += mode == 3 ? i * (int)strlen(text) : i ^ a;
    return total;
}

__attribute__((noinline)) int split(int a) {
    if (__builtin_expect(a == 12345, 0)) {
        printf("unlikely %d\n", a);
        give_up("split");
    }
    return a * 7;
}

int main(int argc, char **argv) {
    int counter(int by) { return argc + by; }
    int (*volatile nested)(int) = counter;
    printf("%d\n", plain(argc) + __plain_internal(1) + weak_plain(2) + tail_of_name(3) + name(4) + indirect(5) + cloned(argc, 3, argv[0]) + cloned(argc + 1, 3, argv[0]) + split(argc) + nested(2));
    return 0;
}
