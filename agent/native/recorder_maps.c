/* Reading /proc/self/maps, and memory that may not be there. */
#include "recorder_maps.h"
#include "recorder_state.h"

/* Without a system call, but in a forked child that has not started a thread here. A vforked one reads its parent's memory: its own. */
uint64_t process_id(void) { return LIKELY(tokens && tokens[FORK_MARK]) ? tokens[FORK_MARK] : (uint64_t)my_pid(); }

bool maps_open(struct maps *maps)
{
    maps->at = maps->have = 0;
    maps->file = system_call(CALL_OPEN, (uint64_t) "/proc/self/maps", 02000000 /* O_CLOEXEC */, 0, 0, 0, 0);
    return maps->file >= 0;
}

void maps_close(struct maps *maps) { system_call(CALL_CLOSE, (uint64_t)maps->file, 0, 0, 0, 0, 0); }

static int maps_char(struct maps *maps)
{
    if (maps->at == maps->have) {
        int64_t got = system_call(CALL_READ, (uint64_t)maps->file, (uint64_t)maps->text, sizeof maps->text, 0, 0, 0);
        if (got <= 0)
            return -1;
        maps->have = (uint32_t)got;
        maps->at = 0;
    }
    return (uint8_t)maps->text[maps->at++];
}

/* Reads a number in `base` up to the first character that is not of it, which it eats. */
static uint64_t maps_number(struct maps *maps, uint32_t base)
{
    for (uint64_t value = 0;;) {
        int c = maps_char(maps);
        uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)c - '0' : c >= 'a' && c <= 'f' ? (uint32_t)c - 'a' + 10 : 99;
        if (digit >= base)
            return value;
        value = value * base + digit;
    }
}

bool maps_next(struct maps *maps, struct mapping *mapping)
{
    static const char stack[] = "[stack]";
    mapping->start = maps_number(maps, 16);
    mapping->end = maps_number(maps, 16);
    if (!mapping->end)
        return false;
    mapping->readable = maps_char(maps) == 'r';
    mapping->writable = maps_char(maps) == 'w';
    mapping->executable = maps_char(maps) == 'x';
    for (uint32_t spaces = 0; spaces < 3;) { /* the fourth permission, offset and device */
        int c = maps_char(maps);
        if (c < 0)
            return false;
        spaces += c == ' ';
    }
    mapping->inode = maps_number(maps, 10);
    int c = maps_char(maps);
    while (c == ' ')
        c = maps_char(maps);
    uint32_t same = 0, length = 0;
    for (; c >= 0 && c != '\n'; c = maps_char(maps), length++)
        same += length < sizeof stack - 1 && c == stack[length];
    mapping->is_stack = length == sizeof stack - 1 && same == length;
    return true;
}

uint64_t read_safely(void *to, uint64_t from, uint64_t bytes)
{
    uint64_t done = 0, pid = process_id();
    while (done < bytes) {
        uint64_t step = 4096 - ((from + done) & 4095);
        if (step > bytes - done)
            step = bytes - done;
        struct vector local = {(uint64_t)to + done, step}, remote = {from + done, step};
        int64_t got = system_call(CALL_VM_READ, pid, (uint64_t)&local, 1, (uint64_t)&remote, 1, 0);
        if (got <= 0)
            break;
        done += (uint64_t)got;
    }
    return done;
}

bool write_safely(uint64_t to, const void *from, uint64_t bytes)
{
    struct vector local = {(uint64_t)from, bytes}, remote = {to, bytes};
    return system_call(CALL_VM_WRITE, process_id(), (uint64_t)&local, 1, (uint64_t)&remote, 1, 0) == (int64_t)bytes;
}

void *map_private(uint64_t bytes)
{
    int64_t memory = system_call(CALL_MMAP, 0, bytes, 3, 0x4022 /* PRIVATE ANONYMOUS NORESERVE */, ~0ull, 0);
    return memory < 0 && memory > -4096 ? NULL : (void *)memory;
}

/* What the compiler may call for by itself. */
void *memcpy(void *to, const void *from, size_t bytes)
{
    copy_bytes(to, from, bytes);
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    for (volatile uint8_t *out = to; bytes; bytes--)
        *out++ = (uint8_t)value;
    return to;
}
