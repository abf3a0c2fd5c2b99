/* Where a process waits for the session: before it becomes another program (exec), and when it has become one and the recorder is in it again.
 *
 * A gate is 64 bytes of the pool's first page. Who waits there does so for WAIT_NS at most, and only while the session's process lives; then it goes on
 * as it would have without Strobe, and nobody waits any more until the session says so again (`follower`). No state of a thread is used: the caller may be
 * a vforked child, which shares its parent's memory, and no frame of the recorder is open meanwhile: signal handlers run as ever. */
#include "recorder_state.h"

#define WAIT_NS 2000000000ll
#define HELD_NS 5000000000ll /* longer, for code that is being changed is not to be run */
#define LOOK_NS 20000000ll   /* so often the session is looked at, whether it lives */
enum { CALL_ACCESS = 21, CALL_KILL = 62, CALL_FUTEX = 202, CALL_ACCESS_AT = 269, FUTEX_WAIT = 0, FUTEX_WAKE = 1, EXECUTABLE = 1, NO_PROCESS = -3, AT_CWD = -100 };

INLINE struct lane_gate *gates(void) { return (struct lane_gate *)((uint8_t *)pool + LANE_GATES_OFFSET); }

static bool swapped(uint32_t *word, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void tell_session(void)
{
    SHARED_ADD(&pool->gate_asks, 1);
    system_call(CALL_FUTEX, (uint64_t)&pool->gate_asks, FUTEX_WAKE, 1, 0, 0, 0);
}

static struct lane_gate *gate_take(void)
{
    for (uint32_t i = 0; i < LANE_GATE_COUNT; i++)
        if (swapped(&gates()[i].state, LANE_GATE_STATE_FREE, LANE_GATE_STATE_TAKEN))
            return &gates()[i];
    SHARED_ADD(&pool->gates_full, 1);
    return NULL;
}

/* False also where process ids mean something else (pid_namespaces(7)): there nobody is followed. */
static bool lives(uint32_t session) { return system_call(CALL_KILL, session, 0, 0, 0, 0, 0) != NO_PROCESS; }

/* Until the session lets it go, or cannot any more. */
static void gate_wait(struct lane_gate *gate, uint32_t session)
{
    int64_t began = (int64_t)clock_slowly();
    for (;;) {
        uint32_t state = SHARED_LOAD(&gate->state);
        if (state == LANE_GATE_STATE_GO)
            break;
        if (state == LANE_GATE_STATE_ORDER) {
            gate->answer = strobe_remote(gate->order, gate->first, gate->second);
            SHARED_STORE(&gate->state, LANE_GATE_STATE_DONE);
            system_call(CALL_FUTEX, (uint64_t)&gate->state, FUTEX_WAKE, 1, 0, 0, 0); /* a thread of the session waits for just this */
            continue;
        }
        int64_t waited = (int64_t)clock_slowly() - began;
        bool late = waited > (state == LANE_GATE_STATE_ASKS ? WAIT_NS : HELD_NS), left = SHARED_LOAD(&pool->follower) != session;
        if (((late || left) && state == LANE_GATE_STATE_ASKS) || late || !lives(session)) {
            if (late && swapped(&pool->follower, session, 0))
                SHARED_ADD(&pool->gates_left, 1);
            if (!swapped(&gate->state, state, LANE_GATE_STATE_FREE))
                continue; /* it was answered just now */
            return;
        }
        int64_t time[2] = {0, LOOK_NS};
        system_call(CALL_FUTEX, (uint64_t)&gate->state, FUTEX_WAIT, state, (uint64_t)time, 0, 0);
    }
    SHARED_STORE(&gate->state, LANE_GATE_STATE_FREE);
}

static void gate_ask(uint32_t reason, uint64_t path, int32_t folder, uint64_t remote, uint32_t session)
{
    struct lane_gate *gate = gate_take();
    if (!gate)
        return;
    gate->pid = (uint32_t)my_pid();
    gate->tid = (uint32_t)my_tid();
    gate->reason = reason;
    gate->path = path;
    gate->folder = folder;
    gate->first = remote;
    gate->ticket = SHARED_ADD(&pool->gate_asks, 1);
    SHARED_STORE(&gate->state, LANE_GATE_STATE_ASKS);
    tell_session();
    gate_wait(gate, session);
}

/* At each call of execve, execveat or fexecve. One that will fail is nobody's business: execvp tries folder after folder. */
void exec_asks(const struct saved *saved, uint32_t what)
{
    uint32_t session = SHARED_LOAD(&pool->follower);
    if (!session)
        return;
    int32_t folder = what == INTERNAL_EXEC ? AT_CWD : (int32_t)saved->rdi;
    uint64_t path = what == INTERNAL_EXEC ? saved->rdi : what == INTERNAL_EXEC_AT ? saved->rsi : 0;
    if (what == INTERNAL_EXEC_AT && (saved->r8 & 0x1000 /* AT_EMPTY_PATH */)) {
        uint8_t first = 0;
        if (read_safely(&first, path, 1) == 1 && !first)
            path = 0;
    }
    if ((path && system_call(CALL_ACCESS_AT, (uint64_t)(int64_t)folder, path, EXECUTABLE, 0, 0, 0)) || !lives(session))
        return;
    gate_ask(LANE_GATE_REASON_EXEC, path, folder, 0, session);
}

EXPORT void strobe_child(const char *pool_path)
{
    if (strobe_init(pool_path))
        return;
    uint32_t session = SHARED_LOAD(&pool->follower);
    if (session)
        gate_ask(LANE_GATE_REASON_LOADED, (uint64_t)strobe_internals, (int32_t)strobe_internals_count, (uint64_t)strobe_remote, session);
}
