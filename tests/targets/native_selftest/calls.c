/* Traced calls in every shape that does not need C++. Each scenario says on stdout what the recorder must have seen. */
#define _GNU_SOURCE
#include "../../../agent/native/layout.gen.h"
#include "patching.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

static long argument;
static const char *pool_path;

static uint8_t *pool_memory(void)
{
    int file = open(pool_path, O_RDWR | O_CLOEXEC);
    void *memory = mmap(NULL, LANE_CHUNKS_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        fail("cannot map %s", pool_path);
    close(file);
    return memory;
}

TRACED long leaf(long a, long b) { __asm__ volatile("" : : : "memory"); return a * 3 + b; }
TRACED long middle(long a) { return leaf(a, 1) + leaf(a, 2); }
TRACED long outer_call(long a) { return middle(a) + middle(a + 1) + leaf(a, 9); }

static void nesting(void)
{
    trace(leaf, 1, TWO_INTS);
    trace(middle, 2, ONE_INT);
    trace(outer_call, 3, ONE_INT);
    long sum = 0;
    for (long i = 0; i < argument; i++)
        sum += outer_call(i);
    printf("sum %ld\n", sum);
}

TRACED long descend(long n) { long below = n ? descend(n - 1) : 0; __asm__ volatile("" : : : "memory"); return below + 1; }

static void recursion(void)
{
    trace(descend, 1, ONE_INT);
    printf("depth %ld\n", descend(argument));
}

/* Registers a caller may count on: all of them. The caller fills every register, calls, and compares. */
TRACED void quiet(void) { __asm__ volatile(""); }
#define EACH_REGISTER(DO) DO(rax) DO(rbx) DO(rcx) DO(rdx) DO(rsi) DO(rdi) DO(r8) DO(r9) DO(r10) DO(r11) DO(r12) DO(r13) DO(r14) DO(r15)

static void registers(void)
{
    trace(quiet, 1, NO_PLAN);
    uint64_t bad = 0, bad_vector = 0;
    for (long i = 0; i < argument; i++) {
        uint64_t wrong, wrong_vector;
        __asm__ volatile(
            "push %%rbp\n push %%rbx\n mov $0x1111, %%rax\n mov $0x2222, %%rbx\n mov $0x3333, %%rcx\n mov $0x4444, %%rdx\n mov $0x5555, %%rsi\n"
            "mov $0x6666, %%rdi\n mov $0x7777, %%r8\n mov $0x8888, %%r9\n mov $0x9999, %%r10\n mov $0xaaaa, %%r11\n mov $0xbbbb, %%r12\n"
            "mov $0xcccc, %%r13\n mov $0xdddd, %%r14\n mov $0xeeee, %%r15\n mov $0xffff, %%rbp\n"
            "movq %%rax, %%xmm0\n movq %%rbx, %%xmm1\n movq %%rcx, %%xmm7\n movq %%rdx, %%xmm15\n"
            "call quiet\n"
            "xor $0x1111, %%rax\n xor $0x2222, %%rbx\n xor $0x3333, %%rcx\n xor $0x4444, %%rdx\n xor $0x5555, %%rsi\n xor $0x6666, %%rdi\n"
            "xor $0x7777, %%r8\n xor $0x8888, %%r9\n xor $0x9999, %%r10\n xor $0xaaaa, %%r11\n xor $0xbbbb, %%r12\n xor $0xcccc, %%r13\n"
            "xor $0xdddd, %%r14\n xor $0xeeee, %%r15\n xor $0xffff, %%rbp\n"
            "or %%rbx, %%rax\n or %%rcx, %%rax\n or %%rdx, %%rax\n or %%rsi, %%rax\n or %%rdi, %%rax\n or %%r8, %%rax\n or %%r9, %%rax\n"
            "or %%r10, %%rax\n or %%r11, %%rax\n or %%r12, %%rax\n or %%r13, %%rax\n or %%r14, %%rax\n or %%r15, %%rax\n or %%rbp, %%rax\n"
            "movq %%xmm0, %%rcx\n xor $0x1111, %%rcx\n movq %%xmm1, %%rdx\n xor $0x2222, %%rdx\n or %%rdx, %%rcx\n"
            "movq %%xmm7, %%rdx\n xor $0x3333, %%rdx\n or %%rdx, %%rcx\n movq %%xmm15, %%rdx\n xor $0x4444, %%rdx\n or %%rdx, %%rcx\n"
            "pop %%rbx\n pop %%rbp\n"
            : "=a"(wrong), "=c"(wrong_vector)
            :
            : "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm7", "xmm15", "memory", "cc");
        bad |= wrong;
        bad_vector |= wrong_vector;
    }
    printf("wrong %llx %llx\n", (unsigned long long)bad, (unsigned long long)bad_vector);
}

/* A tail call chain: with -O2 each of these jumps to the next. */
TRACED long chain_c(long a) { __asm__ volatile("" : : : "memory"); return a + 3; }
TRACED long chain_b(long a) { return chain_c(a + 20); }
TRACED long chain_a(long a) { return chain_b(a + 100); }

static void tails(void)
{
    trace(chain_a, 1, ONE_INT);
    trace(chain_b, 2, ONE_INT);
    trace(chain_c, 3, ONE_INT);
    long sum = 0;
    for (long i = 0; i < argument; i++)
        sum += chain_a(i);
    printf("sum %ld\n", sum);
}

static void *caller(void *name)
{
    long sum = 0;
    for (long i = 0; i < argument; i++)
        sum += middle(i);
    (void)name;
    return (void *)sum;
}

static void threads(void)
{
    pthread_t workers[8];
    void *result;
    long sum = 0;
    trace(leaf, 1, TWO_INTS);
    trace(middle, 2, ONE_INT);
    for (int i = 0; i < 8; i++)
        pthread_create(&workers[i], NULL, caller, NULL);
    for (int i = 0; i < 8; i++) {
        pthread_join(workers[i], &result);
        sum += (long)result;
    }
    printf("sum %ld\n", sum);
}

/* Threads one after another: glibc gives each the stack, and so the thread pointer, of the one before. */
static void successors(void)
{
    trace(leaf, 1, TWO_INTS);
    trace(middle, 2, ONE_INT);
    long many = argument;
    argument = 3;
    for (long i = 0; i < many; i++) {
        pthread_t worker;
        pthread_create(&worker, NULL, caller, NULL);
        pthread_join(worker, NULL);
    }
    puts("done");
}

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

TRACED long text_of(const char *text, long n) { __asm__ volatile("" : : "r"(text) : "memory"); return n; }

static void strings(void)
{
    static const struct plan_op plan[] = {{CSTR, 0, 8, 8, 64}, {GPR, 1, 4, 0, 0}, {END, 0, 0, 0, 0}, {END, 0, 0, 0, 0}};
    trace((void *)text_of, 1, plan);
    char *page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), local[] = "on the stack", exact[65];
    munmap(page + 4096, 4096);
    memset(page, 'x', 4096);
    strcpy(page + 4096 - 6, "end..");
    memset(exact, 'e', 64);
    exact[64] = 0;
    char *heap = malloc(200);
    memset(heap, 'h', 199);
    heap[199] = 0;
    text_of("literal", 1);
    text_of("", 2);
    text_of(NULL, 3);
    text_of(page + 4096 - 6, 4);
    memset(page + 4096 - 6, 'y', 6);
    text_of(page + 4096 - 6, 5);
    text_of((const char *)0xdead0000dead0000, 6);
    text_of((const char *)8, 7);
    text_of(local, 8);
    text_of(heap, 9);
    text_of(exact, 10);
    text_of(page + 4096, 11);
    puts("done");
}

TRACED double mixed(double a, long b, float c, double d) { return a + (double)b + (double)c + d; }
TRACED long many(long a, long b, long c, long d, long e, long f, long g, int h) { return a + b + c + d + e + f + g + h; }

static void doubles(void)
{
    static const struct plan_op plan[] = {{XMM, 0, 8, 0, 0}, {GPR, 0, 8, 8, 0}, {XMM, 1, 4, 16, 0}, {XMM, 2, 8, 24, 0}, {END, 0, 0, 0, 0}, {WORD_XMM, 0, 0, 0, 0}, {END, 0, 0, 0, 0}};
    static const struct plan_op on_stack[] = {{GPR, 0, 8, 0, 0}, {GPR, 5, 2, 8, 0}, {STACK, 0, 8, 16, 0}, {STACK, 0, 4, 24, 8}, {END, 0, 0, 0, 0}, {GPR, 6, 4, 0, 0}, {END, 0, 0, 0, 0}};
    trace(mixed, 1, plan);
    trace(many, 2, on_stack);
    double sum = 0;
    for (long i = 0; i < argument; i++)
        sum += mixed(0.5, i, 2.25f, -1e300) + (double)many(1, 2, 3, 4, 5, 0x12346, i, -2);
    printf("sum %g\n", sum);
}

TRACED long abi_free(long a) { return a ^ 0x55; }

/* What the fallback calls: no thunk, no return address touched. */
static void managed(void)
{
    static const struct plan_op plan[] = {{CSTR, 0, 8, 8, 64}, {GPR, 1, 8, 0, 0}, {END, 0, 0, 0, 0}, {END, 0, 0, 0, 0}};
    uint64_t text = recorder.hook_new(1, 0, plan, 8 * 4), plain = recorder.hook_new(2, 0, NO_PLAN, 8 * 2);
    for (long i = 0; i < argument; i++) {
        uint64_t frame[64], registers[15] = {(uint64_t) "managed", (uint64_t)i};
        uint64_t above = recorder.record_enter(text, registers, &frame[60]), below = recorder.record_enter(plain, registers, &frame[20]);
        registers[6] = (uint64_t)i + 1000;
        recorder.record_exit(plain, below, registers);
        recorder.record_exit(text, above, registers);
        if (!above || !below)
            fail("not recorded");
    }
    puts("done");
}

static void output(void)
{
    trace_internals();
    trace(leaf, 1, TWO_INTS);
    int other = open("/dev/null", O_WRONLY);
    for (long i = 0; i < argument; i++) {
        char line[32];
        int bytes = snprintf(line, sizeof line, "line %ld\n", i);
        leaf(i, 0);
        errno = 77;
        if (write(1, line, (size_t)bytes) != bytes || errno != 77)
            fail("errno %d", errno);
        leaf(i, 1);
        if (write(2, "e\n", 2) != 2 || write(other, "n", 1) != 1)
            fail("write");
        if (write(999, line, 1) != -1 || errno != EBADF)
            fail("errno %d instead of EBADF", errno);
        puts("from stdio");
        fflush(stdout);
    }
}

/* Traces until the pool is full, then writes. */
static void flood(void)
{
    trace_internals();
    nesting();
    for (int i = 0; i < 100; i++) {
        if (write(1, "x", 1) != 1)
            fail("write");
        outer_call(i);
    }
}

TRACED long parked(long a) { puts("parked"); fflush(stdout); pause(); return a; }
TRACED long parks(long a) { long result = parked(a); __asm__ volatile("" : : : "memory"); return result + 1; }

/* Waits in a traced call of a traced call, for a debugger to look at. */
static void park(void)
{
    trace(parked, 1, ONE_INT);
    trace(parks, 2, ONE_INT);
    parks(argument);
}

static void sampled(void)
{
    trace(leaf, 1, TWO_INTS);
    struct lane_hook *hook = (struct lane_hook *)(pool_memory() + LANE_HOOKS_OFFSET) + 1;
    hook->flags = 7;
    hook->sample_period = 100;
    for (long i = 0; i < argument; i++)
        outer_call(i);
}

int main(int count, char **arguments)
{
    static const struct { const char *name; void (*run)(void); } scenarios[] = {
        {"nesting", nesting}, {"recursion", recursion}, {"registers", registers}, {"tails", tails}, {"threads", threads}, {"successors", successors},
        {"handlers", handlers}, {"handlers_elsewhere", handlers_elsewhere}, {"handlers_that_leave", handlers_that_leave}, {"handlers_that_leave_their_stack", handlers_that_leave_their_stack}, {"jumps", jumps},
        {"coroutines", coroutines}, {"coroutines_in_frame", coroutines_in_frame}, {"coroutines_that_move", coroutines_that_move}, {"forks", forks},
        {"vforks", vforks}, {"preemptive", preemptive}, {"forks_in_thread", forks_in_thread}, {"strings", strings}, {"doubles", doubles}, {"managed", managed}, {"output", output}, {"flood", flood}, {"sampled", sampled}, {"park", park},
    };
    if (count < 4)
        fail("RECORDER POOL SCENARIO [ARGUMENT]");
    load_recorder(arguments[1], arguments[2]);
    pool_path = arguments[2];
    argument = count > 4 ? atol(arguments[4]) : 1;
    for (unsigned i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (!strcmp(scenarios[i].name, arguments[3])) {
            scenarios[i].run();
            fflush(stdout);
            return 0;
        }
    fail("no scenario %s", arguments[3]);
}
