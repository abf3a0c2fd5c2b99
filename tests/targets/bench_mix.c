/* Events of several kinds for query benches: `bench_mix ORDERS ORDERS_PER_S [THREADS]` handles orders: five traced calls each with integer and text arguments,
 * one line of output per thousand orders. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long orders_each, per_slice;
static volatile int last_result; /* every order is handled, although few results are printed */
static const char *const names[] = {"apple", "pear", "plum", "cherry", "quince"};

__attribute__((noinline)) int parse_order(int id, const char *name) { return id % 97 + name[0]; }
__attribute__((noinline)) long price_of(int id, int quantity) { return (long)(id % 1000) * quantity; }
__attribute__((noinline)) double discount(long price, double rate) { return price > 50000 ? (double)price * rate : 0; }
__attribute__((noinline)) int store_order(int id, long price) { return price % 1009 == 0 ? -1 : id; }
__attribute__((noinline)) int handle_order(int id) {
    int quantity = parse_order(id, names[id % 5]) % 50;
    long price = price_of(id, quantity);
    price -= (long)discount(price, 0.1);
    return store_order(id, price);
}

static void *load(void *argument) {
    long first = (long)argument * orders_each, made = 0;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (made < orders_each) {
        for (long i = 0; i < per_slice && made < orders_each; i++, made++) {
            int result = handle_order((int)(first + made));
            last_result = result;
            if (made % 1000 == 0) printf("order %ld: %d\n", first + made, result);
        }
        next.tv_nsec += 1000000;
        if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec++; }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int threads = argc > 3 ? atoi(argv[3]) : 1;
    if (threads < 1 || threads > 64) return 2;
    orders_each = atol(argv[1]) / threads;
    per_slice = atol(argv[2]) / threads / 1000 + 1;
    pthread_t workers[64];
    for (long i = 0; i < threads; i++) pthread_create(&workers[i], NULL, load, (void *)i);
    for (int i = 0; i < threads; i++) pthread_join(workers[i], NULL);
    return 0;
}
