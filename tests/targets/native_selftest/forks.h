/* Scenarios of calls.c: children made within traced calls. */
#pragma once
#include "traced.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

TRACED long forking(long n) { return n ? leaf(n, fork()) : fork(); }

/* The child returns from the very call in which it was made. */
static void forks(void)
{
    trace(leaf, 1, TWO_INTS);
    trace(middle, 2, ONE_INT);
    trace(forking, 3, ONE_INT);
    for (long i = 0; i < argument; i++) {
        long pid = forking(0);
        if (!pid) {
            for (long k = 0; k < 100; k++)
                middle(k);
            _exit(0);
        }
        middle(i);
        int status;
        if (waitpid((pid_t)pid, &status, 0) != pid || status)
            fail("a child ended with status %x", status);
    }
    puts("done");
}

static void *forks_there(void *unused)
{
    forks();
    return unused;
}

/* By a thread that is not the main one: the child's main thread runs on its stack. */
static void forks_in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, forks_there, NULL);
    pthread_join(thread, NULL);
}

static void vforks(void)
{
    trace(leaf, 1, TWO_INTS);
    trace(middle, 2, ONE_INT);
    for (long i = 0; i < argument; i++) {
        int status;
        pid_t pid = vfork();
        if (!pid) {
            middle(i);
            _exit(3);
        }
        middle(i);
        if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 3)
            fail("a child ended with status %x", status);
    }
    puts("done");
}
