/* What being stopped must not change. First argument: the mode. Every mode prints `ready` (and more) once set up, and its findings after a line on stdin. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int ending;
static volatile long counter, interrupted, handled, in_order = 1;

static void ready(const char *more) { printf("ready %s\n", more); fflush(stdout); }
static void wait_for_line(void) { char line[64]; if (!fgets(line, sizeof line, stdin)) exit(1); ending = 1; }
static double seconds(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec; }

static void *spin(void *unused) { while (!ending) counter++; return unused; }
static void *nap(void *unused) { struct timespec t = {0, 1000000}; while (!ending) nanosleep(&t, NULL); return unused; }

static void many(int count) { /* threads: two that spin, the others wake each millisecond */
    pthread_t threads[1024];
    for (int i = 0; i < count - 1; i++) pthread_create(&threads[i], NULL, i < 2 ? spin : nap, NULL);
    ready("");
    wait_for_line();
    for (int i = 0; i < count - 1; i++) pthread_join(threads[i], NULL);
    puts("ended");
}

static void *poll_events(void *unused) {
    int queue = epoll_create1(0);
    struct epoll_event event;
    while (!ending) if (epoll_wait(queue, &event, 1, 200) < 0 && errno == EINTR) __atomic_fetch_add(&interrupted, 1, __ATOMIC_SEQ_CST);
    return unused;
}
static void *receive(void *unused) {
    int pair[2];
    char byte;
    struct timeval limit = {0, 200000};
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    while (!ending) if (recv(pair[0], &byte, 1, 0) < 0 && errno == EINTR) __atomic_fetch_add(&interrupted, 1, __ATOMIC_SEQ_CST);
    return unused;
}
static void *doze(void *unused) {
    while (!ending) {
        struct timespec t = {0, 150000000};
        double start = seconds();
        if (nanosleep(&t, NULL)) __atomic_fetch_add(&interrupted, 1, __ATOMIC_SEQ_CST);
        if (seconds() - start < 0.15) abort();
    }
    return unused;
}
static void on_signal(int signo) { (void)signo; handled++; }

static void waits(void) { /* blocking calls; a real signal (SIGUSR1, to the process's main thread only) still interrupts */
    pthread_t threads[3];
    sigset_t one;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    pthread_create(&threads[0], NULL, poll_events, NULL);
    pthread_create(&threads[1], NULL, receive, NULL);
    pthread_create(&threads[2], NULL, doze, NULL);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    ready("");
    int queue = epoll_create1(0), by_signal = 0;
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(queue, EPOLL_CTL_ADD, 0, &event);
    for (;;) {
        int got = epoll_wait(queue, &event, 1, -1);
        if (got < 0 && errno == EINTR) by_signal++;
        if (got > 0) break;
    }
    wait_for_line();
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("interrupted %ld handled %ld by_signal %d\n", interrupted, handled, by_signal);
}

static void on_queued(int signo, siginfo_t *info, void *context) {
    (void)signo, (void)context;
    if (info->si_value.sival_int != handled) in_order = 0;
    handled++;
}
static void queued(void) { /* real-time signals, numbered from 0, all of them, in order */
    struct sigaction action = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN + 1, &action, NULL);
    signal(SIGSEGV, SIG_IGN);
    signal(SIGTRAP, SIG_IGN);
    ready("");
    wait_for_line();
    struct sigaction segv, trap;
    sigaction(SIGSEGV, NULL, &segv);
    sigaction(SIGTRAP, NULL, &trap);
    printf("handled %ld in_order %ld ignored %d\n", handled, in_order, segv.sa_handler == SIG_IGN && trap.sa_handler == SIG_IGN);
}

static void *leave_soon(void *unused) { counter++; return unused; }
static void churn(void) { /* threads that come and go, several at once */
    ready("");
    pthread_t reader;
    pthread_create(&reader, NULL, (void *(*)(void *))(void *)wait_for_line, NULL);
    while (!ending) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, leave_soon, NULL);
        for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    }
    pthread_join(reader, NULL);
    puts("ended");
}

/* The main thread, from which calls of `dawdle` are made, in all kinds of places: nothing that it does may turn out otherwise. */
__attribute__((noinline)) long dawdle(long a) { for (volatile long i = 0; i < 3000000; i++) a++; return a; }
static void *feed(void *end) { while (!ending) { usleep(500); if (write(*(int *)end, "x", 1) != 1 && errno != EAGAIN) abort(); } return NULL; }
static void *end_on_line(void *unused) { wait_for_line(); return unused; }
static void borrowed(void) {
    int ends[2];
    char word[32], byte;
    pthread_t feeder, reader;
    long rounds = 0, wrong = 0;
    if (pipe(ends) || fcntl(ends[1], F_SETFL, O_NONBLOCK)) exit(1);
    snprintf(word, sizeof word, "%p", (void *)&dawdle);
    ready(word);
    pthread_create(&feeder, NULL, feed, &ends[1]);
    pthread_create(&reader, NULL, end_on_line, NULL);
    for (; !ending; rounds++) {
        double sum = 0, product = 1;
        unsigned long mixed = 1;
        for (long i = 1; i <= 100000; i++) { sum += (double)i * 0.5; product *= 1.0000001; mixed = mixed * 6364136223846793005ul + (unsigned long)i; }
        wrong += sum != 2500025000.0 || product < 1.01 || product > 1.0101 || mixed != 7384198173419530769ul;
        wrong += read(ends[0], &byte, 1) != 1;
        struct timespec t = {0, 1000000};
        wrong += nanosleep(&t, NULL) != 0;
        struct pollfd none = {.fd = -1};
        wrong += poll(&none, 1, 1) != 0;
        sigset_t mask, empty;
        sigemptyset(&empty);
        pthread_sigmask(SIG_BLOCK, NULL, &mask);
        wrong += memcmp(&mask, &empty, 8) != 0;
    }
    pthread_join(feeder, NULL);
    pthread_join(reader, NULL);
    printf("rounds %d wrong %ld\n", rounds > 0, wrong);
}

static void *outlive(void *unused) { ready(""); wait_for_line(); puts("ended"); exit(0); return unused; }
static void leaderless(void) { pthread_t thread; pthread_create(&thread, NULL, outlive, NULL); pthread_exit(NULL); }

static void vforked(void) { /* the calling thread cannot be stopped while its child runs */
    ready("");
    for (int i = 0; i < 20; i++) {
        pid_t child = vfork();
        if (!child) { struct timespec t = {0, 30000000}; nanosleep(&t, NULL); execl("/bin/true", "true", (char *)NULL); _exit(127); }
        int status;
        waitpid(child, &status, 0);
        if (status) abort();
    }
    puts("ended");
}

/* A window that threads are in most of the time; patched to `elsewhere`, which does the same. */
long windowed(void), elsewhere(void);
__asm__(".text\n.globl windowed, elsewhere, elsewhere_1, elsewhere_end\n.type windowed, @function\n"
        "windowed: nop\n nop\n nop\n nop\n nop\n movl $1, %eax\n ret\n .size windowed, . - windowed\n"
        "elsewhere: nop\n nop\n nop\n nop\n nop\n lock incq elsewhere_count(%rip)\n jmp windowed + 5\n");
long elsewhere_count;
static volatile long done;
static void *call_windowed(void *unused) {
    long sum = 0;
    while (!ending) sum += windowed();
    __atomic_fetch_add(&done, sum, __ATOMIC_SEQ_CST);
    return unused;
}
long answer(void) { return -42; }
long fault(void) { *(volatile int *)8 = 1; return 0; }
static void windows(void) {
    pthread_t threads[3];
    char text[200];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, call_windowed, NULL);
    void *code = mmap(NULL, 4 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    snprintf(text, sizeof text, "%p %p %p %p %p", (void *)windowed, (void *)elsewhere, (void *)answer, (void *)fault, code);
    ready(text);
    wait_for_line();
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("called %d elsewhere %d\n", done > 0, elsewhere_count > 0);
}

/* A handler that runs long, having interrupted a window. */
long trapping(void);
__asm__(".text\n.type trapping, @function\ntrapping: int3\n nop\n nop\n nop\n nop\n movl $1, %eax\n ret\n .size trapping, . - trapping\n");
static void on_trap(int signo) { (void)signo; ready(""); struct timespec t = {0, 300000000}; while (nanosleep(&t, &t)) {} handled++; }
static void in_handler(void) {
    char text[64];
    signal(SIGTRAP, on_trap);
    snprintf(text, sizeof text, "%p %p", (void *)trapping, (void *)elsewhere);
    ready(text);
    trapping();
    wait_for_line();
    printf("handled %ld\n", handled);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "many")) many(atoi(argv[2]));
    else if (!strcmp(mode, "waits")) waits();
    else if (!strcmp(mode, "queued")) queued();
    else if (!strcmp(mode, "churn")) churn();
    else if (!strcmp(mode, "leaderless")) leaderless();
    else if (!strcmp(mode, "vforked")) vforked();
    else if (!strcmp(mode, "windows")) windows();
    else if (!strcmp(mode, "handler")) in_handler();
    else if (!strcmp(mode, "borrowed")) borrowed();
    return 0;
}
