/* Waits for a line, then takes memory, a page after the other, until it is ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20 };

int main(void)
{
    puts("hungry");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    for (;;) {
        char *piece = malloc(PIECE);
        if (piece == NULL)
            return 2;
        memset(piece, 1, PIECE);
    }
}
