// C++ exceptions, backtraces and thread cancellation through traced frames.
extern "C" {
#include "patching.h"
}
#include <cstdio>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <ucontext.h>

static long argument;

extern "C" {
TRACED long leaf(long a) { __asm__ volatile("" : : : "memory"); return a + 1; }
TRACED long thrower(long n);
TRACED long catcher(long n);
TRACED long outermost(long n);
TRACED long rethrower(long n);
TRACED long deep(long n, long stop);
TRACED int backtracer(void);
TRACED int backtrace_through(void);
TRACED void cancelled(void);
TRACED long in_destructor(long a) { __asm__ volatile("" : : : "memory"); return a + 2; }
}

struct Guard {
    long value;
    explicit Guard(long v) : value(v) {}
    ~Guard() { value = in_destructor(value); }
};

long thrower(long n)
{
    Guard guard(n);
    if (n % 2)
        throw std::runtime_error("odd " + std::to_string(n));
    return leaf(n);
}

long rethrower(long n)
{
    try {
        return thrower(n) + 1;
    } catch (const std::exception &) {
        leaf(n);
        throw;
    }
}

// Returns right after the catch: the exit must be seen although no traced call comes between.
long catcher(long n)
{
    try {
        return rethrower(n);
    } catch (const std::exception &error) {
        return error.what()[0] == 'o' ? -1 : -2;
    }
}

long outermost(long n) { return catcher(n) + catcher(n + 1); }

static void throwing()
{
    trace((void *)leaf, 1, ONE_INT);
    trace((void *)thrower, 2, ONE_INT);
    trace((void *)rethrower, 3, ONE_INT);
    trace((void *)catcher, 4, ONE_INT);
    trace((void *)outermost, 5, ONE_INT);
    trace((void *)in_destructor, 6, ONE_INT);
    long sum = 0;
    for (long i = 0; i < argument; i++)
        sum += outermost(i);
    printf("sum %ld\n", sum);
}

// From the bottom of a deep stack up to a few frames, many times over, then out of all of it at once.
long deep(long n, long stop)
{
    if (n == 0) {
        for (long i = 0; i < 1000; i++)
            catcher(1);
        throw 5L;
    }
    long below = deep(n - 1, stop);
    __asm__ volatile("" : : : "memory");
    return below + 1;
}

static void from_the_deep()
{
    trace((void *)thrower, 2, ONE_INT);
    trace((void *)rethrower, 3, ONE_INT);
    trace((void *)catcher, 4, ONE_INT);
    trace((void *)deep, 7, ONE_INT);
    long caught = 0;
    try {
        deep(argument, 0);
    } catch (long value) {
        caught = value;
    }
    printf("caught %ld\n", caught);
}

int backtracer()
{
    void *frames[64];
    int count = backtrace(frames, 64);
    char **names = backtrace_symbols(frames, count);
    for (int i = 0; i < count; i++) {
        char *name = strchr(names[i], '('), *end = name ? strchr(name, '+') : NULL;
        if (name && end)
            printf("%.*s ", (int)(end - name - 1), name + 1);
    }
    free(names);
    return count;
}

int backtrace_through() { int count = backtracer(); __asm__ volatile("" : : : "memory"); return count; }

static void backtraces()
{
    if (argument) {
        trace((void *)backtracer, 1, NO_PLAN);
        trace((void *)backtrace_through, 2, NO_PLAN);
    }
    printf("%d\n", backtrace_through());
    printf("%d\n", backtrace_through());
}

static void *ends_itself(void *)
{
    Guard guard(1);
    cancelled();
    return nullptr;
}

void cancelled()
{
    Guard guard(2);
    if (argument % 2)
        pthread_exit(reinterpret_cast<void *>(7));
    for (;;)
        usleep(100000); // a cancellation point
}

static void cancelling()
{
    trace((void *)cancelled, 1, NO_PLAN);
    trace((void *)ends_itself, 2, NO_PLAN);
    trace((void *)in_destructor, 6, ONE_INT);
    for (long i = 0; i < 20; i++) {
        pthread_t thread;
        void *result = nullptr;
        argument = i;
        pthread_create(&thread, nullptr, ends_itself, nullptr);
        if (!(i % 2))
            pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result != (i % 2 ? reinterpret_cast<void *>(7) : PTHREAD_CANCELED))
            fail("a thread ended with %p", result);
    }
    puts("done");
}

static ucontext_t home, other;
static void routine()
{
    for (long i = 0; i < argument; i++) {
        catcher(i);
        swapcontext(&other, &home);
    }
}

static void in_a_coroutine()
{
    static char stack[65536];
    trace((void *)leaf, 1, ONE_INT);
    trace((void *)thrower, 2, ONE_INT);
    trace((void *)rethrower, 3, ONE_INT);
    trace((void *)catcher, 4, ONE_INT);
    getcontext(&other);
    other.uc_stack.ss_sp = stack;
    other.uc_stack.ss_size = sizeof stack;
    other.uc_link = &home;
    makecontext(&other, routine, 0);
    for (long i = 0; i <= argument; i++)
        swapcontext(&home, &other);
    puts("done");
}

struct Bare { int code; };
struct Plain : std::exception { const char *what() const noexcept override { return "known to its code alone"; } };
struct Derived : std::invalid_argument { long more[3]; Derived() : std::invalid_argument("derived from one") {} };
struct Left { long filler = 1; virtual ~Left() {} };
struct Both : Left, std::runtime_error { Both() : std::runtime_error("the second of two bases") {} };
struct Shared : virtual std::runtime_error { Shared() : std::runtime_error("a virtual base") {} };
struct VeryLong : std::runtime_error { VeryLong() : std::runtime_error(std::string(3000, 'l')) {} };

extern "C" TRACED long throws(long kind)
{
    switch (kind) {
    case 0: throw std::out_of_range("no such index");
    case 1: throw Derived();
    case 2: throw Both();
    case 3: throw Shared();
    case 4: throw 5;
    case 5: throw "a literal";
    case 6: throw std::string("a string that is too long to lie in its own object");
    case 7: throw Bare{7};
    case 8: throw Plain();
    case 9: std::rethrow_exception(std::make_exception_ptr(std::runtime_error("thrown again")));
    case 10: throw VeryLong();
    case 11: throw std::system_error(2, std::generic_category(), "opening");
    case 12: throw std::runtime_error("");
    case 13: throw std::bad_alloc();
    }
    return kind;
}

// Each is caught two traced frames further out.
extern "C" TRACED long through(long kind) { long result = throws(kind); __asm__ volatile("" : : : "memory"); return result; }

static void thrown()
{
    trace((void *)throws, 1, ONE_INT);
    trace((void *)through, 2, ONE_INT);
    for (long kind = 0; kind < 14; kind++)
        try {
            through(kind);
        } catch (const std::exception &error) {
            printf("%ld %s\n", kind, error.what());
        } catch (...) {
            printf("%ld\n", kind);
        }
}

static void uncaught()
{
    trace((void *)thrower, 2, ONE_INT);
    recorder.arm();
    thrower(1);
}

int main(int count, char **arguments)
{
    static const struct { const char *name; void (*run)(); } scenarios[] = {
        {"throwing", throwing}, {"from_the_deep", from_the_deep}, {"backtraces", backtraces},
        {"cancelling", cancelling}, {"in_a_coroutine", in_a_coroutine}, {"uncaught", uncaught}, {"thrown", thrown},
    };
    if (count < 4)
        fail("RECORDER POOL SCENARIO [ARGUMENT]");
    load_recorder(arguments[1], arguments[2]);
    argument = count > 4 ? atol(arguments[4]) : 1;
    void *frames[1];
    backtrace(frames, 1); // loads libgcc_s, which the agent sees to in a target
    if (!getenv("SELFTEST_UNPATCHED")) // an unwinder the recorder does not know of gets past its frames by their unwind table
        trace_internals();
    for (auto &scenario : scenarios)
        if (!strcmp(scenario.name, arguments[3])) {
            scenario.run();
            fflush(stdout);
            return 0;
        }
    fail("no scenario %s", arguments[3]);
}
