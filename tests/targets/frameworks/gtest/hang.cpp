#include <gtest/gtest.h>
#include <unistd.h>

TEST(Wait, Quick) {}

TEST(Wait, NeverEnds) {
    for (;;)
        pause();
}
