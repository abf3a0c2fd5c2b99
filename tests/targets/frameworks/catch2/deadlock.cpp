#include <catch2/catch.hpp>

#include <chrono>
#include <mutex>
#include <thread>

static std::mutex accounts, journal;

// The sleep stands for work: both threads hold their first lock before either wants its second.
static void transfer(std::mutex &first, std::mutex &second) {
    std::lock_guard<std::mutex> one(first);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::lock_guard<std::mutex> other(second);
}

TEST_CASE("quick") { CHECK(1 + 1 == 2); }

TEST_CASE("transfers both ways") {
    std::thread away([] { transfer(accounts, journal); });
    transfer(journal, accounts);
    away.join();
}
