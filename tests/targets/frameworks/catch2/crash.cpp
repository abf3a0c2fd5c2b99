#include <catch2/catch.hpp>
#include <csignal>

TEST_CASE("quick") {}

TEST_CASE("dies") { raise(SIGSEGV); }
