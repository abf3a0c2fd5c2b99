/* `ticks COUNT [MS] [STATUS]`: calls `tick` COUNT times, MS apart (20 by default), printing a line for each on stdout and one of `total` on stderr;
 * ends with STATUS (0 by default). STATUS "crash": writes to address 0x10 instead. A line "in: TEXT" for each line of stdin comes first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum mood { CALM, BUSY };

__attribute__((noinline)) static long weight(int number, enum mood mood) { return mood == BUSY ? 10L * number : number; }

__attribute__((noinline)) static const char *label(int number) { return number % 2 ? "odd" : "even"; }

__attribute__((noinline)) static long tick(int number, const char *name, double scale) {
    long value = weight(number, number > 3 ? BUSY : CALM);
    printf("tick %d %s %ld\n", number, name ? name : "none", (long)((double)value * scale));
    fflush(stdout);
    return value;
}

__attribute__((noinline)) static void strike(int *where) { *where = 1; }

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 10;
    long ms = argc > 2 ? atol(argv[2]) : 20, total = 0;
    struct timespec between = {ms / 1000, ms % 1000 * 1000000};
    char line[200];
    while (fgets(line, sizeof line, stdin)) printf("in: %s", line);
    for (int number = 1; number <= count; number++) {
        total += tick(number, number == 2 ? NULL : label(number), 0.5);
        nanosleep(&between, NULL);
    }
    fprintf(stderr, "total %ld\n", total);
    if (argc > 3 && strcmp(argv[3], "crash") == 0) strike((int *)0x10);
    return argc > 3 ? atoi(argv[3]) : 0;
}
