/* Load for kill tests like numbers.c, with one more thread that sits in traced frames all the while: `sitting LEAVE LINES`.
 * After the last of LINES numbered lines (one a millisecond) that thread leaves its frames: by `throw`, `longjmp`, `fork` (the child returns from
 * them too) or `crash`. Unless it crashed, the program prints how it left and ends with status 17 and the exact number of calls. */
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <time.h>
#include <unistd.h>

static std::atomic<bool> stop{false}, leave{false};
static std::atomic<unsigned long> all_calls{0};
static std::string way;
static jmp_buf outside;
static constexpr int CHILD_CALLS = 10;

#define TRACED extern "C" __attribute__((noinline))
TRACED unsigned long leaf(unsigned long value, int step) { return value * 31 + (unsigned long)step; }
TRACED unsigned long middle(unsigned long value, int step) { return leaf(value, step) ^ leaf(value, step + 1); }
TRACED unsigned long chain(unsigned long value) { return middle(value, 1) + middle(value, 3); } /* 7 calls with its own */

static void pause_us(long us) {
    struct timespec time = {0, us * 1000};
    nanosleep(&time, nullptr);
}

static void work() {
    unsigned long value = 1, calls = 0;
    for (; !stop; calls += 7 * 12, pause_us(200))
        for (int i = 0; i < 12; i++) value = chain(value);
    all_calls += calls + (value == 0);
}

TRACED int sit_deeper(int depth) {
    while (!leave) pause_us(500);
    if (way == "throw") throw depth + 40;
    if (way == "longjmp") longjmp(outside, depth + 40);
    volatile int *volatile nowhere = nullptr; /* a plain store is dropped: the compiler knows that it points to nothing */
    if (way == "crash") *nowhere = depth;
    return way == "fork" ? (int)fork() : -1;
}

TRACED int sit(int depth) {
    int pid = sit_deeper(depth + 1);
    __asm__ volatile("" : : : "memory");
    return pid;
}

static void sitter(int *left) {
    if (way == "longjmp" && (*left = setjmp(outside))) return;
    try {
        int pid = sit(1), status = 0;
        if (!pid) {
            unsigned long value = 1;
            for (int i = 0; i < CHILD_CALLS; i++) value = leaf(value, i);
            _exit(value ? 42 : 43);
        }
        waitpid(pid, &status, 0);
        all_calls += CHILD_CALLS;
        *left = WEXITSTATUS(status);
    } catch (int thrown) { *left = thrown; }
}

TRACED void numbered_line(int number) {
    printf("line %d\n", number);
    fflush(stdout);
}

int main(int argc, char **argv) {
    way = argc > 1 ? argv[1] : "throw";
    int lines = argc > 2 ? atoi(argv[2]) : 1000, left = 0;
    std::thread workers[] = {std::thread(work), std::thread(work)}, sitting(sitter, &left);
    for (int i = 0; i < lines; i++, pause_us(1000)) numbered_line(i);
    leave = true;
    sitting.join();
    stop = true;
    for (std::thread &worker : workers) worker.join();
    printf("left by %s: %d\n", way.c_str(), left);
    fflush(stdout);
    fprintf(stderr, "calls %lu\n", all_calls + (unsigned long)lines + 2);
    return 17;
}
