/* Vectors of 32 and 64 bytes by value: whether they travel in registers depends on what is compiled for. */
#include <stdio.h>

typedef double Wide __attribute__((vector_size(32)));
typedef double Widest __attribute__((vector_size(64)));

__attribute__((noinline)) double case_wide(double first, Wide vector, long after) { return first + vector[0] + vector[3] + after; }
__attribute__((noinline)) Wide case_give_wide(long number, Wide vector) { return vector * (double)number; }
__attribute__((noinline)) double case_widest(Widest vector, long after) { return vector[7] + after; }

int main(int count, char **arguments)
{
    (void)arguments;
    Wide wide = {count, 2, 3, 4};
    Widest widest = {count, 2, 3, 4, 5, 6, 7, 8};
    printf("%g %g %g\n", case_wide(1.5, wide, 7), case_give_wide(3, wide)[2], case_widest(widest, 9));
    return 0;
}
