cmake_minimum_required(VERSION 3.19)
project(shop C)
enable_testing()
add_executable(shop_test shop_test.c)
