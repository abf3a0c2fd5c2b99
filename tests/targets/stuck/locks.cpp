// Ways to wait for each other with the C++ standard library, by name.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::mutex accounts, audit;
static std::shared_mutex catalog;
static std::condition_variable changed;
static bool done;

static void up() { std::puts("up"); std::fflush(stdout); }
static void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
static void withdraw() { std::lock_guard first(accounts); pause_ms(50); std::lock_guard second(audit); }
static void report() { std::lock_guard first(audit); pause_ms(50); std::lock_guard second(accounts); }
static void edit() { std::unique_lock first(catalog); pause_ms(50); std::lock_guard second(audit); }
static void browse() { std::lock_guard first(audit); pause_ms(50); std::shared_lock second(catalog); }
static void await() { std::unique_lock lock(accounts); changed.wait(lock, [] { return done; }); }

int main(int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "";
    up();
    if (!std::strcmp(wanted, "mutex")) { std::thread one(withdraw), two(report); one.join(); two.join(); }
    else if (!std::strcmp(wanted, "shared")) { std::thread one(edit), two(browse); one.join(); two.join(); }
    else if (!std::strcmp(wanted, "future")) { std::promise<int> promise; return promise.get_future().get(); }
    else if (!std::strcmp(wanted, "wakeup")) { std::thread one(await); one.join(); }
    else if (!std::strcmp(wanted, "timer")) { std::unique_lock lock(accounts); changed.wait_for(lock, std::chrono::seconds(60), [] { return done; }); }
    else return 2;
}
