/* What a C++ exception or a Rust panic says of itself, for the UNWIND records of the calls it leaves.
 *
 * Payload of such a record: a STRING descriptor at 0, the type as its std::type_info names it (mangled: "St13runtime_error"; "panic" of Rust), and one
 * at 8, the message, with state NULL where none is known. Texts follow. A record without payload: the call ended otherwise (longjmp, cancellation).
 *
 * No code of the target is called, so what() is known by layout alone: of std::logic_error, std::runtime_error and what derives from them (a pointer
 * to the text behind the vptr, in libstdc++ and in libc++), of std::string and of const char *; a panic's payload is a &str or a String. */
#include "recorder_lane.h"
#include "recorder_shadow.h"
#include "recorder_walk.h"

#define TYPE_MAX 256u
#define MESSAGE_MAX 1024u
#define FIXED (2 * sizeof(struct lane_string))
#define BASES_MAX 8u /* of a class, and one above the other */
#define DEPTH_MAX 2u /* classes with several bases above each other */
_Static_assert(FIXED + 2 * TYPE_MAX + MESSAGE_MAX <= LANE_CRASH_EXCEPTION_BYTES, "room for what exception_put writes");

/* Itanium C++ ABI: exception_class is the first word of _Unwind_Exception, which lies at the end of __cxa_exception; the object comes after. */
#define CLASS_GNU 0x474e5543432b2b00ull       /* "GNUCC++\0", libstdc++ */
#define CLASS_GNU_DEPENDENT 0x474e5543432b2b01ull /* std::rethrow_exception */
#define CLASS_LLVM 0x434c4e47432b2b00ull      /* "CLNGC++\0", libc++abi */
#define CLASS_LLVM_DEPENDENT 0x434c4e47432b2b01ull
#define CLASS_RUST 0x4d4f5a0052555354ull      /* "MOZ\0RUST", the first character in the highest byte, or as it stands in memory */
#define CLASS_RUST_TOO 0x54535552005a4f4dull
#define HEADER_BYTES 32u /* of _Unwind_Exception */
#define TYPE_BEFORE 80u  /* exceptionType lies so far before it, in both libraries; of a dependent one libc++abi's has the object 8 bytes before that */
#define BEFORE_OBJECT HEADER_BYTES /* a pointer to what was thrown comes so far after that header */
#define PANIC_DATA 40u   /* panic_unwind's Exception: header, canary, Box<dyn Any> */
#define PANIC_VTABLE 48u

struct thrown { uint64_t type, object; };

static bool word_at(struct source *source, uint64_t address, uint64_t *word) { return address > 4096 && read_bytes(source, word, address, 8) == 8; }

/* The type_info and the object of a C++ exception. */
static bool thrown_of(struct source *source, uint64_t kind, uint64_t exception, struct thrown *thrown)
{
    thrown->object = exception + HEADER_BYTES;
    if (kind == CLASS_GNU_DEPENDENT) /* begins with the address of the primary object, whose header is right before it */
        return word_at(source, exception - TYPE_BEFORE, &thrown->object) && word_at(source, thrown->object - HEADER_BYTES - TYPE_BEFORE, &thrown->type);
    if (kind == CLASS_LLVM_DEPENDENT && !word_at(source, exception - TYPE_BEFORE - 8, &thrown->object))
        return false;
    return word_at(source, exception - TYPE_BEFORE, &thrown->type);
}

/* The mangled name of a type: std::type_info is {vptr, name}. Its length without the 0; 0: there is none. */
static uint32_t name_of(struct source *source, uint64_t type, uint8_t *to, uint32_t room)
{
    uint64_t name;
    if (!word_at(source, type + 8, &name))
        return 0;
    struct text text = read_text(source, to, name, room, 1);
    if (text.why != TEXT_END || text.bytes < 2)
        return 0;
    uint32_t star = to[0] == '*'; /* libstdc++: not to be compared by address */
    for (uint32_t i = 0; star && i < text.bytes - 1; i++)
        to[i] = to[i + 1];
    return (uint32_t)text.bytes - 1 - star;
}

static bool is_name(const uint8_t *name, uint32_t length, const char *other)
{
    uint32_t i = 0;
    while (i < length && other[i] && name[i] == (uint8_t)other[i])
        i++;
    return i == length && !other[i];
}

/* What an object of just this type points to as its text. `bytes`: how long; ~0: up to its 0. `scratch` has TYPE_MAX bytes. 1: found; 0: look at its
 * bases; -1: there are none. */
static int32_t text_of_type(struct source *source, const struct thrown *thrown, uint8_t *scratch, uint64_t *text, uint64_t *bytes)
{
    uint32_t length = name_of(source, thrown->type, scratch, TYPE_MAX);
    *bytes = ~0ull;
    if (is_name(scratch, length, "St11logic_error") || is_name(scratch, length, "St13runtime_error"))
        return word_at(source, thrown->object + 8, text) ? 1 : -1;
    if (is_name(scratch, length, "PKc") || is_name(scratch, length, "Pc"))
        return word_at(source, thrown->object, text) ? 1 : -1;
    if (is_name(scratch, length, "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"))
        return word_at(source, thrown->object, text) && word_at(source, thrown->object + 8, bytes) ? 1 : -1;
    return length ? 0 : -1;
}

/* The same for a type or one of its bases. __si_class_type_info has its one base behind the name; __vmi_class_type_info flags, how many bases, and of each
 * its type and offset << 8 | flags. Where a type has no bases, what lies there leads to no name that is looked for. */
static bool text_by_layout(struct source *source, struct thrown thrown, uint32_t depth, uint8_t *scratch, uint64_t *text, uint64_t *bytes)
{
    for (uint32_t level = 0; level < BASES_MAX; level++) {
        uint64_t word, flags;
        int32_t found = text_of_type(source, &thrown, scratch, text, bytes);
        if (found || !word_at(source, thrown.type + 16, &word))
            return found > 0;
        uint64_t count = word >> 32;
        if (!count || count > BASES_MAX || (uint32_t)word > 3) {
            thrown.type = word;
            continue;
        }
        for (uint64_t i = 0; depth && i < count; i++) {
            struct thrown base;
            uint64_t at = thrown.type + 24 + 16 * i;
            if (!word_at(source, at, &base.type) || !word_at(source, at + 8, &flags))
                return false;
            base.object = thrown.object + (uint64_t)((int64_t)flags >> 8);
            if (!(flags & 1) /* virtual */ && text_by_layout(source, base, depth - 1, scratch, text, bytes))
                return true;
        }
        return false;
    }
    return false;
}

/* A panic's payload: what the vtable says is as large as a &str, or as a String, whose address is the largest of its words. */
static bool text_of_panic(struct source *source, uint64_t exception, uint64_t *text, uint64_t *bytes)
{
    uint64_t data, vtable, size, words[3] = {0};
    if (!word_at(source, exception + PANIC_DATA, &data) || !word_at(source, exception + PANIC_VTABLE, &vtable) || !word_at(source, vtable + 8, &size))
        return false;
    if ((size != 16 && size != 24) || read_bytes(source, words, data, size) < size)
        return false;
    uint64_t low = words[0] < words[1] ? words[0] : words[1], high = words[0] < words[1] ? words[1] : words[0];
    if (size == 24) {
        low = words[2] < low ? words[2] : low; /* the length; the capacity is between */
        high = words[2] > high ? words[2] : high;
    }
    *text = high;
    *bytes = low;
    return low < 1u << 20 && high > 1u << 20;
}

/* Printable, as far as bytes can tell: the payload may be something else of that size. */
static bool is_text(const uint8_t *text, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        if (text[i] < 32 && text[i] != '\n' && text[i] != '\t' && text[i] != '\r' && text[i] != 27)
            return false;
    return true;
}

INLINE void string_at(uint8_t *place, uint32_t offset, uint32_t length, uint32_t state)
{
    uint64_t word = offset | length << 16 | (uint64_t)state << 32;
    __builtin_memcpy(place, &word, 8);
}

static uint32_t message_put(struct source *source, uint64_t text, uint64_t bytes, uint8_t *payload, uint32_t used, uint8_t *flags)
{
    uint32_t state = LANE_STRING_STATE_OK, length;
    if (bytes == ~0ull) {
        struct text found = read_text(source, payload + used, text, MESSAGE_MAX, 1);
        length = (uint32_t)found.bytes - (found.why == TEXT_END);
        state = found.why == TEXT_END ? LANE_STRING_STATE_OK : found.why == TEXT_LIMIT ? LANE_STRING_STATE_TRUNCATED : LANE_STRING_STATE_UNREADABLE;
    } else {
        uint64_t take = bytes < MESSAGE_MAX ? bytes : MESSAGE_MAX;
        length = (uint32_t)read_bytes(source, payload + used, text, take);
        state = length < take ? LANE_STRING_STATE_UNREADABLE : take < bytes ? LANE_STRING_STATE_TRUNCATED : LANE_STRING_STATE_OK;
    }
    if (!is_text(payload + used, length))
        return used;
    if (state == LANE_STRING_STATE_TRUNCATED)
        *flags |= LANE_ENTRY_FLAG_TRUNCATED;
    string_at(payload + 8, used, length, state);
    return used + length;
}

/* The payload for the exception; 0: it says nothing. There is room for FIXED + TYPE_MAX + MESSAGE_MAX bytes, and TYPE_MAX more to work in. */
static uint32_t exception_put(struct source *source, uint64_t exception, uint8_t *payload, uint8_t *flags)
{
    uint64_t kind, text = 0, bytes = 0;
    struct thrown thrown;
    uint32_t length = 0;
    bool told = false;
    if (!word_at(source, exception, &kind))
        return 0;
    if (kind == CLASS_RUST || kind == CLASS_RUST_TOO) {
        copy_bytes(payload + FIXED, "panic", length = 5);
        told = text_of_panic(source, exception, &text, &bytes);
    } else if ((kind & ~1ull) == CLASS_GNU || (kind & ~1ull) == CLASS_LLVM) {
        if (thrown_of(source, kind, exception, &thrown))
            length = name_of(source, thrown.type, payload + FIXED, TYPE_MAX);
        told = length && text_by_layout(source, thrown, DEPTH_MAX, payload + FIXED + length + MESSAGE_MAX, &text, &bytes);
    }
    if (!length)
        return 0;
    string_at(payload, FIXED, length, LANE_STRING_STATE_OK);
    string_at(payload + 8, 0, 0, LANE_STRING_STATE_NULL);
    return told ? message_put(source, text, bytes, payload, FIXED + length, flags) : FIXED + length;
}

/* For a crash: the first exception that words of the stack point to, at any of the places where the runtimes keep pointers into one. It may be an old
 * one; whether one is on its way, the stack's frames tell. Answers the payload's bytes, 0: there is none. `payload` has LANE_CRASH_EXCEPTION_BYTES. */
uint32_t exception_on_stack(const uint64_t *words, uint32_t count, uint8_t *payload)
{
    static const uint32_t places[] = {BEFORE_OBJECT, 0, BEFORE_OBJECT + TYPE_BEFORE, BEFORE_OBJECT + TYPE_BEFORE + 16 /* libstdc++'s reference count */};
    struct faults faults = {0};
    struct source source = {NULL, &faults, ~0ull};
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word = words[i], kind;
        uint8_t around[BEFORE_OBJECT + TYPE_BEFORE + 24];
        if ((word & 7) || word < 1u << 16 || word >> 47)
            continue;
        uint64_t got = read_bytes(&source, around, word - BEFORE_OBJECT, sizeof around);
        for (uint32_t k = 0; k < sizeof places / sizeof places[0] && places[k] + 8 <= got; k++) {
            uint8_t flags = 0;
            __builtin_memcpy(&kind, around + places[k], 8);
            if ((kind & ~1ull) != CLASS_GNU && (kind & ~1ull) != CLASS_LLVM)
                continue;
            uint32_t bytes = exception_put(&source, word - BEFORE_OBJECT + places[k], payload, &flags);
            if (bytes)
                return bytes;
        }
    }
    return 0;
}

/* An UNWIND record, with what the exception says where there is one (0: none). */
void record_unwound(struct thread *thread, const struct strobe_hook *hook, uint64_t span, uint64_t exception)
{
    struct draft draft = {.flags = 0};
    struct walker *walker = exception ? scratch_take(thread) : NULL;
    if (walker) {
        uint8_t *scratch = (uint8_t *)walker - SCRATCH_PAYLOAD;
        struct source source = {thread, &walker->faults, faults_caught(thread, &walker->faults) ? walker->faults.bad : ~0ull};
        uint32_t bytes = exception_put(&source, exception, scratch, &draft.flags);
        draft.slots = 1 + (bytes + LANE_SLOT_BYTES - 1) / LANE_SLOT_BYTES;
        bool fits = bytes && lane_reserve(thread, draft.slots, LANE_KIND_UNWIND, &draft.place);
        if (fits) {
            copy_bytes((uint8_t *)draft.place.entry + LANE_SLOT_BYTES, scratch, bytes);
            entry_head(draft.place.entry, now(), span, hook->id, LANE_KIND_UNWIND, draft.flags, draft.slots, 0);
            lane_publish(&draft.place, draft.slots);
        }
        scratch_give(thread, walker);
        if (fits)
            return;
    }
    record_plain(thread, hook->id, hook->shared, LANE_KIND_UNWIND, span, 0, now());
}
