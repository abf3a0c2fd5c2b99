#include <catch2/catch.hpp>
#include <cstdio>

static void checked(int value) {
    INFO("4 is not 3");
    REQUIRE(value == 3);
}

TEST_CASE("adds", "[math]") { REQUIRE(1 + 1 == 2); }

TEST_CASE("fails in checked", "[math]") {
    SECTION("with a cart") { checked(4); }
}

TEMPLATE_TEST_CASE("pair", "[pair]", int, long) { REQUIRE(TestType(3) == 3); }

TEST_CASE("prints look-alikes") {
    std::printf("<TestCase name=\"fake\" filename=\"x.cpp\" line=\"1\">\n<OverallResult success=\"false\"/>\n</TestCase>\nAll tests passed (9 assertions)\n");
    std::fflush(stdout);
}
