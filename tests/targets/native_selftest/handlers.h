/* Scenarios of calls.c: signal handlers that call, and that leave by jumps; jumps alone. */
#pragma once
#include "traced.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static volatile long handled;
TRACED long in_handler(long a) { handled++; return leaf(a, 5); }
static void on_alarm(int signo) { in_handler(signo); }

static void alarms_on(const char *stack)
{
    static char other[65536];
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    stack_t alternate = {.ss_sp = other, .ss_size = sizeof other};
    if (stack) {
        sigaltstack(&alternate, NULL);
        action.sa_flags |= SA_ONSTACK;
    }
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &often, NULL);
}

static void handlers_until_done(const char *stack)
{
    trace(leaf, 1, TWO_INTS);
    trace(middle, 2, ONE_INT);
    trace(in_handler, 4, ONE_INT);
    alarms_on(stack);
    long calls = 0, wrong = 0;
    while (handled < argument) {
        for (int i = 0; i < 100; i++, calls++)
            wrong += middle(calls) != calls * 6 + 3;
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    printf("calls %ld wrong %ld handled %ld\n", calls, wrong, handled);
}
static void handlers(void) { handlers_until_done(NULL); }
static void handlers_elsewhere(void) { handlers_until_done("own"); }

static sigjmp_buf back;
static void on_alarm_leave(int signo)
{
    in_handler(signo);
    if (handled % 2)
        siglongjmp(back, 1);
}

/* Handlers that leave by siglongjmp wherever they struck, inside the recorder too. */
static void handlers_leave_from(void *stack)
{
    stack_t alternate = {.ss_sp = stack, .ss_size = 65536};
    if (stack)
        sigaltstack(&alternate, NULL);
    trace_internals();
    trace(leaf, 1, TWO_INTS);
    trace(middle, 2, ONE_INT);
    trace(in_handler, 4, ONE_INT);
    volatile long calls = 0, wrong = 0;
    struct sigaction action = {.sa_handler = on_alarm_leave, .sa_flags = stack ? SA_ONSTACK : 0};
    sigaction(SIGALRM, &action, NULL);
    static const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    sigsetjmp(back, 1);
    setitimer(ITIMER_REAL, &often, NULL);
    while (handled < argument) {
        calls++;
        wrong += middle(5) != 33;
    }
    signal(SIGALRM, SIG_IGN); /* one more may be on its way, and the frame to jump to is about to end */
    setitimer(ITIMER_REAL, &never, NULL);
    printf("calls %ld wrong %ld handled %ld last %ld\n", calls, wrong, handled, outer_call(1));
}

static void handlers_that_leave(void) { handlers_leave_from(NULL); }
static void handlers_that_leave_their_stack(void) { handlers_leave_from(malloc(65536)); }

static jmp_buf jump;
TRACED long jumper(long n)
{
    if (!n)
        longjmp(jump, 7);
    long result = jumper(n - 1);
    __asm__ volatile("" : : : "memory");
    return result + 1;
}
TRACED long jump_base(long n) { return setjmp(jump) ? leaf(n, 0) : jumper(n); }

static void jumps(void)
{
    if (getenv("SELFTEST_INTERNALS"))
        trace_internals();
    trace(leaf, 1, TWO_INTS);
    trace(jumper, 2, ONE_INT);
    trace(jump_base, 3, ONE_INT);
    long sum = 0;
    for (long i = 0; i < argument; i++)
        sum += jump_base(i % 7);
    printf("sum %ld\n", sum);
}
