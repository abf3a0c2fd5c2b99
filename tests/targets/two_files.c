/* A process to attach to: writes to a file and to stdout from the same frame, in turns, and now and then a write fails. `two_files`: `line N` to stdout, `file N` to
 * /dev/zero, nothing to a bad descriptor and to a pipe that is full, until SIGUSR1; then `done`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ended;

static void on_usr1(int signo) { (void)signo; ended = 1; }

int main(void)
{
    char line[32], other[32], lost[32], filler[4096] = {0};
    int full[2], file = open("/dev/zero", O_WRONLY);
    struct timespec pause = {0, 5000000};
    signal(SIGUSR1, on_usr1);
    if (file < 0 || pipe2(full, O_NONBLOCK))
        return 1;
    while (write(full[1], filler, sizeof filler) > 0)
        ;
    for (int number = 1; !ended; number++) {
        snprintf(line, sizeof line, "line %d\n", number);
        snprintf(other, sizeof other, "file %d\n", number);
        snprintf(lost, sizeof lost, "lost %d\n", number);
        for (int turn = 0; turn < 3; turn++) { /* one call: one place on the stack for what it returns to */
            int to = turn == 0 ? file : turn == 1 ? full[1] : 1;
            const char *text = turn == 0 ? other : turn == 1 ? lost : line;
            if (write(to, text, strlen(text)) < 0 && turn != 1)
                return 2;
        }
        nanosleep(&pause, NULL);
    }
    return write(1, "done\n", 5) != 5;
}
