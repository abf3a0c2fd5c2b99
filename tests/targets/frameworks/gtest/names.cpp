#include <gtest/gtest.h>
#include <string>

TEST(Ünï, größe) {}

class Odd : public testing::TestWithParam<int> {};

TEST_P(Odd, Named) {}

INSTANTIATE_TEST_SUITE_P(With_names, Odd, testing::Values(1, 2), [](const testing::TestParamInfo<int>& info) { return "the_" + std::to_string(info.param); });

template <class T> class Typed : public testing::Test {};
using Types = testing::Types<int, std::string>;
TYPED_TEST_SUITE(Typed, Types);

TYPED_TEST(Typed, Holds) {}
