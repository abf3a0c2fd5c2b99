/* Stackful coroutines by a hand-written stack switch, which no library call announces. Yields come from nested calls; switches also go coroutine to coroutine. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 6, STACK = 128 * 1024 };

struct task { void *sp; char *stack; int id, done; unsigned value; };

static struct task tasks[TASKS], root;
static struct task *running = &root;

void switch_stack(void **save, void *load);
__asm__(".text\n.globl switch_stack\n.type switch_stack,@function\nswitch_stack:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp,(%rdi)\n  movq %rsi,%rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
        ".size switch_stack,.-switch_stack\n");

__attribute__((noinline)) static void go(struct task *to) {
    struct task *from = running;
    running = to;
    switch_stack(&from->sp, to->sp);
}

__attribute__((noinline)) static struct task *next_task(void) {
    for (int i = 1; i <= TASKS; i++) {
        struct task *candidate = &tasks[(running->id + i) % TASKS];
        if (!candidate->done && candidate != running) return candidate;
    }
    return &root;
}

__attribute__((noinline)) static unsigned stir(unsigned a, unsigned b) { return (a ^ b) * 2654435761u; }

__attribute__((noinline)) static unsigned work(int depth, unsigned seed) {
    if (depth == 0) { go(next_task()); return stir(seed, 3); }
    unsigned a = work(depth - 1, stir(seed, depth));
    unsigned b = work(depth - 1, stir(a, 11));
    return stir(a, b);
}

static void task_main(void) {
    for (int round = 0; round < 4; round++) running->value = stir(running->value, work(6, running->id + round * 100));
    running->done = 1;
    go(next_task());
    abort();
}

static void start(struct task *task, int id) {
    task->id = id;
    task->stack = malloc(STACK);
    uintptr_t top = ((uintptr_t)task->stack + STACK) & ~(uintptr_t)15;
    void **sp = (void **)top;
    *--sp = NULL;              /* keeps rsp 8 off a multiple of 16 at entry, as after a call */
    *--sp = (void *)task_main;
    for (int i = 0; i < 6; i++) *--sp = NULL;
    task->sp = sp;
}

int main(void) {
    for (int i = 0; i < TASKS; i++) start(&tasks[i], i);
    go(&tasks[0]);
    unsigned sum = 0;
    for (int i = 0; i < TASKS; i++) {
        while (!tasks[i].done) go(&tasks[i]);
        sum = stir(sum, tasks[i].value);
        printf("task %d %u\n", i, tasks[i].value);
    }
    for (int i = 0; i < TASKS; i++) free(tasks[i].stack);
    printf("sum %u\n", sum);
    return 0;
}
