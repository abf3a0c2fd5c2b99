/* Running capture plans (recorder_plan.c) at each call. */
#include "recorder_faults.h"
#include "recorder_lane.h"
#include "recorder_maps.h"
#include "recorder_walk.h"

/* Readable memory that stays for the target's life: the executable's own segments. Strings in it need no system call. */
static struct { uint64_t start, end; } lasting[8];
static uint32_t lasting_count;

void maps_learn(uint64_t in_executable)
{
    struct maps maps;
    struct mapping mapping;
    for (uint64_t inode = 0, pass = 0; pass < 2; pass++) {
        if (!maps_open(&maps))
            return;
        while (maps_next(&maps, &mapping)) {
            if (in_executable >= mapping.start && in_executable < mapping.end)
                inode = mapping.inode;
            if (!pass || !inode || mapping.inode != inode || !mapping.readable)
                continue;
            if (lasting_count && lasting[lasting_count - 1].end == mapping.start)
                lasting[lasting_count - 1].end = mapping.end;
            else if (lasting_count < 8) {
                lasting[lasting_count].start = mapping.start;
                lasting[lasting_count++].end = mapping.end;
            }
        }
        maps_close(&maps);
    }
}

/* Bytes from `address` on that can be read as they are: the executable's memory, and the used part of the thread's own stack. */
uint64_t lasting_bytes(const struct thread *thread, uint64_t address)
{
    if (thread && is_native(thread, address) && address >= (uint64_t)__builtin_frame_address(0) && is_native(thread, (uint64_t)__builtin_frame_address(0)))
        return thread->native_high - address;
    for (uint32_t i = 0; i < lasting_count; i++)
        if (address - lasting[i].start < lasting[i].end - lasting[i].start)
            return lasting[i].end - address;
    return 0;
}

/* Copies a C string of at most `limit` bytes without its 0. Sets how many; returns a StringState. */
static uint32_t string_read(struct source *source, uint64_t from, uint8_t *to, uint32_t limit, uint32_t *length)
{
    struct text text = read_text(source, to, from, limit, 1);
    *length = (uint32_t)text.bytes - (text.why == TEXT_END);
    if (text.why != TEXT_LIMIT)
        return text.why == TEXT_END ? LANE_STRING_STATE_OK : LANE_STRING_STATE_UNREADABLE;
    uint8_t next = 1; /* exactly `limit` bytes long is not truncated */
    return read_bytes(source, &next, from + limit, 1) == 1 && !next ? LANE_STRING_STATE_OK : LANE_STRING_STATE_TRUNCATED;
}

/* One word: what is stored in pieces and loaded whole makes the processor wait. */
INLINE void descriptor_put(uint8_t *place, uint32_t offset, uint32_t length, uint32_t state)
{
    uint64_t word = offset | length << 16 | (uint64_t)state << 32;
    __builtin_memcpy(place, &word, 8);
}

static uint64_t string_put(struct source *source, uint64_t from, struct capture *to, uint32_t used, uint32_t limit, uint8_t *place)
{
    uint32_t length = 0, state = LANE_STRING_STATE_NULL;
    if (from)
        state = string_read(source, from, to->payload + used, limit > to->room - used ? to->room - used : limit, &length);
    descriptor_put(place, used, length, state);
    if (state == LANE_STRING_STATE_TRUNCATED)
        to->flags |= LANE_ENTRY_FLAG_TRUNCATED;
    return length;
}

/* Copies `bytes` of the caller's stack. Wrong plans may reach past its end, so only a page that is surely there is read directly. */
static void stack_put(const struct thread *thread, const uint64_t *stack, int64_t offset, uint8_t *to, uint32_t bytes)
{
    uint64_t from = (uint64_t)stack + (uint64_t)offset;
    bool near = (from & ~4095ull) == ((uint64_t)stack & ~4095ull) && ((from + bytes - 1) & ~4095ull) == ((uint64_t)stack & ~4095ull);
    bool own = is_native(thread, from) && is_native(thread, from + bytes - 1) && from >= (uint64_t)stack;
    if (near || own)
        copy_bytes(to, (const void *)from, bytes);
    else
        for (uint64_t got = read_safely(to, from, bytes); got < bytes; got++)
            to[got] = 0;
}

static uint64_t stack_word(const struct thread *thread, const uint64_t *stack, int64_t offset)
{
    uint64_t word = 0;
    stack_put(thread, stack, offset, (uint8_t *)&word, 8);
    return word;
}

/* Whether processor and kernel have ymm registers: what a plan says of them may be wrong. */
static bool ymm_there(void)
{
    static uint8_t known; /* 0: not asked yet */
    uint8_t answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (UNLIKELY(!answer)) {
        uint32_t eax = 1, ebx, ecx = 0, edx;
        __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
        answer = 1;
        if ((ecx >> 27 & 3) == 3) { /* OSXSAVE, AVX */
            __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
            answer = (eax & 6) == 6 ? 2 : 1; /* the kernel keeps both halves */
        }
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == 2;
}

static void upper_half_put(const struct values *values, uint32_t number, uint8_t *to)
{
#define STORE(n) case n: __asm__ volatile("vextractf128 $1, %%ymm" #n ", %0" : "=m"(*(uint8_t (*)[16])to)); return;
    if (values->live && ymm_there())
        switch (number) {
            STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7)
        }
#undef STORE
    __builtin_memset(to, 0, 8);
    __builtin_memset(to + 8, 0, 8);
}

/* 16 bytes of a vector register. No code of the recorder touches those but the thunks, so they are the function's still. */
static void vector_put(const struct values *values, uint32_t number, uint8_t *to)
{
#define STORE(n) case n: __asm__ volatile("movups %%xmm" #n ", %0" : "=m"(*(uint8_t (*)[16])to)); return;
    if (values->live)
        switch (number) {
            STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7)
        }
#undef STORE
    uint64_t halves[2] = {values->xmm[number], 0};
    copy_bytes(to, halves, sizeof halves);
}

/* 10 bytes of st(0) or st(1), which keep their values; nothing of one that is empty. */
static void x87_put(const struct values *values, uint32_t number, uint8_t *to)
{
    uint16_t status;
    __builtin_memset(to, 0, 8);
    __builtin_memset(to + 8, 0, 8);
    if (!values->live)
        return;
    if (number)
        __asm__ volatile("fincstp");
    __asm__ volatile("fxam\n fnstsw %0" : "=a"(status));
    if ((status & 0x4500) != 0x4100) /* C3 and C0 without C2: empty */
        __asm__ volatile("fstpt %0\n fldt %0" : "=m"(*(uint8_t (*)[10])to));
    if (number)
        __asm__ volatile("fdecstp");
}

/* The target writes faster than the store takes in: the call itself is kept. */
static NOINLINE void image_leave_out(uint8_t *place)
{
    SHARED_ADD(&pool->images_left_out, 1);
    descriptor_put(place, 0, 0, LANE_STRING_STATE_OK);
}

/* What the WALK steps copy, and where it is. */
static uint32_t image_put(const struct strobe_hook *hook, const struct strobe_plan_op *steps, const struct strobe_plan_op *image, struct capture *to, uint32_t used)
{
    uint32_t begin = (used + 7) & ~7u, end = to->room & ~7u;
    if (UNLIKELY(pool->chunks_free < (int32_t)pool->image_floor)) {
        image_leave_out(to->payload + image->dst);
        return used;
    }
    if (begin > end)
        begin = end = used;
    if (end - begin > (uint32_t)image->imm)
        end = begin + ((uint32_t)image->imm & ~7u);
    for (uint32_t at = used; at < begin; at++)
        to->payload[at] = 0;
    walk_begin(to->walker, hook, to->payload, begin, end);
    for (; steps->op != LANE_PLAN_OP_END; steps++)
        if (steps->op == LANE_PLAN_OP_WALK)
            walk_root(to->walker, (uint32_t)steps->imm, steps->dst);
    walk_run(to->walker, &to->flags);
    uint32_t length = to->walker->used - begin;
    descriptor_put(to->payload + image->dst, begin, length, LANE_STRING_STATE_OK);
    return length ? to->walker->used : used;
}

/* Runs the steps of one list. Returns the bytes of payload used. The image is made last, whatever the order of the steps. */
uint32_t capture(struct thread *thread, const struct strobe_hook *hook, bool at_exit, const struct values *values, struct capture *to)
{
    static const uint8_t register_of[8] = {0, 1, 2, 3, 4, 5, 6, 2};
    const struct strobe_plan_op *first = at_exit ? hook->exit : hook->enter, *image = NULL;
    bool moves = !at_exit && values->saved;
    uint32_t used = at_exit ? hook->exit_fixed : hook->fixed;
    struct source *source = &to->walker->source;
    if (at_exit ? hook->exit_reads : hook->reads)
        *source = (struct source){thread, &to->walker->faults, faults_caught(thread, &to->walker->faults) ? to->walker->faults.bad : ~0ull};
    for (uint32_t i = 0; i < used; i += 8)
        __builtin_memset(to->payload + i, 0, 8);
    if (LIKELY(moves)) {
        moves_run(hook, values->saved, to->payload);
        first += hook->moves;
    }
    for (const struct strobe_plan_op *step = first; step->op != LANE_PLAN_OP_END; step++) {
        uint8_t *place = to->payload + step->dst;
        uint64_t word = values->gpr[register_of[step->arg & 7]];
        switch (step->op) {
        case LANE_PLAN_OP_GPR:
            copy_bytes(place, &word, step->size);
            break;
        case LANE_PLAN_OP_XMM:
            copy_bytes(place, &values->xmm[step->arg & 7], step->size);
            break;
        case LANE_PLAN_OP_STACK:
            stack_put(thread, values->stack, 8 + (int64_t)step->imm, place, step->size);
            break;
        case LANE_PLAN_OP_LEA:
            word = (uint64_t)values->stack + 8 + (uint64_t)(int64_t)step->imm;
            __builtin_memcpy(place, &word, 8);
            break;
        case LANE_PLAN_OP_VECTOR:
            vector_put(values, step->arg, place);
            if (step->size == 32)
                upper_half_put(values, step->arg, place + 16);
            break;
        case LANE_PLAN_OP_X87:
            x87_put(values, step->arg, place);
            break;
        case LANE_PLAN_OP_CSTR:
            used += (uint32_t)string_put(source, word, to, used, (uint32_t)step->imm, place);
            break;
        case LANE_PLAN_OP_STACK_CSTR:
            word = stack_word(thread, values->stack, 8 + (step->imm >> 12));
            used += (uint32_t)string_put(source, word, to, used, (uint32_t)step->imm & 4095, place);
            break;
        case LANE_PLAN_OP_IMAGE:
            image = step;
            break;
        }
    }
    return image ? image_put(hook, first, image, to, used) : used;
}
