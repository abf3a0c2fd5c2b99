/* What sanitizers find: `sanitized HOW`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline))

struct order { int id; int cents[4]; };
static volatile int four = 4;
static void *volatile lost;

KEEP static int sum(struct order *order, int count)
{
    int total = 0;
    for (int i = 0; i < count; i++)
        total += order->cents[i];
    return total;
}

KEEP static int use(const char *how)
{
    struct order *order = calloc(1, sizeof *order);
    int room[4] = {0};
    if (!strcmp(how, "heap"))
        return sum(order, four + 1);
    if (!strcmp(how, "freed")) {
        free(order);
        return sum(order, 2);
    }
    if (!strcmp(how, "stack")) {
        room[four] = 1;
        return room[1];
    }
    if (!strcmp(how, "null"))
        return sum(NULL, four);
    if (!strcmp(how, "leak"))
        lost = calloc(3, 100);
    if (!strcmp(how, "undefined")) {
        int large = 2147483647 - 4 + four;
        printf("%d\n", large + four);
    }
    lost = NULL;
    free(order);
    return 0;
}

int main(int count, char **arguments)
{
    printf("does %s\n", arguments[count - 1]);
    fflush(stdout);
    return use(arguments[count - 1]) & 0;
}
