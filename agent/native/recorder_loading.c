/* Libraries that are loaded while the program runs. The dynamic linker calls _dl_debug_state, an empty function there for debuggers to break on: before
 * it maps something (RT_ADD), before it unmaps something (RT_DELETE), and when that is done (RT_CONSISTENT), which is before what was mapped runs its
 * constructors (and in glibc before 2.42 before it is relocated). A debugger stops the thread there; here the thread tells the session that there may be
 * new code, and waits until that has been looked at, if the session wants it to (`loading_pid`).
 *
 * It waits with the dynamic linker's lock, so it must not wait for ever: after WAIT_NS it goes on, and nobody waits any more until the session, should it
 * be alive, says so again. A forked child has another pid and never waits. No frame of the recorder is open meanwhile: signal handlers run as ever.
 */
#include "recorder_state.h"

#define WAIT_NS 2000000000ll
enum { CALL_FUTEX = 202, FUTEX_WAIT = 0, FUTEX_WAKE = 1 };
enum { RT_CONSISTENT, RT_ADD, RT_DELETE };
enum { PT_DYNAMIC = 2, PT_PHDR = 6, DT_DEBUG = 21 };

/* <link.h>: struct r_debug, and what version 2 (glibc 2.35) adds: one for each namespace of dlmopen(3). */
struct debug { int32_t version, gap; uint64_t map, breakpoint; int32_t state, gap2; uint64_t base; const struct debug *next; };
struct header { uint32_t type, flags; uint64_t offset, address, physical, bytes, memory, align; };

static const struct debug *debug;
static bool deleting; /* what is done next is unmapping; the dynamic linker's lock is held */

/* `headers` and `count`: AT_PHDR and AT_PHNUM. A program that the dynamic linker was asked to run has none that tell. */
void loading_learn(uint64_t headers, uint64_t count)
{
    const struct header *header = (const struct header *)headers;
    uint64_t bias = 0, dynamic = 0;
    bool placed = false;
    for (uint64_t i = 0; i < count; i++) {
        if (header[i].type == PT_PHDR) {
            bias = headers - header[i].address;
            placed = true;
        }
        if (header[i].type == PT_DYNAMIC)
            dynamic = header[i].address;
    }
    if (!placed || !dynamic)
        return;
    for (const uint64_t *entry = (const uint64_t *)(bias + dynamic); entry[0]; entry += 2)
        if (entry[0] == DT_DEBUG)
            debug = (const struct debug *)entry[1];
}

/* What the dynamic linker is about. Where namespaces of dlmopen do not tell (before glibc 2.35), each call may be the end of anything. */
static int32_t state_now(void)
{
    if (!debug)
        return RT_CONSISTENT;
    int32_t state = debug->state;
    for (const struct debug *one = debug->version >= 2 ? debug->next : NULL; one && state == RT_CONSISTENT; one = one->next)
        state = one->state;
    return state;
}

static bool tells_all(void) { return debug && debug->version >= 2; }

static void wait_seen(uint32_t ticket, uint32_t me)
{
    int64_t until = (int64_t)clock_slowly() + WAIT_NS;
    for (;;) {
        uint32_t seen = SHARED_LOAD(&pool->loads_seen), armed = me;
        if ((int32_t)(seen - ticket) >= 0 || SHARED_LOAD(&pool->loading_pid) != me)
            return;
        int64_t left = until - (int64_t)clock_slowly();
        if (left <= 0) {
            __atomic_compare_exchange_n(&pool->loading_pid, &armed, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
            return;
        }
        int64_t time[2] = {left / 1000000000, left % 1000000000};
        system_call(CALL_FUTEX, (uint64_t)&pool->loads_seen, FUTEX_WAIT, seen, (uint64_t)time, 0, 0);
    }
}

/* At each call of _dl_debug_state. */
void loading_seen(void)
{
    uint32_t armed = SHARED_LOAD(&pool->loading_pid);
    if (LIKELY(!armed) || armed != process_id())
        return;
    int32_t state = state_now();
    if (state != RT_CONSISTENT) {
        deleting = state == RT_DELETE;
        return;
    }
    bool gone = deleting || !tells_all();
    bool come = !deleting || !tells_all();
    deleting = false;
    if (gone)
        SHARED_ADD(&pool->unloads, 1); /* no hurry: before anything is written there is another look */
    if (!come)
        return;
    uint32_t ticket = SHARED_ADD(&pool->loads, 1) + 1;
    system_call(CALL_FUTEX, (uint64_t)&pool->loads, FUTEX_WAKE, 1, 0, 0, 0);
    wait_seen(ticket, armed);
}
