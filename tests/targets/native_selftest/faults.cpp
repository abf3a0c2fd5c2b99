// Captured pointers to memory that is not there, in every state that a program's signals can be in. A scenario's lines that begin with "result" are the
// same without the recorder (SELFTEST_PLAIN).
#include "walk_plans.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

enum { OK, UNREADABLE, CUT };
static char *gone, *page; // a page that is not mapped; one whose successor is not
static long calls;
static const Section SIXTY_FOUR = {point(0, 64), end};

static void memory()
{
    page = (char *)mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gone = page + 4096;
    munmap(gone, 8192);
    memset(page, 'p', 4096);
}

static void bad(const void *pointer, size_t readable, bool soft = false)
{
    take(pointer, calls);
    state(calls++, pointer, soft && readable ? OK : readable < 64 ? UNREADABLE : OK, readable);
}

static void some_bad_ones()
{
    bad(gone, 0);
    bad(page + 4086, 10);
    bad((void *)0xdead0000dead0000, 0);
    bad(page + 1, 64);
}

static void pointers()
{
    walk(SIXTY_FOUR);
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    char *none = (char *)mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *past_the_end = (char *)mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
    take(nullptr, calls);
    printf("regions %ld 0\n", calls++);
    fflush(stdout);
    char *freed = (char *)malloc(1 << 20);
    free(freed); // was a mapping of its own
    for (int turn = 0; turn < 3; turn++) { // the second time the page is known to be bad
        some_bad_ones();
        bad((void *)8, 0);
        bad((void *)~0ul, 0);
        bad((void *)(~0ul - 63), 0);
        bad((void *)0xffff888000000000, 0);
        bad((void *)0xffffffffff600000, 0);
        bad((void *)0x7fffffffffff, 0);
        bad((void *)0x800000000000, 0);
        bad(none, 0);
        bad(none - 1 + 0x1000000000, 0);
        bad(past_the_end, 0);
        if (turn < 2)
            bad(freed, 0);
        bad(page + 4095, 1);
        bad(page + 4032, 64);
        bad(page + 4033, 63);
        bad((char *)&calls + 3, 64);
    }
    walk({point(0, 64, LANE_WALK_NOTHING, LANE_WALK_FLAG_SOFT), end});
    bad(page + 4086, 10, true);
    bad(gone, 0, true);
    walk({step(LANE_WALK_OP_TEXT, 0, 1, LANE_WALK_NOTHING, 100), end});
    bad(page + 4091, 5);
    bad(gone, 0);
    page[4095] = 0;
    take(page + 4090, calls);
    state(calls++, page + 4090, OK, 6);
    page[4095] = 'p';
    gone = (char *)mmap(gone, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    take(page + 4086, calls); // what was bad is there now
    state(calls++, page + 4086, OK, 11);
    puts("result done");
}

// The page comes and goes while it is read.
static volatile long turns;
static void *changes(void *)
{
    for (long i = 0; i < argument; turns = i++) {
        if (i % 3)
            mprotect(gone, 4096, i % 3 == 1 ? PROT_NONE : PROT_READ);
        else
            munmap(gone, 4096);
        for (int spin = 0; spin < 1000; spin++)
            __builtin_ia32_pause();
        mmap(gone, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memset(gone, 'g', 4096);
    }
    return nullptr;
}

static void racing()
{
    walk({point(0, 400), step(LANE_WALK_OP_TEXT, 0, 1, LANE_WALK_NOTHING, 300), end});
    pthread_t thread;
    pthread_create(&thread, nullptr, changes, nullptr);
    for (; turns + 1 < argument && calls < 6 * argument; calls++) {
        take(page + 3900 + calls % 200, calls);
        for (int spin = calls % 500; spin; spin--)
            __builtin_ia32_pause();
    }
    pthread_join(thread, nullptr);
    printf("turns %ld calls %ld\n", turns, calls);
}

static void blocked()
{
    sigset_t all, before;
    sigfillset(&all);
    walk(SIXTY_FOUR);
    some_bad_ones();
    pthread_sigmask(SIG_SETMASK, &all, &before);
    some_bad_ones();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    some_bad_ones();
    puts("result done");
}

static void *begins_blocked(void *)
{
    some_bad_ones();
    return nullptr;
}

static void blocked_thread()
{
    sigset_t all;
    sigfillset(&all);
    walk(SIXTY_FOUR);
    some_bad_ones();
    sigprocmask(SIG_BLOCK, &all, nullptr);
    pthread_t thread;
    pthread_create(&thread, nullptr, begins_blocked, nullptr);
    pthread_join(thread, nullptr);
    puts("result done");
}

static sigjmp_buf back;
static volatile long handled;
static void leave(int signo, siginfo_t *info, void *)
{
    handled = handled + 1;
    printf("result signal %d at %s\n", signo, info->si_addr == gone ? "the page" : "nothing");
    siglongjmp(back, 1);
}

static void real_fault()
{
    if (!sigsetjmp(back, 1))
        *(volatile char *)gone = 1;
}

static void describe(int signo)
{
    struct sigaction action;
    sigaction(signo, nullptr, &action);
    const char *handler = action.sa_handler == SIG_DFL ? "default" : action.sa_handler == SIG_IGN ? "ignored" : action.sa_sigaction == leave ? "leave" : "other";
    printf("result action of %d: %s", signo, handler);
    if (action.sa_handler != SIG_DFL) // else flags mean nothing
        printf(", flags %x, mask %d", unsigned(action.sa_flags) & ~0x04000000u, sigismember(&action.sa_mask, SIGHUP));
    puts("");
}

// As runtimes do that recover from faults, or that say something before they die (Rust's).
static void own_handler()
{
    static char stack[65536];
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    struct sigaction action = {}, old;
    action.sa_sigaction = leave;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaddset(&action.sa_mask, SIGHUP);
    walk(SIXTY_FOUR);
    describe(SIGSEGV);
    some_bad_ones();
    sigaltstack(&alternate, nullptr);
    for (int signo : {SIGSEGV, SIGBUS}) {
        sigaction(signo, &action, &old);
        printf("result before: %s\n", old.sa_handler == SIG_DFL ? "default" : "other");
        describe(signo);
        some_bad_ones();
    }
    for (int i = 0; i < 50; i++) {
        real_fault();
        some_bad_ones();
    }
    action.sa_flags = SA_SIGINFO; // on the stack in use
    sigaction(SIGSEGV, &action, &old);
    printf("result before: %s\n", old.sa_sigaction == leave ? "leave" : "other");
    real_fault();
    some_bad_ones();
    sigaction(SIGSEGV, &old, nullptr);
    real_fault();
    raise(SIGSEGV); // not a fault
    some_bad_ones();
    signal(SIGSEGV, SIG_DFL);
    describe(SIGSEGV);
    some_bad_ones();
    printf("result handled %ld\n", handled);
}

// The kernel says what the fault was only where SA_SIGINFO asks for it. On this stack the frame would hold what was there before.
static void leave_plainly(int signo)
{
    handled = handled + 1;
    printf("result signal %d\n", signo);
    siglongjmp(back, 1);
}

static void plain_handler()
{
    static char stack[65536];
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action = {}, old;
    action.sa_handler = leave_plainly;
    walk(SIXTY_FOUR);
    for (int flags : {SA_ONSTACK, SA_ONSTACK | SA_SIGINFO, SA_ONSTACK | SA_RESTART, 0}) {
        action.sa_flags = flags;
        for (int signo : {SIGSEGV, SIGBUS}) {
            sigaction(signo, &action, &old);
            printf("result before: flags %x\n", old.sa_handler == SIG_DFL ? 0 : unsigned(old.sa_flags) & ~0x04000000u);
            describe(signo);
        }
        for (int fill : {0, 0xff, 1}) {
            memset(stack, fill, sizeof stack);
            some_bad_ones();
            real_fault();
        }
    }
    signal(SIGSEGV, SIG_DFL);
    describe(SIGSEGV);
    some_bad_ones();
    printf("result handled %ld\n", handled);
}

static void once(int) { puts("result once"); calls++; siglongjmp(back, 1); }
static void ignored()
{
    walk(SIXTY_FOUR);
    some_bad_ones();
    signal(SIGSEGV, SIG_IGN);
    describe(SIGSEGV);
    some_bad_ones();
    raise(SIGSEGV);
    signal(SIGSEGV, SIG_DFL);
    some_bad_ones();
    struct sigaction action = {};
    action.sa_handler = once;
    action.sa_flags = int(SA_RESETHAND);
    sigaction(SIGSEGV, &action, nullptr);
    some_bad_ones();
    real_fault();
    describe(SIGSEGV);
    some_bad_ones();
    puts("result done");
}

static void on_user(int) { some_bad_ones(); }
static void in_handlers()
{
    char *stack = (char *)malloc(8192);
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = 8192; // too small for another frame on it
    struct sigaction action = {};
    action.sa_handler = on_user;
    walk(SIXTY_FOUR);
    for (int turn = 0; turn < 4; turn++) {
        if (turn == 2)
            sigaltstack(&alternate, nullptr);
        action.sa_flags = turn >= 2 ? SA_ONSTACK : 0;
        if (turn % 2)
            sigfillset(&action.sa_mask);
        else
            sigemptyset(&action.sa_mask);
        sigaction(SIGUSR1, &action, nullptr);
        raise(SIGUSR1);
        some_bad_ones();
    }
    puts("result done");
}

// The handler runs with what sigsuspend blocks.
static void suspended()
{
    struct sigaction action = {};
    action.sa_handler = on_user;
    walk(SIXTY_FOUR);
    some_bad_ones();
    sigset_t user, others;
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    sigprocmask(SIG_BLOCK, &user, nullptr);
    sigfillset(&others);
    sigdelset(&others, SIGUSR1);
    sigaction(SIGUSR1, &action, nullptr);
    raise(SIGUSR1);
    sigsuspend(&others);
    some_bad_ones();
    puts("result done");
}

static void looks_around(int, siginfo_t *, void *) { some_bad_ones(); siglongjmp(back, 1); }
static void in_a_fault()
{
    struct sigaction action = {};
    action.sa_sigaction = looks_around;
    action.sa_flags = SA_SIGINFO;
    walk(SIXTY_FOUR);
    some_bad_ones();
    sigaction(SIGSEGV, &action, nullptr);
    real_fault();
    some_bad_ones();
    puts("result done");
}

static void wait_for(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    printf("result child %d %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    fflush(stdout);
}

static void children()
{
    walk(SIXTY_FOUR);
    some_bad_ones();
    fflush(stdout);
    for (int turn = 0; turn < 4; turn++) {
        pid_t pid = fork();
        if (!pid) {
            calls += 1000 * (turn + 1);
            some_bad_ones();
            fflush(stdout);
            if (turn % 2)
                *(volatile char *)gone = 1;
            _exit(3);
        }
        wait_for(pid);
        some_bad_ones();
        fflush(stdout);
    }
    struct sigaction action = {};
    action.sa_sigaction = leave;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    for (int turn = 0; turn < 3; turn++) {
        pid_t pid = vfork(); // shares memory, not actions
        if (!pid) {
            take(gone, -1);
            signal(SIGSEGV, turn == 0 ? SIG_DFL : turn == 1 ? SIG_IGN : (void (*)(int))once);
            take(gone, -1);
            _exit(4);
        }
        wait_for(pid);
        some_bad_ones();
        real_fault();
    }
    printf("result handled %ld\n", handled);
}

static ucontext_t home, other;
static void routine()
{
    for (int i = 0; i < 5; i++) {
        some_bad_ones();
        swapcontext(&other, &home);
    }
}

static void *in_thread(void *)
{
    some_bad_ones();
    return nullptr;
}

static void small_stacks()
{
    walk(SIXTY_FOUR);
    char *stack = (char *)mmap(nullptr, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack, 4096, PROT_NONE);
    getcontext(&other);
    other.uc_stack.ss_sp = stack + 4096;
    other.uc_stack.ss_size = 4 * 4096;
    other.uc_link = &home;
    makecontext(&other, routine, 0);
    for (int i = 0; i < 6; i++)
        swapcontext(&home, &other);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16384);
    pthread_t thread;
    pthread_create(&thread, &attributes, in_thread, nullptr);
    pthread_join(thread, nullptr);
    puts("result done");
}

// A handler that libc knows nothing of, as Go's runtime installs it.
static void raw_handler()
{
    struct { void (*handler)(int); unsigned long flags; void (*restorer)(); unsigned long mask; } action = {once, 0x04000000, nullptr, 0};
    syscall(SYS_rt_sigaction, SIGSEGV, &action, nullptr, 8);
    walk(SIXTY_FOUR);
    some_bad_ones();
    puts("result done");
}

static void dies()
{
    walk(SIXTY_FOUR);
    some_bad_ones();
    fflush(stdout);
    *(volatile char *)gone = 1;
}

static void on_alarm(int)
{
    handled = handled + 1;
    take(handled % 2 ? gone : page, -handled);
}

// Handlers strike in the copying itself.
static void alarms()
{
    struct Node { Node *next; char text[56]; };
    static Node nodes[20];
    for (int i = 0; i < 20; i++) {
        nodes[i].next = i < 19 ? &nodes[i + 1] : nullptr;
        snprintf(nodes[i].text, sizeof nodes[i].text, "node %d", i);
    }
    walk({step(LANE_WALK_OP_LIST, 0, 64, 2, 100, 0, 0), end, point(0, 8), end});
    struct sigaction action = {};
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    itimerval often = {{0, 100}, {0, 100}}, never = {};
    setitimer(ITIMER_REAL, &often, nullptr);
    while (handled < argument)
        take(nodes, calls++);
    setitimer(ITIMER_REAL, &never, nullptr);
    printf("calls %ld handled %ld\n", calls, handled);
}

int main(int count, char **arguments)
{
    static const struct { const char *name; void (*run)(); } scenarios[] = {
        {"pointers", pointers}, {"racing", racing}, {"blocked", blocked}, {"blocked_thread", blocked_thread}, {"own_handler", own_handler}, {"ignored", ignored},
        {"plain_handler", plain_handler},
        {"in_handlers", in_handlers}, {"suspended", suspended}, {"in_a_fault", in_a_fault}, {"children", children}, {"small_stacks", small_stacks},
        {"raw_handler", raw_handler}, {"dies", dies}, {"alarms", alarms},
    };
    if (count < 5)
        fail("RECORDER POOL SCENARIO ARGUMENT");
    rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (!getenv("SELFTEST_PLAIN")) {
        load_recorder(arguments[1], arguments[2]);
        if (!getenv("SELFTEST_UNHOOKED"))
            trace_internals();
        if (!getenv("SELFTEST_UNARMED") && recorder.arm())
            fail("strobe_arm");
    }
    argument = atol(arguments[4]);
    memory();
    for (auto &scenario : scenarios)
        if (!strcmp(scenario.name, arguments[3])) {
            scenario.run();
            return 0;
        }
    fail("no scenario %s", arguments[3]);
}
