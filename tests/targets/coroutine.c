/* Stackful coroutines by ucontext: producers that yield from nested calls, interleaved, some abandoned half-way and their stacks used again. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { COROUTINES = 8, STACK = 256 * 1024 };

struct coroutine { ucontext_t context; char *stack; int id, value, done; };

static ucontext_t scheduler;
static struct coroutine *current;

__attribute__((noinline)) static int mix(int a, int b) { return a * 31 + b; }

__attribute__((noinline)) static void yield_value(int value) {
    current->value = value;
    swapcontext(&current->context, &scheduler);
}

__attribute__((noinline)) static int walk(int depth, int seed) {
    if (depth == 0) { yield_value(seed); return mix(seed, 1); }
    int left = walk(depth - 1, mix(seed, depth));
    yield_value(mix(left, depth));
    int right = walk(depth - 1, mix(left, 7));
    return mix(left, right);
}

static void run_coroutine(void) {
    current->value = walk(5, current->id);
    current->done = 1;
}

__attribute__((noinline)) static void begin(struct coroutine *co, int id) {
    char *stack = co->stack ? co->stack : malloc(STACK);
    *co = (struct coroutine){.stack = stack, .id = id};
    getcontext(&co->context);
    co->context.uc_stack.ss_sp = stack;
    co->context.uc_stack.ss_size = STACK;
    co->context.uc_link = &scheduler;
    makecontext(&co->context, run_coroutine, 0);
}

__attribute__((noinline)) static int resume(struct coroutine *co) {
    current = co;
    swapcontext(&scheduler, &co->context);
    return co->value;
}

int main(void) {
    struct coroutine all[COROUTINES] = {0};
    unsigned sum = 0;
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < COROUTINES; i++) begin(&all[i], round * COROUTINES + i);
        int steps = round % 4 == 3 ? 17 : 1000; /* every fourth round leaves them suspended for good */
        for (int step = 0; step < steps; step++) {
            int live = 0;
            for (int i = 0; i < COROUTINES; i++)
                if (!all[i].done) { sum = sum * 17 + (unsigned)resume(&all[i]); live++; }
            if (!live) break;
        }
    }
    printf("sum %u\n", sum);
    for (int i = 0; i < COROUTINES; i++) free(all[i].stack);
    return 0;
}
