/* The recorder's contract with the agent (agent/frida) and the session's ptrace code.
 *
 * The recorder is a freestanding C11 library that Frida's agent loads into the target once. It stays mapped for the target's
 * life; the agent leaves right after each change. No function here is called per traced call: those are the asm entry points.
 *
 * A thunk, laid out by the agent in memory from strobe_slab(), 16-byte aligned:
 *     push  [rip+hook]        ; struct strobe_hook * from strobe_hook_new(), or the address of strobe_internals[i]
 *     push  [rip+body]        ; address of `body` below
 *     jmp   [rip+enter]       ; strobe_enter_gpr, strobe_enter_xmm or strobe_internals[i].entry
 *   body:
 *     <the function's first instructions, relocated>
 *     jmp   function + n
 *     8-byte words: hook, body, enter
 * The function's first 5 bytes become `jmp thunk`. A relocated `call` is written as push of the original return address and jmp,
 * so no return address ever points into a slab.
 *
 * Why not `call [rip+enter]`: the entry point itself *calls* the body, so that the return address it leaves in the caller's slot is
 * its own exit stub. Calls and returns stay paired in the processor's return predictor and in a CET shadow stack: an exit costs no
 * mispredicted return.
 *
 * Never give an exit (HOOK_FLAG WANT_EXIT) to a function that returns twice or saves its return address for later: setjmp, _setjmp,
 * sigsetjmp, __sigsetjmp, vfork, __vfork, getcontext; nor to one that looks at who called it: dlopen, dlmopen, dlsym, dlvsym,
 * dlclose, __tls_get_addr; nor to an exported _Unwind_* function or longjmp.
 */
#ifndef STROBE_RECORDER_H
#define STROBE_RECORDER_H
#include <stdint.h>
#include "layout.gen.h"

/* Maps the pool and finds what the running libc keeps where. 0, or -errno. Idempotent for the same path. */
int strobe_init(const char *pool_path);

/* Reserves `bytes` of read+execute memory within ±1.9 GiB of `near_address`; 0 when there is no room. Contents are written through
 * /proc/pid/mem by the session. Never unmapped. */
uint64_t strobe_slab(uint64_t near_address, uint64_t bytes);

/* Registers a hook; returns the address of its struct strobe_hook (lives as long as the target), or 0. `plan` is an array of
 * 8-byte strobe_plan_op: the enter list, END, the exit list, END, then the walk section. Needs no stop. */
uint64_t strobe_hook_new(uint32_t hook_id, uint64_t function, const void *plan, uint32_t plan_bytes);

/* 1 when the plan reads xmm registers, so that the thunk must call strobe_enter_xmm. */
int strobe_plan_needs_xmm(const void *plan, uint32_t plan_bytes);

/* What the recorder itself needs to see. For each: the symbol to patch (in every module that defines it, local symbols included, or
 * in libc alone) and the entry point its thunk jumps to. The thunk's hook word is the address of the element itself. A symbol that
 * no module defines is skipped. Internal hooks have no id in the hook table. Elements are 24 bytes. */
struct strobe_internal { const char *symbol; const void *entry; uint32_t in_every_module; uint32_t reserved; };
extern const struct strobe_internal strobe_internals[];
extern const uint32_t strobe_internals_count;

/* Installs the crash handlers and an alternate signal stack for the calling thread. Those of SIGSEGV and SIGBUS also catch the recorder's
 * own faults where it reads what is not there (recorder_faults.c); handlers that the program has for these two are called through them.
 * Called by the session on a stopped thread (remote call through ptrace), after the thunks are written and the agent has left, because
 * Frida's own exception handler would otherwise be put back over it. Uses raw system calls only; needs 512 bytes of stack. 0, or -errno.
 * Idempotent. */
int strobe_arm(void);

/* Called by the session on a held thread while no Frida is here: STROBE_REMOTE_DESK (bytes) answers an address that the session may write to;
 * STROBE_REMOTE_REPLAN (items, count) registers hooks, as strobe_hook_new does, for functions that have thunks already, and answers how many;
 * STROBE_REMOTE_SLAB (near address, bytes) is strobe_slab; STROBE_REMOTE_REGISTER (items, count) is REPLAN for functions that have no thunks yet:
 * each item's `entry` is the one its thunk is to jump to; STROBE_REMOTE_REBIND (path, whether to give up what threads have under way) puts another
 * session's pool into the place of the present one, which is over: 0, or -errno, EAGAIN while a thread is inside the recorder;
 * STROBE_REMOTE_ARM is strobe_arm. */
enum { STROBE_REMOTE_DESK = 1, STROBE_REMOTE_REPLAN = 2, STROBE_REMOTE_SLAB = 3, STROBE_REMOTE_REGISTER = 4, STROBE_REMOTE_REBIND = 5, STROBE_REMOTE_ARM = 6 };
struct strobe_replan { uint64_t function; uint32_t hook_id, plan_bytes; uint64_t plan_offset /* from the first item */, hook, entry; };
uint64_t strobe_remote(uint64_t what, uint64_t a, uint64_t b);

/* For a program that an exec has started, called at its entry point by the code of recorder_entry.c: strobe_init, then waits for a bounded time until the
 * session has put its hooks in, for which strobe_remote is called here as the session orders it (recorder_gates.c). */
void strobe_child(const char *pool_path);

/* asm entry points for thunks */
extern char strobe_enter_gpr[], strobe_enter_xmm[];

/* Fallback (Interceptor + CModule) uses the same writer from C. regs: rdi rsi rdx rcx r8 r9 rax, then xmm0–7 low halves. `stack`
 * points to the return address at entry. Returns the call's span, or 0 when nothing was recorded (then there is no exit to record). */
uint64_t strobe_record_enter(uint64_t hook, const uint64_t regs[15], const uint64_t *stack);
void strobe_record_exit(uint64_t hook, uint64_t span, const uint64_t regs[15]);
#endif
