#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int checked(int value) {
    if (value == 4) {
        fprintf(stderr, "%s:%d: error: 4 is not 3\n", __FILE__, __LINE__); /* here */
        return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "adds";
    if (strcmp(what, "fails") == 0)
        return checked(4);
    if (strcmp(what, "skips") == 0)
        return 77;
    if (strcmp(what, "prints") == 0)
        printf("    Start 1: adds\n1/6 Test #1: adds ...***Failed    0.00 sec\n99%% tests passed, 1 tests failed out of 100\nno end of line");
    if (strcmp(what, "dies") == 0)
        raise(SIGSEGV);
    if (strcmp(what, "hangs") == 0)
        for (;;)
            pause();
    return 0;
}
