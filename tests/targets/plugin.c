/* A library to be loaded late. Its constructor and destructor call functions of its own; STEP tells builds apart; OPENS is a library that the
 * constructor loads in turn; PAD moves the functions to other places; LACKS makes it one that cannot be loaded. */
#include <dlfcn.h>
#include <stddef.h>

#ifndef STEP
#define STEP 1
#endif

static long total;

#ifdef PAD
__attribute__((used, noinline)) static long plugin_pad(long value) { return value * 77 + total * 13 + 5; }
#endif

__attribute__((noinline, noipa)) static long plugin_step(long value) {
    total += value * STEP;
    return total;
}

__attribute__((constructor)) static void plugin_begin(void) {
    plugin_step(100);
#ifdef OPENS
    void *other = dlopen(OPENS, RTLD_NOW);
    long (*work)(long) = other ? (long (*)(long))dlsym(other, "plugin_work") : NULL;
    plugin_step(work ? work(1) : -1000000);
#endif
}

__attribute__((destructor)) static void plugin_end(void) { plugin_step(-1); }

#ifdef LACKS
long missing(void);
long (*lacks)(void) = missing;
#endif

__attribute__((noinline)) long plugin_work(long value) {
    for (int n = 0; n < 3; n++) plugin_step(value);
    return total;
}
