/* Echoes stdin line by line, upper-cased, until its end; then says how much it was. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long lines, bytes;

__attribute__((noinline)) static void shout(char *text, long length) {
    for (long i = 0; i < length; i++) text[i] = (char)toupper((unsigned char)text[i]);
}

__attribute__((noinline)) static int echo_line(char **buffer, size_t *room) {
    long length = getline(buffer, room, stdin);
    if (length < 0) return 0;
    lines++;
    bytes += (unsigned long)length;
    shout(*buffer, length);
    fwrite(*buffer, 1, (size_t)length, stdout);
    fflush(stdout);
    return 1;
}

int main(void) {
    char *buffer = NULL;
    size_t room = 0;
    while (echo_line(&buffer, &room)) {}
    fprintf(stderr, "%lu lines, %lu bytes\n", lines, bytes);
    free(buffer);
    return 0;
}
