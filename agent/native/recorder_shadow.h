/* The shadow stack: what each thread has to know to return from traced calls. */
#ifndef STROBE_RECORDER_SHADOW_H
#define STROBE_RECORDER_SHADOW_H
#include "recorder_state.h"

#pragma GCC visibility push(hidden)

/* One traced call whose return address is replaced by the exit stub. Found by `slot`, the address of that return address. */
struct shadow {
    uint64_t slot; /* low three bits: enum shadow_tag. 0 beyond the depth */
    uint64_t ret;  /* the real return address; the exit stub's for SHADOW_TAIL */
    uint64_t span; /* of internal hooks: the parent's, or what the hook keeps there */
    uint64_t hook; /* struct strobe_hook * or struct strobe_internal *, low 48 bits; SHADOW_* flags and 12 bits of extra above */
};

enum shadow_tag {
    TAG_LIVE = 0,
    TAG_BUSY = 1,   /* being pushed or popped by a frame of the recorder: not to be touched */
    TAG_DEAD = 2,   /* removed, but not on top */
    TAG_GHOST = 3,  /* reported as unwound because a call further out was seen, yet its slot still holds the exit stub */
    TAG_TAIL = 4,   /* entered by a jump: the same slot as the live entry before it */
    TAG_MANAGED = 5 /* recorded by strobe_record_enter: its return address is Frida's business */
};
#define TAG(slot) ((slot) & 7)
#define UNTAG(slot) ((slot) & ~7ull)

#define SHADOW_INTERNAL (1ull << 63)  /* `hook` is a struct strobe_internal */
#define SHADOW_INHERITED (1ull << 62) /* entered before fork, in the parent: returns without a record */
#define SHADOW_EXTRA_SHIFT 48
#define SHADOW_EXTRA_MAX 0xfffu
#define SHADOW_POINTER(hook) ((hook) & 0xffffffffffffull)
#define SHADOW_EXTRA(hook) ((uint32_t)((hook) >> SHADOW_EXTRA_SHIFT) & SHADOW_EXTRA_MAX)

_Static_assert(sizeof(struct shadow) == 32 && offsetof(struct shadow, ret) == 8, "shadow"); /* recorder_thunk.S */

#define FOREIGN_MAX 256u /* entries on other stacks looked at by one call */

/* True for the entry of a call that has not ended. */
INLINE bool is_call(uint64_t slot)
{
    uint32_t tag = TAG(slot);
    return slot && (tag == TAG_LIVE || tag == TAG_TAIL || tag == TAG_MANAGED);
}

/* recorder_shadow.c */
struct push { uint64_t parent; uint32_t tail; };
void shadow_settle(struct thread *thread, uint64_t slot, struct push *push);
void shadow_leave(struct thread *thread, uint64_t *slot, const uint64_t *gpr, const uint64_t *xmm, uint64_t ts);
void shadow_steal(struct thread *thread, uint64_t *slot, const uint64_t *gpr, const uint64_t *xmm, uint64_t ts);
void shadow_forget_span(struct thread *thread, uint64_t span);
uint64_t shadow_innermost(const struct thread *thread);

/* recorder_reap.c */
bool shadow_make_room(struct thread *thread, uint64_t slot);
bool shadow_alive(const struct thread *thread, uint32_t at);
void shadow_reap(struct thread *thread, uint64_t low, uint64_t high);
void shadow_reap_native(struct thread *thread, uint64_t slot, bool holds_stub);
void shadow_unwound(struct thread *thread, uint32_t at);
void shadow_remove(struct thread *thread, uint32_t at);
void shadow_mixed(struct thread *thread, uint32_t at);
bool slot_read(const struct thread *thread, uint64_t slot, uint64_t *value);
void slot_write(const struct thread *thread, uint64_t slot, uint64_t value);

/* Pushes an entry and puts the exit stub into the slot. It stays marked busy until the enter is published and shadow_done() is called;
 * beyond the depth all slots are 0, which counts as busy too. There must be room. Returns the entry. */
INLINE struct shadow *shadow_add(struct thread *thread, uint64_t *slot, uint64_t span, uint64_t hook, bool hijack)
{
    struct shadow *entry = &thread->shadow[add_own32(&thread->depth, 1)];
    entry->slot = (uint64_t)slot | TAG_BUSY;
    in_order();
    entry->ret = *slot;
    entry->span = span;
    entry->hook = hook;
    in_order();
    if (LIKELY(hijack))
        *slot = EXIT_STUB;
    in_order();
    return entry;
}

INLINE void shadow_done(struct thread *thread, struct shadow *entry, enum shadow_tag tag)
{
    in_order();
    entry->slot = UNTAG(entry->slot) | (uint64_t)tag;
    if (UNLIKELY(!is_native(thread, entry->slot)))
        shadow_mixed(thread, (uint32_t)(entry - thread->shadow));
}

/* shadow_add() for any stack; NULL when there is no room. */
INLINE struct shadow *shadow_push(struct thread *thread, uint64_t *slot, uint64_t span, uint64_t hook, enum shadow_tag tag)
{
    if (thread->depth + 8 >= thread->capacity && !shadow_make_room(thread, (uint64_t)slot)) /* 8: handlers may push between test and push */
        return NULL;
    return shadow_add(thread, slot, span, hook, tag == TAG_LIVE);
}

/* Takes the top entry off. Its slot is 0 first, so that it counts as busy until the depth is lowered; when a handler switched to another
 * stack meanwhile and pushed there, it stays as a dead one. */
INLINE void shadow_drop(struct thread *thread, uint32_t at)
{
    thread->shadow[at].slot = 0;
    in_order();
    if (UNLIKELY(!swap_own32(&thread->depth, at + 1, at))) {
        thread->shadow[at].slot = TAG_DEAD;
        thread->dead++;
        shadow_mixed(thread, at);
    }
}

/* recorder_unwind.c */
void unwind_restore(struct thread *thread);
void unwind_rehijack(struct thread *thread);
void unwind_over(struct thread *thread);
#define FOREIGN_SPAN (1ull << 20) /* further apart are no two frames of one stack that is not the thread's own */
uint64_t stack_end(uint64_t slot);
bool contexts_used(void);
void internal_exit(struct thread *thread, const struct shadow *entry, int64_t result, uint64_t ts);

#pragma GCC visibility pop
#endif
