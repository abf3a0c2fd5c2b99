/* Preloaded into a program (LD_PRELOAD): no address in its heap ends as it would without, and what it never wrote on its stack is not zero. */
#include <stdlib.h>
#include <string.h>

void *volatile kept;

__attribute__((noinline)) static void noise(void)
{
    unsigned char below[100000];
    memset(below, 0xa7, sizeof below);
    __asm__ volatile("" : : "r"(below) : "memory");
}

__attribute__((constructor)) static void shift(void)
{
    kept = malloc(1000);
    noise();
}
