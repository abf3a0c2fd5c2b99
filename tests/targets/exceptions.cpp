// C++ exceptions through traced frames: destructors in order, rethrow, nested, across threads, from constructors, function try blocks, caught in the middle.
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define KEEP __attribute__((noinline))

static std::string trail;

struct Guard {
    int id;
    explicit Guard(int id) : id(id) {}
    KEEP ~Guard() { trail += std::to_string(id % 10); }
};

struct Odd : std::runtime_error {
    int number;
    explicit Odd(int n) : std::runtime_error("odd " + std::to_string(n)), number(n) {}
};

KEEP static int thrower(int depth, int kind) {
    Guard guard(depth);
    if (depth > 0) return thrower(depth - 1, kind) + 1;
    switch (kind % 5) {
        case 0: throw Odd(kind);
        case 1: throw kind;
        case 2: throw "text";
        case 3: throw std::out_of_range("range");
        default: return kind;
    }
}

KEEP static int middle(int depth, int kind) {
    Guard guard(7);
    try {
        return thrower(depth, kind);
    } catch (const Odd &odd) {
        if (odd.number % 2) throw;
        return -odd.number;
    }
}

KEEP static int outer(int depth, int kind) {
    try {
        return middle(depth, kind);
    } catch (const std::exception &e) {
        return (int)std::strlen(e.what());
    } catch (int number) {
        return number * 2;
    } catch (...) {
        return 1000;
    }
}

struct Fails {
    Guard first{1};
    std::unique_ptr<Guard> second = std::make_unique<Guard>(2);
    KEEP explicit Fails(int n) try : third(n) { if (n % 2) throw Odd(n); } catch (Odd &odd) { trail += 'F'; }
    Guard third;
};

KEEP static std::string nested(int n) {
    try {
        try { throw Odd(n); }
        catch (...) { std::throw_with_nested(std::logic_error("outer " + std::to_string(n))); }
    } catch (const std::exception &e) {
        std::string text = e.what();
        try { std::rethrow_if_nested(e); } catch (const std::exception &inner) { text += "/" + std::string(inner.what()); }
        return text;
    }
    return "";
}

template <typename T> KEEP static T through(const std::function<T()> &call) { Guard guard(9); return call(); }

KEEP static int in_destructor(int n) {
    struct Careful { int n; KEEP ~Careful() { try { throw n; } catch (int v) { trail += (char)('a' + v % 26); } } };
    Careful careful{n};
    throw std::runtime_error("while unwinding");
}

int main() {
    long sum = 0;
    for (int i = 0; i < 3000; i++) { sum += outer(i % 9, i); if (trail.size() > 100000) { std::printf("%zu\n", std::hash<std::string>{}(trail)); trail.clear(); } }
    std::printf("sum %ld\n%.80s\n", sum, trail.c_str());
    trail.clear();
    for (int i = 0; i < 6; i++) { try { Fails fails(i); } catch (const Odd &) { trail += '!'; } }
    for (int i = 0; i < 5; i++) { try { in_destructor(i); } catch (const std::exception &e) { trail += e.what(); } }
    std::printf("%s\n%s\n", trail.c_str(), nested(5).c_str());
    auto future = std::async(std::launch::async, [] { return through<int>([]() -> int { throw Odd(77); }); });
    try { future.get(); } catch (const Odd &odd) { std::printf("from a thread: %s\n", odd.what()); }
    std::vector<std::thread> threads;
    std::vector<long> sums(8);
    trail.clear();
    std::string quiet; quiet.swap(trail);
    for (int t = 0; t < 8; t++) threads.emplace_back([t, &sums] { for (int i = 0; i < 300; i++) try { if (i % 3 == 0) throw i; sums[t] += i; } catch (int v) { sums[t] -= v; } });
    for (auto &thread : threads) thread.join();
    long total = 0;
    for (long s : sums) total += s;
    std::exception_ptr kept;
    try { thrower(3, 5); } catch (...) { kept = std::current_exception(); }
    try { std::rethrow_exception(kept); } catch (const Odd &odd) { std::printf("kept %s, total %ld, uncaught %d\n", odd.what(), total, std::uncaught_exceptions()); }
    return 3;
}
