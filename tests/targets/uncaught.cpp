// Exceptions that nobody catches: `uncaught` from nested calls, `uncaught noexcept` through a noexcept function, `uncaught handler` with a terminate handler.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>

#define KEEP __attribute__((noinline))

struct Noisy { KEEP ~Noisy() { std::printf("never printed when nobody catches\n"); } };

KEEP static int deep(int depth) {
    Noisy noisy;
    if (depth == 0) throw std::runtime_error("nobody catches this");
    return deep(depth - 1) + 1;
}

KEEP static int promised(int depth) noexcept { return deep(depth) * 2; }

[[noreturn]] static void farewell() { std::printf("terminate handler\n"); std::fflush(stdout); std::_Exit(9); }

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    std::printf("start %s\n", how);
    std::fflush(stdout);
    if (!std::strcmp(how, "handler")) std::set_terminate(farewell);
    return !std::strcmp(how, "noexcept") ? promised(3) : deep(5);
}
