/* Traced calls in every shape that does not need C++. Each scenario says on stdout what the recorder must have seen. */
#define _GNU_SOURCE
#include "forks.h"
#include "handlers.h"
#include "stacks.h"
#include "traced.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

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
    hook->sample_period = 100;
    for (long i = 0; i < argument; i++)
        leaf(i & 1, i);
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
