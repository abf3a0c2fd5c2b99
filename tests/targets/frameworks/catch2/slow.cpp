#include <catch2/catch.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

using namespace std::chrono_literals;

TEST_CASE("sleeps") { std::this_thread::sleep_for(2500ms); }

TEST_CASE("waits for its worker") {
    std::mutex lock;
    std::condition_variable done;
    bool ready = false;
    std::thread worker([&] {
        std::this_thread::sleep_for(2500ms);
        std::lock_guard<std::mutex> hold(lock);
        ready = true;
        done.notify_one();
    });
    {
        std::unique_lock<std::mutex> hold(lock);
        done.wait(hold, [&] { return ready; });
    }
    worker.join();
}

TEST_CASE("computes") {
    const auto end = std::chrono::steady_clock::now() + 4s;
    std::uint64_t state = 1;
    while (std::chrono::steady_clock::now() < end)
        for (int i = 0; i < 1000000; i++)
            state = state * 6364136223846793005u + 1442695040888963407u;
    CHECK(state != 0);
}
