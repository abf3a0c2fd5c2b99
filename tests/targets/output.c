/* Large output: `output BYTES` of numbered lines to stdout, each 1000th to stderr, by stdio, write, writev and pieces of every size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static char piece[70000];

__attribute__((noinline)) static size_t line(char *to, unsigned long number) { return (size_t)sprintf(to, "line %010lu abcdefghijklmnopqrstuvwxyz\n", number); }

__attribute__((noinline)) static void all_of(int fd, const char *data, size_t bytes) {
    while (bytes) {
        ssize_t done = write(fd, data, bytes);
        if (done < 0) exit(9);
        data += done;
        bytes -= (size_t)done;
    }
}

__attribute__((noinline)) static size_t by_parts(const char *data, size_t bytes) {
    struct iovec parts[3] = {{(void *)data, bytes / 3}, {(void *)(data + bytes / 3), bytes / 3}, {(void *)(data + 2 * (bytes / 3)), bytes - 2 * (bytes / 3)}};
    ssize_t done = writev(1, parts, 3);
    if (done < 0) exit(9);
    if ((size_t)done < bytes) all_of(1, data + done, bytes - (size_t)done);
    return bytes;
}

int main(int argc, char **argv) {
    size_t wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 50000000, sent = 0;
    unsigned long number = 0;
    for (unsigned round = 0; sent < wanted; round++) {
        size_t room = 1 + (round * 7919u) % 60000, used = 0;
        do used += line(piece + used, number++); while (used < room);
        if (round % 3 == 0) { fwrite(piece, 1, used, stdout); fflush(stdout); }
        else if (round % 3 == 1) all_of(1, piece, used);
        else by_parts(piece, used);
        sent += used;
        if (round % 100 == 0) fprintf(stderr, "round %u\n", round);
    }
    printf("no newline at the end %zu", sent);
    return 0;
}
