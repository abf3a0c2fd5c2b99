/* Ways to die: `deaths HOW`. Each happens some calls deep, in a function with arguments and locals. */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP __attribute__((noinline))

struct order {
    int id;
    const char *customer;
    double total;
    struct order *next;
};

static const char *way;
static volatile int zero;
static int *volatile nowhere;

/* By name, so that the compiler leaves what it would warn of. */
static void *(*volatile take)(size_t) = malloc;
static void (*volatile give)(void *) = free;

KEEP static int overflow(int depth)
{
    volatile char room[512];
    memset((char *)room, depth, sizeof room);
    return depth < 0 ? 0 : overflow(depth + 1) + room[1];
}

KEEP static void past_the_file(void)
{
    char name[] = "/tmp/deaths-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    zero = page[100];
}

KEEP static void smash(int length)
{
    char room[16];
    memset(room, 'A', (size_t)length);
    write(1, room, 0);
}

KEEP static void corrupt(void)
{
    char *low = take(24), *high = take(24);
    memset(low + 24, 0x7f, 16);
    give(high);
    give(low);
}

KEEP static void twice(void)
{
    char *block = take(2000);
    give(block);
    give(block);
}

/* One call of its own for every way that needs no more. */
KEEP static int die(const char *how, struct order *order, int amount)
{
    int left = amount - 3, signo = 0;
    double share = order->total / amount;
    unsigned char digits[4] = {1, 2, 3, (unsigned char)left};
    if (!strcmp(how, "segv"))
        *nowhere = left;
    else if (!strcmp(how, "denied"))
        *(volatile char *)(uintptr_t)"written in the file" = 1;
    else if (!strcmp(how, "wild"))
        *(volatile int *)0xdead00000000beefull = left;
    else if (!strcmp(how, "call"))
        ((void (*volatile)(void))NULL)();
    else if (!strcmp(how, "bus"))
        past_the_file();
    else if (!strcmp(how, "fpe"))
        left /= zero;
    else if (!strcmp(how, "ill"))
        __asm__ volatile("ud2");
    else if (!strcmp(how, "trap"))
        __asm__ volatile("int3");
    else if (!strcmp(how, "abort"))
        abort();
    else if (!strcmp(how, "assert"))
        assert(left == 1);
    else if (!strcmp(how, "sys"))
        signo = SIGSYS;
    else if (!strcmp(how, "kill"))
        signo = SIGKILL;
    else if (!strcmp(how, "term"))
        signo = SIGTERM;
    else if (!strcmp(how, "overflow"))
        left = overflow(0);
    else if (!strcmp(how, "smash"))
        smash(64 + zero);
    else if (!strcmp(how, "corrupt"))
        corrupt();
    else if (!strcmp(how, "twice"))
        twice();
    if (signo)
        raise(signo);
    return left + digits[3] + (int)share;
}

KEEP static int work(const char *how, int amount)
{
    struct order last = {2, "bob", 7.5, NULL}, first = {1, "ann", 40.25, &last};
    int result = die(how, &first, amount);
    return result + first.id;
}

static void again(int signo)
{
    write(2, "again\n", 6);
    work(signo == SIGSEGV ? "fpe" : "segv", 42);
}

static void *thread(void *how)
{
    pthread_setname_np(pthread_self(), "worker");
    work(how, 42);
    return NULL;
}

static int in_child(const char *how)
{
    pid_t child = fork();
    if (!child)
        _exit(work(how, 42) & 1);
    int status;
    waitpid(child, &status, 0);
    printf("child ended by signal %d\n", WTERMSIG(status));
    return 3;
}

int main(int count, char **arguments)
{
    way = count > 1 ? arguments[1] : "";
    const char *colon = strchr(way, ':'), *how = colon ? colon + 1 : way;
    printf("dies of %s\n", way);
    fflush(stdout);
    if (!strncmp(way, "thread:", 7)) {
        pthread_t id;
        pthread_create(&id, NULL, thread, (void *)how);
        pthread_join(id, NULL);
    } else if (!strncmp(way, "child:", 6)) {
        return in_child(how);
    } else if (!strncmp(way, "handler:", 8)) {
        signal(SIGUSR1, again); /* a crash in a handler for something else */
        raise(SIGUSR1);
    } else if (!strncmp(way, "double:", 7)) {
        signal(SIGSEGV, again); /* a crash in the handler of a crash */
        return work("segv", 42);
    } else if (!strncmp(way, "same:", 5)) {
        struct sigaction action = {.sa_handler = again};
        sigaction(SIGSEGV, &action, NULL);
        sigaction(SIGFPE, &action, NULL); /* handles itself: SIGFPE while it is blocked kills */
        return work("segv", 42);
    }
    return work(how, 42) & 1;
}
