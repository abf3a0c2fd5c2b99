/* How the recorder gets into a program that an exec has started. The session puts this code, and a struct entry before it, into memory of the new
 * program while it is stopped at exec, and has the kernel's auxiliary vector name it as the program's entry point (AT_ENTRY). The dynamic linker goes there
 * when it has loaded everything; the code loads the recorder by dlopen(3), has it wait for its hooks (strobe_child), and goes to the program's own entry
 * point. From the stop at exec on nothing depends on the session: should it die, the program starts without hooks.
 *
 * This is copied, so it uses nothing that is not in its own section: no data, no other function. */
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECTION __attribute__((section("entry_code"), used))
#define PART static inline __attribute__((always_inline))

struct entry { /* actors/session/children/image.py makes it */
    uint64_t program;   /* the program's own entry point */
    uint64_t place;     /* of AT_ENTRY's value in the auxiliary vector: put back, for getauxval(3) */
    uint64_t headers, header_count; /* AT_PHDR, AT_PHNUM */
    uint64_t texts[6];  /* addresses of: "/libc.so", "dlopen", "__libc_dlopen_mode", path of the recorder, "strobe_child", path of the pool */
};
struct link { uint64_t bias; const char *name; const Elf64_Dyn *dynamic; const struct link *next; };
struct debug { int32_t version, gap; const struct link *map; };

/* strobe_entry is the first thing in the section, and ends with the address of the struct: 0 here. */
__asm__(".pushsection entry_code, \"ax\", @progbits\n"
        ".type strobe_entry, @function\n"
        "strobe_entry:\n"
        "    pushq %rdx\n" /* what the dynamic linker wants done at exit; nothing else has a meaning here (psABI 3.4.1) */
        "    pushq %rbx\n"
        "    movq %rsp, %rbx\n"
        "    andq $-16, %rsp\n"
        "    cld\n"
        "    movq .Lentry(%rip), %rdi\n"
        "    call entry_load\n"
        "    movq %rbx, %rsp\n"
        "    popq %rbx\n"
        "    popq %rdx\n"
        "    movq .Lentry(%rip), %rax\n"
        "    jmp *(%rax)\n"
        "    .p2align 3\n"
        ".Lentry: .quad 0\n"
        ".size strobe_entry, . - strobe_entry\n"
        ".popsection\n");

PART bool begins(const char *text, const char *with)
{
    while (*with && *text == *with)
        text++, with++;
    return !*with;
}

PART bool holds(const char *text, const char *part)
{
    bool found = false;
    for (; *text && !found; text++)
        found = begins(text, part);
    return found;
}

PART bool same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* A function that a loaded library exports, by its DT_GNU_HASH. */
PART uint64_t exported(const struct link *library, const char *name)
{
    const Elf64_Sym *symbols = 0;
    const char *names = 0;
    const uint32_t *table = 0;
    for (const Elf64_Dyn *entry = library->dynamic; entry->d_tag; entry++) {
        uint64_t at = entry->d_un.d_ptr;
        at += at < library->bias ? library->bias : 0; /* the dynamic linker relocates these in place, where it may write */
        if (entry->d_tag == DT_SYMTAB)
            symbols = (const Elf64_Sym *)at;
        if (entry->d_tag == DT_STRTAB)
            names = (const char *)at;
        if (entry->d_tag == DT_GNU_HASH)
            table = (const uint32_t *)at;
    }
    if (!symbols || !names || !table || !table[0])
        return 0;
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (uint8_t)*c;
    const uint32_t *buckets = (const uint32_t *)((const uint64_t *)(table + 4) + table[2]), *chain = buckets + table[0];
    for (uint32_t i = buckets[hash % table[0]]; i >= table[1]; i++) {
        uint32_t other = chain[i - table[1]];
        if ((other | 1) == (hash | 1) && symbols[i].st_shndx && same(names + symbols[i].st_name, name))
            return library->bias + symbols[i].st_value;
        if (other & 1)
            break;
    }
    return 0;
}

PART const struct link *loaded(const struct entry *entry)
{
    const Elf64_Phdr *header = (const Elf64_Phdr *)entry->headers;
    uint64_t bias = 0, dynamic = 0;
    bool placed = false;
    for (uint64_t i = 0; i < entry->header_count; i++) {
        if (header[i].p_type == PT_PHDR) {
            bias = entry->headers - header[i].p_vaddr;
            placed = true;
        }
        if (header[i].p_type == PT_DYNAMIC)
            dynamic = header[i].p_vaddr;
    }
    if (placed && dynamic)
        for (const Elf64_Dyn *one = (const Elf64_Dyn *)(bias + dynamic); one->d_tag; one++)
            if (one->d_tag == DT_DEBUG && one->d_un.d_ptr)
                return ((const struct debug *)one->d_un.d_ptr)->map;
    return 0;
}

SECTION static void entry_load(const struct entry *entry)
{
    const char *const *texts = (const char *const *)entry->texts;
    *(uint64_t *)entry->place = entry->program;
    const struct link *first = loaded(entry), *libc = first, *one;
    while (libc && !holds(libc->name, texts[0]))
        libc = libc->next;
    if (!libc)
        return;
    uint64_t open = exported(libc, texts[1]);
    if (!open)
        open = exported(libc, texts[2]); /* before glibc 2.34 */
    if (!open || !((void *(*)(const char *, int))open)(texts[3], 2 /* RTLD_NOW */))
        return;
    for (one = first; one && !same(one->name, texts[3]); one = one->next)
        continue;
    uint64_t child = one ? exported(one, texts[4]) : 0;
    if (child)
        ((void (*)(const char *))child)(texts[5]);
}
