/* Takes its own stack as crash reporters do: backtrace() at every depth of nested calls must name the callers, and __builtin_frame_address must be in order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>

extern int level_a(int depth), level_b(int depth), level_c(int depth);

__attribute__((noinline)) int show(int depth) {
    void *frames[64];
    int count = backtrace(frames, 64), named = 0;
    for (int i = 0; i < count; i++) {
        Dl_info info;
        if (!dladdr(frames[i], &info) || !info.dli_sname || !strstr("show level_a level_b level_c main", info.dli_sname)) continue;
        printf("%s%s", named++ ? " < " : "", info.dli_sname);
    }
    printf(" (depth %d)\n", depth);
    return count > 0 ? named : -1;
}

__attribute__((noinline)) int level_c(int depth) { int r = depth ? level_a(depth - 1) : show(depth); return r + 1; }
__attribute__((noinline)) int level_b(int depth) { int r = level_c(depth); return r + 1; }
__attribute__((noinline)) int level_a(int depth) { int r = level_b(depth); return r + 1; }

int main(void) {
    int sum = 0;
    for (int depth = 0; depth < 5; depth++) sum += level_a(depth);
    printf("sum %d\n", sum);
    return 0;
}
