/* What the recorder needs of the processor and the kernel, without libc. */
#ifndef STROBE_RECORDER_SYSTEM_H
#define STROBE_RECORDER_SYSTEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))

enum { /* x86_64 system calls; prefixed so that the unit test can include the system's own header beside this one */
    CALL_WRITE = 1, CALL_READ = 0, CALL_OPEN = 2, CALL_CLOSE = 3, CALL_FSTAT = 5, CALL_MMAP = 9, CALL_MPROTECT = 10, CALL_MUNMAP = 11,
    CALL_SIGACTION = 13, CALL_SIGPROCMASK = 14, CALL_MADVISE = 28, CALL_GETPID = 39, CALL_GETRLIMIT = 97, CALL_SIGALTSTACK = 131,
    CALL_PRCTL = 157, CALL_GETTID = 186, CALL_CLOCK_GETTIME = 228, CALL_TGSIGQUEUEINFO = 297, CALL_VM_READ = 310, CALL_VM_WRITE = 311,
};

INLINE int64_t system_call(int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    int64_t result;
    register uint64_t r10 __asm__("r10") = d;
    register uint64_t r8 __asm__("r8") = e;
    register uint64_t r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
}

INLINE uint64_t cycles(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* The word at %fs:0, which the ABI makes the thread's own address (struct pthread in glibc). */
INLINE uint64_t thread_pointer(void)
{
    uint64_t pointer;
    __asm__ volatile("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

INLINE uint32_t thread_word32(uint64_t offset)
{
    uint32_t value;
    __asm__ volatile("movl %%fs:(%1), %0" : "=r"(value) : "r"(offset));
    return value;
}

INLINE uint64_t thread_word64(uint64_t offset)
{
    uint64_t value;
    __asm__ volatile("movq %%fs:(%1), %0" : "=r"(value) : "r"(offset));
    return value;
}

/* One instruction, no lock prefix: atomic against signal handlers of the same thread, which is all that thread-owned words need. */
INLINE uint64_t add_own64(uint64_t *word, uint64_t amount)
{
    __asm__ volatile("xaddq %0, %1" : "+r"(amount), "+m"(*word) : : "memory", "cc");
    return amount;
}

INLINE uint32_t add_own32(uint32_t *word, uint32_t amount)
{
    __asm__ volatile("xaddl %0, %1" : "+r"(amount), "+m"(*word) : : "memory", "cc");
    return amount;
}

INLINE void count_own32(uint32_t *word, uint32_t amount) { __asm__ volatile("addl %1, %0" : "+m"(*word) : "ri"(amount) : "memory", "cc"); }

INLINE bool swap_own32(uint32_t *word, uint32_t expected, uint32_t desired)
{
    bool same;
    __asm__ volatile("cmpxchgl %3, %1" : "=@ccz"(same), "+m"(*word), "+a"(expected) : "r"(desired) : "memory");
    return same;
}

INLINE bool swap_own64(uint64_t *word, uint64_t expected, uint64_t desired)
{
    bool same;
    __asm__ volatile("cmpxchgq %3, %1" : "=@ccz"(same), "+m"(*word), "+a"(expected) : "r"(desired) : "memory");
    return same;
}

INLINE void set_bits_own(uint32_t *word, uint32_t bits) { __asm__ volatile("orl %1, %0" : "+m"(*word) : "ri"(bits) : "memory", "cc"); }
INLINE void clear_bits_own(uint32_t *word, uint32_t bits) { __asm__ volatile("andl %1, %0" : "+m"(*word) : "ri"(~bits) : "memory", "cc"); }

/* Keeps the compiler from moving memory accesses across; the processor does not reorder stores. */
INLINE void in_order(void) { __asm__ volatile("" : : : "memory"); }

#define SHARED_ADD(place, amount) __atomic_fetch_add((place), (amount), __ATOMIC_ACQ_REL)
#define SHARED_LOAD(place) __atomic_load_n((place), __ATOMIC_ACQUIRE)
#define SHARED_STORE(place, value) __atomic_store_n((place), (value), __ATOMIC_RELEASE)

INLINE int64_t my_pid(void) { return system_call(CALL_GETPID, 0, 0, 0, 0, 0, 0); }
INLINE int64_t my_tid(void) { return system_call(CALL_GETTID, 0, 0, 0, 0, 0, 0); }

/* Blocks every signal and returns the mask there was, for signals_back(). */
INLINE uint64_t signals_off(void)
{
    uint64_t all = ~0ull, before = 0;
    system_call(CALL_SIGPROCMASK, 2, (uint64_t)&all, (uint64_t)&before, 8, 0, 0);
    return before;
}

INLINE void signals_back(uint64_t mask) { system_call(CALL_SIGPROCMASK, 2, (uint64_t)&mask, 0, 8, 0, 0); }

struct vector { uint64_t base, bytes; };

/* Copies from memory that may not be there; stops at the first page that is not. Returns the bytes copied. Never faults. */
#pragma GCC visibility push(hidden)
uint64_t read_safely(void *to, uint64_t from, uint64_t bytes);
bool write_safely(uint64_t to, const void *from, uint64_t bytes);
void *map_private(uint64_t bytes);
uint64_t process_id(void);
#pragma GCC visibility pop

/* Copies whole words first; no string instruction, so that the direction flag means nothing to the recorder. */
INLINE void copy_bytes(void *to, const void *from, uint64_t bytes)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    for (; bytes >= 8; bytes -= 8, out += 8, in += 8) {
        uint64_t word;
        __builtin_memcpy(&word, in, 8);
        __builtin_memcpy(out, &word, 8);
    }
    for (; bytes; bytes--)
        *out++ = *in++;
}
#endif
