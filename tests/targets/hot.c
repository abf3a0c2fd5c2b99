/* A function called as often as can be, one that is called now and then meanwhile, and afterwards the first one at its ease. Says how often.

hot CALLS [SLOW_SECONDS] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile long total;

__attribute__((noinline)) static long hot(long number) { total += number; return number; }
__attribute__((noinline)) static long seldom(long number) { total -= number; return number; }

int main(int count, char **arguments) {
    long calls = count > 1 ? atol(arguments[1]) : 1000, seconds = count > 2 ? atol(arguments[2]) : 0, hots = 0, seldoms = 0;
    for (; hots < calls; hots++) {
        hot(hots);
        if (hots % 1000 == 0) {
            seldom(hots);
            seldoms++;
        }
    }
    for (long i = 0; i < seconds * 500; i++, hots++) {
        hot(-1);
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    printf("hot %ld seldom %ld\n", hots, seldoms);
}
