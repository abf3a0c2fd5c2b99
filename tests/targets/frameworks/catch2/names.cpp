#include <catch2/catch.hpp>

TEST_CASE("says \"hi\" and it's <fine> &amp;") {}

TEST_CASE("ünï ☃ 雪") {}

TEST_CASE("a [b] (c) {d} $1 ^*+?.| x, *") {}

TEST_CASE("*comma, semi; colon: and/slash") {}

TEST_CASE("~not this") {}
