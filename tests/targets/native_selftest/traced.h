/* What every scenario of calls.c has: its argument, the pool, three traced calls. */
#pragma once
#include "../../../agent/native/layout.gen.h"
#include "patching.h"
#include <sys/mman.h>

static long argument;
static const char *pool_path;

static uint8_t *pool_memory(void)
{
    int file = open(pool_path, O_RDWR | O_CLOEXEC);
    void *memory = mmap(NULL, LANE_CHUNKS_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        fail("cannot map %s", pool_path);
    close(file);
    return memory;
}

TRACED long leaf(long a, long b) { __asm__ volatile("" : : : "memory"); return a * 3 + b; }
TRACED long middle(long a) { return leaf(a, 1) + leaf(a, 2); }
TRACED long outer_call(long a) { return middle(a) + middle(a + 1) + leaf(a, 9); }
