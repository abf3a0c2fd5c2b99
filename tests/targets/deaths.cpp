// Deaths by exceptions that nobody catches: `deaths HOW`.
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define KEEP __attribute__((noinline))

struct OrderError : std::runtime_error {
    int order;
    OrderError(int number, const std::string &text) : std::runtime_error(text), order(number) {}
};

struct Code { int number; };

KEEP static int settle(const std::string &how, const std::vector<int> &cents, int order) {
    int total = 0;
    for (int cent : cents) total += cent;
    if (how == "class") throw OrderError(order, "order " + std::to_string(order) + " is " + std::to_string(total) + " short");
    if (how == "standard") return cents.at(12);
    if (how == "text") throw "a text";
    if (how == "plain") throw Code{order};
    if (how == "terminate") std::terminate();
    return total;
}

KEEP static int promised(const std::string &how, int order) noexcept { return settle(how, {1, 2, 3}, order); }

KEEP static int again(const std::string &how, int order) {
    try {
        return settle(how, {1, 2, 3}, order);
    } catch (const std::exception &) {
        std::printf("caught\n");
        std::fflush(stdout);
        throw;
    }
}

[[noreturn]] static void farewell() { __builtin_trap(); }

int main(int count, char **arguments) {
    std::string way = count > 1 ? arguments[1] : "", how = way.substr(way.find(':') + 1);
    std::printf("dies of %s\n", way.c_str());
    std::fflush(stdout);
    if (way.starts_with("noexcept:")) return promised(how, 7);
    if (way.starts_with("again:")) return again(how, 7);
    if (way.starts_with("silent:")) std::set_terminate(farewell);
    if (way.starts_with("thread:")) {
        std::thread thread([&] { settle(how, {1, 2, 3}, 7); });
        thread.join();
    }
    return settle(how, {1, 2, 3}, 7) & 1;
}
