#include <csignal>
#include <gtest/gtest.h>

TEST(Wait, Quick) {}

TEST(Wait, Dies) { raise(SIGSEGV); }
