// What one call costs by what it is given: `bench_values KIND BURST BURSTS PAUSE_MS` times bursts of calls of one function, with pauses between in which a
// tracer can drain what it holds, and prints the ns per call of each burst. KIND: none, two, six, deep, text, map, copy (a plain memcpy of `deep`'s bytes).
// With BENCH_WAIT set it first waits for a line on stdin.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>

#define KEPT __attribute__((noinline))
#define HERE __asm__ volatile("" ::: "memory")

struct Leaf { int id; double weight; long marks[4]; };
struct Middle { const Leaf *leaf; long count; };
struct Outer { const Middle *middle; int mode; char tag[12]; };

extern "C" {
KEPT long none() { HERE; return 0x123456789ab; }
KEPT int two(int a, int b) { HERE; return a * 3 + b; }
KEPT long six(int a, long b, unsigned c, short d, char e, long f) { HERE; return a + b + c + d + e + f; }
}
KEPT int deep(const Outer *outer) { HERE; return outer->mode * 3 + 7; }
KEPT int text(const std::string &name) { HERE; return static_cast<int>(name.size()) * 3 + 7; }
KEPT int map(const std::map<int, int> &counts) { HERE; return static_cast<int>(counts.size()) * 3 + 7; }

static double now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

static Leaf leaf = {7, 2.5, {1, 2, 3, 4}};
static Middle middle = {&leaf, 3};
static Outer outer = {&middle, 1, "a tag"};
static std::string name(64, 'x');
static std::map<int, int> counts;

template <typename Call> static double burst(long calls, Call call) {
    volatile long sum = 0;
    double start = now_ns();
    for (long i = 0; i < calls; i++) sum = sum + call(static_cast<int>(i));
    return (now_ns() - start) / static_cast<double>(calls);
}

static double run(const char *kind, long calls) {
    if (!strcmp(kind, "none")) return burst(calls, [](int) { return none(); });
    if (!strcmp(kind, "two")) return burst(calls, [](int i) { return two(i, 4); });
    if (!strcmp(kind, "six")) return burst(calls, [](int i) { return six(i, 2, 3, 4, 5, 6); });
    if (!strcmp(kind, "deep")) return burst(calls, [](int) { return deep(&outer); });
    if (!strcmp(kind, "text")) return burst(calls, [](int) { return text(name); });
    if (!strcmp(kind, "map")) return burst(calls, [](int) { return map(counts); });
    fprintf(stderr, "no such kind: %s\n", kind);
    exit(2);
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    long calls = atol(argv[2]), bursts = atol(argv[3]), pause_ms = atol(argv[4]);
    timespec pause_for = {pause_ms / 1000, pause_ms % 1000 * 1000000};
    for (int i = 0; i < 10; i++) counts[i * 7] = i;
    if (getenv("BENCH_WAIT")) getchar();
    for (long round = 0; round < bursts; round++) {
        nanosleep(&pause_for, nullptr);
        printf("ns %.3f\n", run(argv[1], calls));
        fflush(stdout);
    }
    return 0;
}
