/* Loaded by LD_PRELOAD into a program that knows nothing of it: patches the functions of the executable that SELFTEST_FUNCTIONS names
 * (symbols, comma-separated, `*` at the end for any rest; hook ids from 1 in the order found), then the recorder's internal hooks, then
 * arms the crash handlers. SELFTEST_RECORDER and SELFTEST_POOL say where these are. */
#define _GNU_SOURCE
#include "patching.h"
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

static uint64_t load_bias(void)
{
    const struct link_map *map = (const struct link_map *)dlopen(NULL, RTLD_NOW);
    return map->l_addr;
}

static int wanted(const char *name, const char *patterns)
{
    while (*patterns) {
        size_t length = strcspn(patterns, ",");
        int open_end = length && patterns[length - 1] == '*';
        if (open_end ? !strncmp(name, patterns, length - 1) : strlen(name) == length && !strncmp(name, patterns, length))
            return 1;
        patterns += length + (patterns[length] == ',');
    }
    return 0;
}

static void trace_symbols(const char *patterns)
{
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status))
        fail("cannot read the executable");
    const uint8_t *image = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + header->e_shoff);
    uint32_t id = 1;
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(image + sections[i].sh_offset);
        const char *names = (const char *)image + sections[sections[i].sh_link].sh_offset;
        for (uint64_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++)
            if (ELF64_ST_TYPE(symbols[k].st_info) == STT_FUNC && symbols[k].st_size >= 8 && wanted(names + symbols[k].st_name, patterns))
                trace((void *)(load_bias() + symbols[k].st_value), id++, TWO_INTS);
    }
    munmap((void *)image, (size_t)status.st_size);
    close(file);
    if (id == 1)
        fail("no function of the executable is called %s", patterns);
}

__attribute__((constructor)) static void start(void)
{
    const char *library = getenv("SELFTEST_RECORDER"), *pool = getenv("SELFTEST_POOL"), *functions = getenv("SELFTEST_FUNCTIONS");
    if (!library || !pool || !functions || getenv("SELFTEST_PLAIN"))
        return; /* a child of the program: the environment is cleared below */
    void *frames[1];
    backtrace(frames, 1); /* loads libgcc_s */
    load_recorder(library, pool);
    trace_symbols(functions);
    trace_internals();
    unsetenv("LD_PRELOAD");
    unsetenv("SELFTEST_RECORDER");
    if (recorder.arm())
        fail("strobe_arm");
}
