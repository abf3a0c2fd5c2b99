/* Signals raised and handled: handlers that call, on the alternate stack, interrupting traced calls by a timer, faults that are repaired, system calls restarted. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t usr1, usr2, faults, ticks, nested;
static char *page;

__attribute__((noinline)) static int bump(volatile sig_atomic_t *counter) { *counter = *counter + 1; return *counter; }

__attribute__((noinline)) static void on_usr1(int number) {
    (void)number;
    bump(&usr1);
    if (usr1 % 3 == 0) raise(SIGUSR2);
}

static void on_usr2(int number) { (void)number; bump(&usr2); bump(&nested); }

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number; (void)context;
    if ((char *)info->si_addr < page || (char *)info->si_addr >= page + 4096) _exit(3);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    bump(&faults);
}

static void on_tick(int number) { (void)number; bump(&ticks); }

__attribute__((noinline)) static void touch(int i) {
    mprotect(page, 4096, PROT_NONE);
    page[i % 4096] = (char)i;
}

__attribute__((noinline)) static uint64_t spin(uint64_t x) { return x * 6364136223846793005u + 1442695040888963407u; }

static void *in_thread(void *unused) {
    (void)unused;
    stack_t alternate = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&alternate, NULL);
    for (int i = 0; i < 100; i++) { raise(SIGUSR1); touch(i); }
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, NULL);
    free(alternate.ss_sp);
    return NULL;
}

static void handle(int number, void *handler, int flags) {
    struct sigaction action = {.sa_flags = flags};
    if (flags & SA_SIGINFO) action.sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
    else action.sa_handler = (void (*)(int))handler;
    sigaction(number, &action, NULL);
}

int main(void) {
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(SIGUSR1, (void *)on_usr1, SA_ONSTACK | SA_RESTART);
    handle(SIGUSR2, (void *)on_usr2, SA_ONSTACK | SA_NODEFER);
    handle(SIGSEGV, (void *)on_fault, SA_ONSTACK | SA_SIGINFO);
    handle(SIGALRM, (void *)on_tick, SA_RESTART);
    for (int i = 0; i < 300; i++) { raise(SIGUSR1); touch(i); }
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    struct itimerval each_ms = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &each_ms, NULL);
    uint64_t x = 1;
    uint64_t rounds = 0;
    for (; ticks < 50; rounds++) x = spin(x);
    setitimer(ITIMER_REAL, &off, NULL);
    uint64_t y = 1;
    for (uint64_t i = 0; i < rounds; i++) y = y * 6364136223846793005u + 1442695040888963407u;
    sigset_t set, old;
    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, &old);
    raise(SIGUSR1);
    sigpending(&set);
    int pending = sigismember(&set, SIGUSR1);
    sigprocmask(SIG_SETMASK, &old, NULL);
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    if (pipe(ends)) return 1;
    close(ends[0]);
    int broken = write(ends[1], "x", 1) < 0 && errno == EPIPE;
    printf("usr1 %d usr2 %d nested %d faults %d same %d pending %d broken %d\n", usr1, usr2, nested, faults, x == y, pending, broken);
    return 0;
}
