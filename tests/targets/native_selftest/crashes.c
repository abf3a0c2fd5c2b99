/* Every way to die by a signal, with the crash recorder armed; with the argument 0 without it. */
#define _GNU_SOURCE
#include "patching.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int armed;
static int *volatile nowhere; /* volatile: the compiler may not know that it is NULL */

TRACED long victim(long a) { __asm__ volatile("" : : : "memory"); return a; }
TRACED long overflow(long n) { volatile char frame[256]; frame[0] = (char)n; return overflow(n + 1) + frame[0]; }
TRACED void null_write(long a) { *nowhere = (int)a; }
TRACED void null_in_thread(long a) { null_write(a); __asm__ volatile(""); }

static void segv(void) { null_write(1); }
static void noncanonical(void) { *(volatile int *)0xdead000000000000 = 1; }
static void null_call(void) { ((void (*)(void))(uintptr_t)nowhere)(); }
static void bus(void)
{
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    *(volatile char *)page = 1;
}
static void fpe(void) { volatile int zero = 0; exit(7 / zero); }
static void ill(void) { __asm__ volatile("ud2"); }
static void trap(void) { __asm__ volatile("int3"); }
static void aborting(void) { abort(); }
static void raise_segv(void) { raise(SIGSEGV); }
static void raise_trap(void) { raise(SIGTRAP); }
static void kill_fpe(void) { kill(getpid(), SIGFPE); usleep(1000000); }
static void sys(void) { raise(SIGSYS); }
static void term(void) { raise(SIGTERM); }
static void stack_overflow(void) { overflow(1); }

static void *run_null(void *unused) { (void)unused; victim(3); null_in_thread(1); return NULL; }
static void *run_overflow(void *unused) { (void)unused; victim(3); overflow(1); return NULL; }
static void in_thread(void *(*run)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
}
static void thread_segv(void) { in_thread(run_null); }
static void thread_overflow(void) { in_thread(run_overflow); }

static void child_segv(void)
{
    pid_t pid = fork();
    if (!pid)
        null_write(1);
    int status;
    waitpid(pid, &status, 0);
    raise(WTERMSIG(status));
}

static void handle(int signo) { (void)signo; _exit(55); }
static void own_handler(void) { signal(SIGSEGV, handle); null_write(1); }

/* A handler that gives up, as Rust's does: default action again, and return to the fault. */
static void give_up(int signo) { signal(signo, SIG_DFL); }
static void handler_gives_up(void) { signal(SIGSEGV, give_up); null_write(1); }

static void ignored(void) { signal(SIGABRT, SIG_IGN); raise(SIGABRT); _exit(66); }

/* What the program sees of its signal actions. */
static void queries(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction old, again = {.sa_handler = handle, .sa_flags = SA_RESTART};
        if (sigaction(signals[i], NULL, &old) || old.sa_handler != SIG_DFL || old.sa_flags)
            fail("signal %d has the action %p with flags %x", signals[i], (void *)old.sa_handler, (unsigned)old.sa_flags);
        if (sigaction(signals[i], &again, &old) || old.sa_handler != SIG_DFL)
            fail("signal %d had the action %p", signals[i], (void *)old.sa_handler);
        if (signal(signals[i], SIG_DFL) != handle)
            fail("the handler of signal %d is lost", signals[i]);
        if (signal(signals[i], SIG_IGN) != SIG_DFL || signal(signals[i], SIG_DFL) != SIG_IGN)
            fail("signal %d", signals[i]);
    }
    null_write(1);
}

static void posix_exec(void)
{
    pid_t pid = vfork();
    if (!pid) {
        execl("/bin/sh", "sh", "-c", "kill -SEGV $$", NULL);
        _exit(1);
    }
    int status;
    waitpid(pid, &status, 0);
    _exit(WIFSIGNALED(status) ? WTERMSIG(status) : 200);
}

int main(int count, char **arguments)
{
    static const struct { const char *name; void (*run)(void); } scenarios[] = {
        {"segv", segv}, {"noncanonical", noncanonical}, {"null_call", null_call}, {"bus", bus}, {"fpe", fpe}, {"ill", ill}, {"trap", trap}, {"abort", aborting},
        {"raise_segv", raise_segv}, {"raise_trap", raise_trap}, {"kill_fpe", kill_fpe}, {"sys", sys}, {"term", term}, {"stack_overflow", stack_overflow},
        {"thread_segv", thread_segv}, {"thread_overflow", thread_overflow}, {"child_segv", child_segv}, {"own_handler", own_handler},
        {"handler_gives_up", handler_gives_up}, {"ignored", ignored}, {"queries", queries}, {"posix_exec", posix_exec},
    };
    if (count < 5)
        fail("RECORDER POOL SCENARIO 0|1");
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    armed = atoi(arguments[4]);
    if (armed) {
        load_recorder(arguments[1], arguments[2]);
        trace_internals();
        trace((void *)victim, 1, ONE_INT);
        trace((void *)null_write, 2, ONE_INT);
        trace((void *)null_in_thread, 3, ONE_INT);
        trace((void *)overflow, 4, ONE_INT);
        if (recorder.arm() || recorder.arm())
            fail("strobe_arm");
    }
    for (unsigned i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (!strcmp(scenarios[i].name, arguments[3])) {
            scenarios[i].run();
            return 0;
        }
    fail("no scenario %s", arguments[3]);
}
