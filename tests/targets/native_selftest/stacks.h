/* Scenarios of calls.c: coroutines, and threads of the program's own making. */
#pragma once
#include "handlers.h"
#include <pthread.h>
#include <ucontext.h>

static ucontext_t home, contexts[8];
static int turn;
TRACED void give_way(long who) { swapcontext(&contexts[who], &home); }
TRACED long step_of(long who, long i) { give_way(who); return leaf(who, i); }
static void routine(int who)
{
    for (long i = 0; i < argument; i++)
        step_of(who, i);
}
TRACED void resume_one(long who) { turn = (int)who; swapcontext(&home, &contexts[who]); }

static void coroutines_on(char *stacks, size_t bytes)
{
    trace(leaf, 1, TWO_INTS);
    trace(give_way, 2, ONE_INT);
    trace(step_of, 3, TWO_INTS);
    trace(resume_one, 4, ONE_INT);
    for (int i = 0; i < 8; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks + i * bytes;
        contexts[i].uc_stack.ss_size = bytes;
        contexts[i].uc_link = &home;
        makecontext(&contexts[i], (void (*)(void))routine, 1, i);
    }
    for (long i = 0; i <= argument; i++)
        for (int who = 0; who < 8; who++)
            resume_one((who * 3 + i) % 8);
    puts("done");
}

static void coroutines(void)
{
    trace_internals();
    coroutines_on(malloc(8 * 32768), 32768);
}
static void coroutines_in_frame(void)
{
    char stacks[8 * 16384];
    coroutines_on(stacks, 16384);
}

/* Coroutines resumed by another thread than the one they were entered on. */
static void *resume_there(void *unused)
{
    (void)unused;
    for (int who = 0; who < 8; who++)
        resume_one(who);
    return NULL;
}
static void coroutines_that_move(void)
{
    trace(leaf, 1, TWO_INTS);
    trace(give_way, 2, ONE_INT);
    trace(step_of, 3, TWO_INTS);
    for (int i = 0; i < 8; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = malloc(65536);
        contexts[i].uc_stack.ss_size = 65536;
        contexts[i].uc_link = &home;
        makecontext(&contexts[i], (void (*)(void))routine, 1, i);
    }
    for (long i = 0; i <= argument; i++) {
        pthread_t worker;
        pthread_create(&worker, NULL, resume_there, NULL);
        pthread_join(worker, NULL);
    }
    puts("done");
}

/* Threads of the program's own making: the timer's handler switches to the next stack, wherever the one before was, in the recorder too. */
static volatile long switches, wrong_results;
static void on_alarm_switch(int signo)
{
    int from = turn;
    (void)signo;
    switches++;
    turn = (turn + 1) % 4;
    swapcontext(&contexts[from], &contexts[turn]);
}

static void preempted(int who)
{
    sigset_t alarm_alone;
    sigemptyset(&alarm_alone);
    sigaddset(&alarm_alone, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarm_alone, NULL); /* was blocked up to here: the switch itself may not be interrupted */
    for (long i = 0; switches < argument || turn != 0; i++)
        wrong_results += middle(who + i) != (who + i) * 6 + 3;
    for (;;) /* only the first leaves; the others wait to be switched from */
        if (!who)
            return;
}

static void preemptive(void)
{
    trace_internals();
    trace(leaf, 1, TWO_INTS);
    trace(middle, 2, ONE_INT);
    for (int i = 1; i < 4; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = malloc(262144);
        contexts[i].uc_stack.ss_size = 262144;
        sigaddset(&contexts[i].uc_sigmask, SIGALRM);
        makecontext(&contexts[i], (void (*)(void))preempted, 1, i);
    }
    struct sigaction action = {.sa_handler = on_alarm_switch};
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    preempted(0);
    signal(SIGALRM, SIG_IGN);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("switches %ld wrong %ld\n", switches, wrong_results);
}
