/* Loads the recorder into this very program and patches functions of it as the agent and the session do in a target, without them.
 *
 *     PROGRAM RECORDER POOL SCENARIO [ARGUMENT]
 */
#ifndef NATIVE_SELFTEST_PATCHING_H
#define NATIVE_SELFTEST_PATCHING_H
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A function to trace: its own copy, with room for a jump at its entry, but open to the compiler's knowledge of its registers. */
#define TRACED __attribute__((noinline, noclone, used, patchable_function_entry(8)))

enum { END = 0, GPR = 1, XMM = 2, STACK = 3, CSTR = 4, STACK_CSTR = 5, WORD_XMM = 6 };
struct plan_op { uint8_t op, arg, size, dst; int32_t imm; };
struct internal { const char *symbol; const void *entry; uint32_t in_every_module, reserved; };

static struct {
    int (*init)(const char *);
    uint64_t (*slab)(uint64_t, uint64_t);
    uint64_t (*hook_new)(uint32_t, uint64_t, const void *, uint32_t);
    int (*plan_needs_xmm)(const void *, uint32_t);
    int (*arm)(void);
    uint64_t (*record_enter)(uint64_t, const uint64_t *, const uint64_t *);
    void (*record_exit)(uint64_t, uint64_t, const uint64_t *);
    void *enter_gpr, *enter_xmm;
    const struct internal *internals;
    uint32_t internals_count;
} recorder;

static struct { int memory; uint64_t slab, used; } patching;
#define SLAB_BYTES (1u << 20)

__attribute__((noreturn)) static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    _exit(99);
}

static void poke(uint64_t at, const void *bytes, size_t count)
{
    if (pwrite(patching.memory, bytes, count, (off_t)at) != (ssize_t)count)
        fail("cannot write to 0x%llx", (unsigned long long)at);
}

static void *recorder_symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        fail("the recorder has no %s", name);
    return found;
}

static void load_recorder(const char *path, const char *pool)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail("%s", dlerror());
    recorder.init = (int (*)(const char *))recorder_symbol(library, "strobe_init");
    recorder.slab = (uint64_t(*)(uint64_t, uint64_t))recorder_symbol(library, "strobe_slab");
    recorder.hook_new = (uint64_t(*)(uint32_t, uint64_t, const void *, uint32_t))recorder_symbol(library, "strobe_hook_new");
    recorder.plan_needs_xmm = (int (*)(const void *, uint32_t))recorder_symbol(library, "strobe_plan_needs_xmm");
    recorder.arm = (int (*)(void))recorder_symbol(library, "strobe_arm");
    recorder.record_enter = (uint64_t(*)(uint64_t, const uint64_t *, const uint64_t *))recorder_symbol(library, "strobe_record_enter");
    recorder.record_exit = (void (*)(uint64_t, uint64_t, const uint64_t *))recorder_symbol(library, "strobe_record_exit");
    recorder.enter_gpr = recorder_symbol(library, "strobe_enter_gpr");
    recorder.enter_xmm = recorder_symbol(library, "strobe_enter_xmm");
    recorder.internals = (const struct internal *)recorder_symbol(library, "strobe_internals");
    recorder.internals_count = *(const uint32_t *)recorder_symbol(library, "strobe_internals_count");
    patching.memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    int failed = recorder.init(pool);
    if (failed || patching.memory < 0)
        fail("strobe_init: %d", failed);
}

/* Bytes of the operands that a ModRM byte at `at` asks for, itself included; *displacement: where a rip-relative one lies. */
static unsigned operands(const uint8_t *at, unsigned before, unsigned *displacement)
{
    unsigned mode = *at >> 6, base = *at & 7, count = 1;
    if (mode == 3)
        return 1;
    if (mode == 0 && base == 5) {
        *displacement = before + 1;
        return 5;
    }
    if (base == 4) {
        count++;
        if (mode == 0 && (at[1] & 7) == 5)
            count += 4;
    }
    return count + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
}

/* Length of an instruction as compilers put them at the start of functions; 0 for what cannot be moved or is not known here. */
static unsigned instruction(const uint8_t *code, unsigned *displacement)
{
    static const uint8_t plain[] = {0x01, 0x03, 0x29, 0x2b, 0x31, 0x33, 0x39, 0x3b, 0x63, 0x85, 0x88, 0x89, 0x8a, 0x8b, 0x8d};
    unsigned at = 0, wide;
    *displacement = 0;
    while (code[at] == 0x66 || code[at] == 0xf2 || code[at] == 0xf3)
        at++;
    wide = (code[at] & 0xf8) == 0x48;
    if ((code[at] & 0xf0) == 0x40)
        at++;
    uint8_t op = code[at++];
    if ((op & 0xf0) == 0x50 || op == 0x90)
        return at;
    if ((op & 0xf8) == 0xb8)
        return at + (wide ? 8 : 4);
    if (memchr(plain, op, sizeof plain))
        return at + operands(code + at, at, displacement);
    if (op == 0xff && ((code[at] >> 3 & 7) < 2 || (code[at] >> 3 & 7) == 6)) /* inc, dec, push; not the calls and jumps */
        return at + operands(code + at, at, displacement);
    if (op == 0x83 || op == 0x80 || op == 0xc6)
        return at + operands(code + at, at, displacement) + 1;
    if (op == 0x81 || op == 0xc7)
        return at + operands(code + at, at, displacement) + 4;
    if (op == 0x0f && (code[at] == 0x1f || code[at] == 0xb6 || code[at] == 0xb7 || code[at] == 0xbe || code[at] == 0xbf))
        return at + 1 + operands(code + at + 1, at + 1, displacement);
    return 0;
}

static uint64_t slab_room(uint64_t near_address, unsigned bytes)
{
    static struct { uint64_t at, used; } slabs[8];
    for (unsigned i = 0; i < 8; i++) {
        if (!slabs[i].at) {
            slabs[i].at = recorder.slab(near_address, SLAB_BYTES);
            if (!slabs[i].at)
                fail("no memory near 0x%llx", (unsigned long long)near_address);
        }
        int64_t away = (int64_t)(slabs[i].at - near_address);
        if (away < 0x70000000 && away > -0x70000000 && slabs[i].used + bytes <= SLAB_BYTES) {
            slabs[i].used += (bytes + 63) & ~63u;
            return slabs[i].at + slabs[i].used - ((bytes + 63) & ~63u);
        }
    }
    fail("too many slabs");
}

static unsigned put_relative(uint8_t *code, unsigned at, uint8_t op, uint8_t operand, uint64_t thunk, uint64_t target)
{
    unsigned start = at;
    code[at++] = op;
    if (operand)
        code[at++] = operand;
    int32_t distance = (int32_t)(target - (thunk + at + 4));
    memcpy(code + at, &distance, 4);
    return at + 4 - start;
}

/* Writes the thunk that recorder.h describes and the jump to it. Answers where the thunk keeps the hook. */
static uint64_t patch_with(uint64_t function, uint64_t hook, const void *enter)
{
    const uint8_t *from = (const uint8_t *)function;
    uint8_t code[128] = {0};
    unsigned at = 0, moved = 0, displacement;
    if (!memcmp(from, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 stays */
        from += 4;
    uint64_t thunk = slab_room(function, sizeof code), words = thunk + sizeof code - 40;
    at += put_relative(code, at, 0xff, 0x35, thunk, words);
    at += put_relative(code, at, 0xff, 0x35, thunk, words + 8);
    at += put_relative(code, at, 0xff, 0x25, thunk, words + 16);
    uint64_t values[5] = {hook, thunk + at, (uint64_t)enter, 0, 0};
    while (moved < 5) {
        if (from[moved] == 0xe8) { /* a call: pushes the address after the original one, and jumps */
            int32_t distance;
            memcpy(&distance, from + moved + 1, 4);
            moved += 5;
            values[3] = (uint64_t)from + moved;
            values[4] = values[3] + (uint64_t)(int64_t)distance;
            at += put_relative(code, at, 0xff, 0x35, thunk, words + 24);
            at += put_relative(code, at, 0xff, 0x25, thunk, words + 32);
            break;
        }
        if (from[moved] == 0xc3 && memchr("\x0f\x2e\x66\x90\xcc", from[moved + 1], 5)) { /* an empty function, and what fills the room behind it */
            code[at++] = 0xc3;
            break;
        }
        unsigned length = instruction(from + moved, &displacement);
        if (!length)
            fail("cannot move the instruction at %p", (const void *)(from + moved));
        memcpy(code + at, from + moved, length);
        if (displacement) {
            int32_t distance;
            memcpy(&distance, code + at + displacement, 4);
            distance += (int32_t)((uint64_t)from + moved - (thunk + at));
            memcpy(code + at + displacement, &distance, 4);
        }
        moved += length;
        at += length;
    }
    at += put_relative(code, at, 0xe9, 0, thunk, (uint64_t)from + moved);
    memcpy(code + sizeof code - 40, values, sizeof values);
    poke(thunk, code, sizeof code);
    uint8_t jump[5];
    put_relative(jump, 0, 0xe9, 0, (uint64_t)from, thunk);
    poke((uint64_t)from, jump, sizeof jump);
    return words;
}

/* Traces `function` as hook `id`. `steps` end with the second END. */
static __attribute__((unused)) uint64_t trace(void *function, uint32_t id, const struct plan_op *steps)
{
    uint32_t count = 0;
    for (uint32_t ends = 0; ends < 2; count++)
        ends += steps[count].op == END;
    uint64_t hook = recorder.hook_new(id, (uint64_t)function, steps, count * 8);
    if (!hook)
        fail("hook %u is refused", id);
    patch_with((uint64_t)function, hook, recorder.plan_needs_xmm(steps, count * 8) ? recorder.enter_xmm : recorder.enter_gpr);
    return hook;
}

static const struct plan_op NO_PLAN[] = {{END, 0, 0, 0, 0}, {END, 0, 0, 0, 0}};
static const struct plan_op ONE_INT[] = {{GPR, 0, 8, 0, 0}, {END, 0, 0, 0, 0}, {END, 0, 0, 0, 0}};
static const struct plan_op TWO_INTS[] = {{GPR, 0, 8, 0, 0}, {GPR, 1, 8, 8, 0}, {END, 0, 0, 0, 0}, {END, 0, 0, 0, 0}};

/* The recorder's own hooks, in the first module that defines each. Returns how many are in. */
static __attribute__((unused)) int trace_internals(void)
{
    int done = 0;
    for (uint32_t i = 0; i < recorder.internals_count; i++) {
        const struct internal *internal = &recorder.internals[i];
        void *function = dlsym(RTLD_DEFAULT, internal->symbol);
        if (!function)
            continue;
        patch_with((uint64_t)function, (uint64_t)internal, internal->entry);
        done++;
    }
    return done;
}
#endif
