/* Mapping the pool; what is found out once: the clock, where glibc keeps a thread's id, which memory lasts. Memory near functions. */
#include "recorder_lane.h"
#include "recorder_maps.h"

struct lane_pool *pool;
struct lane_hook *hook_table;
uint8_t *chunk_memory;
uint32_t clock_is_cycles;
uint64_t tid_offset;

static int64_t (*vdso_clock)(int clock, int64_t *time);

uint64_t clock_slowly(void)
{
    int64_t time[2] = {0};
    if (!vdso_clock || vdso_clock(1 /* CLOCK_MONOTONIC */, time))
        system_call(CALL_CLOCK_GETTIME, 1, (uint64_t)time, 0, 0, 0, 0);
    return (uint64_t)time[0] * 1000000000ull + (uint64_t)time[1];
}

struct elf_segment { uint32_t type, flags; uint64_t offset, address, physical, bytes, memory, align; };
struct elf_symbol { uint32_t name; uint8_t info, other; uint16_t section; uint64_t value, bytes; };

static bool same_text(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* __vdso_clock_gettime in the image the kernel mapped at `base`. Its symbols are counted by the DT_HASH table. */
static void find_vdso_clock(uint64_t base)
{
    const uint8_t *image = (const uint8_t *)base;
    const struct elf_segment *segment = (const void *)(image + *(const uint64_t *)(image + 32));
    uint64_t bias = 0, dynamic = 0, tables[3] = {0};
    for (uint32_t i = 0; i < *(const uint16_t *)(image + 56); i++) {
        if (segment[i].type == 1 && !bias)
            bias = base + segment[i].offset - segment[i].address;
        if (segment[i].type == 2)
            dynamic = base + segment[i].offset;
    }
    for (const uint64_t *entry = (const uint64_t *)dynamic; entry && entry[0]; entry += 2)
        if (entry[0] >= 4 && entry[0] <= 6) /* DT_HASH, DT_STRTAB, DT_SYMTAB */
            tables[entry[0] - 4] = bias + entry[1];
    if (!tables[0] || !tables[1] || !tables[2])
        return;
    const struct elf_symbol *symbol = (const struct elf_symbol *)tables[2];
    for (uint32_t i = 0; i < ((const uint32_t *)tables[0])[1]; i++)
        if (symbol[i].section && same_text((const char *)tables[1] + symbol[i].name, "__vdso_clock_gettime"))
            vdso_clock = (int64_t(*)(int, int64_t *))(bias + symbol[i].value);
}

/* The kernel's auxiliary vector: the vDSO, and an address in the executable. */
static void read_auxiliary(void)
{
    uint64_t pairs[64] = {0};
    int64_t file = system_call(CALL_OPEN, (uint64_t) "/proc/self/auxv", 02000000, 0, 0, 0, 0);
    if (file < 0)
        return;
    system_call(CALL_READ, (uint64_t)file, (uint64_t)pairs, sizeof pairs - 16, 0, 0, 0);
    system_call(CALL_CLOSE, (uint64_t)file, 0, 0, 0, 0, 0);
    uint64_t headers = 0, count = 0;
    for (uint32_t i = 0; pairs[i]; i += 2) {
        if (pairs[i] == 33 /* AT_SYSINFO_EHDR */ && pairs[i + 1])
            find_vdso_clock(pairs[i + 1]);
        if (pairs[i] == 3 /* AT_PHDR */)
            maps_learn(headers = pairs[i + 1]);
        if (pairs[i] == 5 /* AT_PHNUM */)
            count = pairs[i + 1];
    }
    loading_learn(headers, count);
}

/* struct pthread holds the thread's id; where differs between versions (at 720 in glibc 2.11 to 2.41), so it is looked for. */
static void find_tid(void)
{
    uint32_t tid = (uint32_t)my_tid();
    if (thread_word32(720) == tid)
        tid_offset = 720;
    for (uint64_t offset = 256; !tid_offset && offset < 1280; offset += 4)
        if (thread_word32(offset) == tid)
            tid_offset = offset;
}

static int make_tokens(void)
{
    if (tokens)
        return 0;
    uint32_t *memory = map_private((FORK_MARK + 1024u) * sizeof *tokens);
    if (!memory)
        return -12;
    system_call(CALL_MADVISE, (uint64_t)memory, (FORK_MARK + 1024u) * sizeof *tokens, 18 /* WIPEONFORK, Linux 4.14 */, 0, 0, 0);
    memory[FORK_MARK] = (uint32_t)my_pid();
    tokens = memory;
    return 0;
}

/* Files of the same path are the same pool: a visit of the agent finds the recorder already set up. */
static char pool_path_known[4096];
static uint64_t mapped_bytes;

uint64_t pool_mapped(void) { return mapped_bytes; }

/* What depends on the pool's file, once it is mapped. */
void pool_took_over(const char *path)
{
    system_call(CALL_MADVISE, (uint64_t)pool, pool->pool_bytes, 16 /* DONTDUMP: cores stay what they would be */, 0, 0, 0);
    clock_is_cycles = pool->clock == LANE_CLOCK_TSC;
    uint32_t length = 0;
    for (; length < sizeof pool_path_known - 1 && path[length]; length++)
        pool_path_known[length] = path[length];
    pool_path_known[length] = 0;
}

EXPORT int strobe_init(const char *pool_path)
{
    if (pool && same_text(pool_path, pool_path_known))
        return 0;
    if (pool)
        return -17; /* EEXIST: a target has one pool for its life */
    int64_t file = system_call(CALL_OPEN, (uint64_t)pool_path, 02000002 /* O_RDWR | O_CLOEXEC */, 0, 0, 0, 0);
    if (file < 0)
        return (int)file;
    struct lane_pool *found = NULL;
    uint64_t status[18] = {0};
    system_call(CALL_FSTAT, (uint64_t)file, (uint64_t)status, 0, 0, 0, 0);
    int64_t memory = status[6] < LANE_CHUNKS_OFFSET ? -22 : system_call(CALL_MMAP, 0, status[6], 3, 1 /* MAP_SHARED */, (uint64_t)file, 0);
    system_call(CALL_CLOSE, (uint64_t)file, 0, 0, 0, 0, 0);
    if (memory < 0 && memory > -4096)
        return (int)memory;
    found = (struct lane_pool *)memory;
    if (found->magic != LANE_POOL_MAGIC || found->version != LANE_LAYOUT_VERSION || found->pool_bytes > status[6] || make_tokens()) {
        system_call(CALL_MUNMAP, (uint64_t)memory, status[6], 0, 0, 0, 0);
        return -22;
    }
    hook_table = (struct lane_hook *)((uint8_t *)found + found->hooks_offset);
    chunk_memory = (uint8_t *)found + found->chunks_offset;
    mapped_bytes = (status[6] + 4095) & ~4095ull;
    find_tid();
    read_auxiliary();
    SHARED_STORE(&pool, found);
    pool_took_over(pool_path);
    return 0;
}
