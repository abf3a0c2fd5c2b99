/* One program that does the same or not, by its first argument; the second is how often it works. What differs from run to run without meaning
   anything (addresses, ids of processes and threads, which thread is first) is passed around all the time. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct item { int id; double price; const char *label; struct item *next; };

static const char *how = "same";
static int turns = 40;
static volatile int logged; /* functions of a few bytes cannot be hooked */

static int is(const char *name) { return strstr(how, name) != NULL; } /* several may be asked for */

__attribute__((noipa)) int price_of(const struct item *item) { return (int)item->price; }

__attribute__((noipa)) int discount(int total) { return total > 100 ? total / 10 : 0; }

__attribute__((noipa)) void log_sum(int turn, int sum) { logged = logged * 31 + turn * sum; }

__attribute__((noipa)) uintptr_t keep(void *at, pid_t pid, pthread_t who) { logged += pid * (int)who; return (uintptr_t)at; }

__attribute__((noipa)) int rate(const char *currency, double factor) { return is("returns") && strcmp(currency, "EUR") == 0 ? 7 : (int)(factor * 2); }

__attribute__((noipa)) void tick(long time) { logged += (int)time; }

__attribute__((noipa)) int turn(int number, struct item *first) {
    int sum = 0;
    for (struct item *item = first; item; item = item->next) sum += price_of(item);
    if (number == turns - 3 && is("children")) sum -= discount(sum);
    log_sum(number, number == turns - 2 && is("arguments") ? sum + 1 : sum);
    return sum;
}

static struct item *make(int id, struct item *next) {
    struct item *item = malloc(sizeof *item + (size_t)(getpid() & 15) * 16);
    *item = (struct item){id, id * 1.5, id & 1 ? "odd" : "even", next};
    return item;
}

static void *worker(void *arg) {
    struct item *items = make(1, make(2, make(3, NULL)));
    (void)arg;
    for (int i = 0; i < turns; i++) {
        if (i == turns - 1 && is("inside")) items->next->next->label = "strange";
        turn(i, items);
        keep(items, getpid(), pthread_self());
    }
    rate("USD", 1.5);
    printf("rate %d\n", rate("EUR", 1.5));
    if (is("crash")) *(volatile int *)(uintptr_t)(unsigned)is("never") = 1;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) how = argv[1];
    if (argc > 2) turns = atoi(argv[2]);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (is("noise")) tick(now.tv_nsec);
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    keep(&thread, getpid(), thread);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
