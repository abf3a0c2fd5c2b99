/* Entry points of thunks and the exit stub. struct saved and struct saved_exit (recorder_state.h) are what the pushes make.
 *
 * Callers compiled with -fipa-ra know which registers a function leaves alone, so all of them are kept, on both ways. The C code is
 * compiled for general registers only and has no string instruction: vector state and the direction flag are not touched.
 */
    .text
    .macro save register
    pushq %\register
    .cfi_adjust_cfa_offset 8
    .endm
    .macro restore register
    popq %\register
    .cfi_adjust_cfa_offset -8
    .endm
    .macro save_all
    save r11
    save r10
    save rax
    save r9
    save r8
    save rcx
    save rdx
    save rsi
    save rdi
    .endm
    .macro restore_all
    restore rdi
    restore rsi
    restore rdx
    restore rcx
    restore r8
    restore r9
    restore rax
    restore r10
    restore r11
    .endm

    /* For unwinders that meet the exit stub as a return address: the recorder's own hooks keep that from happening, but a debugger, or an
     * unwinder that was loaded later and not patched, shall get past it too. The rule for the frame's return address is a program in
     * DWARF that looks through all threads' shadow stacks (struct thread, struct shadow) for the frame's slot:
     *
     *     S = CFA - 16;  t = *(anchor + *(uint32 *)anchor)          anchor: 64 bytes before the block of 64 that the pc is in
     *                                                               (call and exit stub lie in one: tests/actor/test_recorder_parts.py)
     *     for (; t; t = t->next)  for (p = t->shadow + t->depth; p != t->shadow;)  if ((--p)->slot == S) return p->ret
     *     return 0                                                  the end of the stack
     */
    .macro return_address_from_shadow
    .cfi_escape 0x16, 0x10, 65                                      /* DW_CFA_val_expression r16 */
    .cfi_escape 0x40, 0x1c, 0x12                                    /* lit16 minus dup: S S (libgcc cannot pick the lowest) */
    .cfi_escape 0x80, 0x00, 0x09, 0xc0, 0x1a, 0x08, 0x40, 0x1c      /* breg16, const1s -64 and, const1u 64 minus: anchor */
    .cfi_escape 0x12, 0x94, 0x04, 0x22, 0x06                        /* dup deref_size4 plus deref: S t */
    .cfi_escape 0x12, 0x28, 0x03, 0x00, 0x2f, 0x2a, 0x00            /* 16: dup bra +3 (to 23), skip +42 (to the end, 65) */
    .cfi_escape 0x12, 0x23, 0x20, 0x06                              /* 23: dup plus_uconst 0x20 deref: S t base */
    .cfi_escape 0x14, 0x23, 0x28, 0x94, 0x04, 0x35, 0x24, 0x14, 0x22 /* 27: over plus_uconst 0x28 deref_size4 lit5 shl over plus: S t base p */
    .cfi_escape 0x14, 0x14, 0x2e, 0x28, 0x09, 0x00                  /* 36: over over ne bra +9 (to 51) */
    .cfi_escape 0x13, 0x13, 0x23, 0x78, 0x06, 0x2f, 0xde, 0xff      /* 42: drop drop plus_uconst 0x78 deref: S t', skip -34 (to 16) */
    .cfi_escape 0x96                                                /* 50: nop */
    .cfi_escape 0x08, 0x20, 0x1c, 0x12, 0x06                        /* 51: const1u 32 minus dup deref: S t base p v */
    .cfi_escape 0x15, 0x04, 0x2e, 0x28, 0xe6, 0xff                  /* 56: pick 4 ne bra -26 (to 36) */
    .cfi_escape 0x23, 0x08, 0x06                                    /* 62: plus_uconst 8 deref */
    .endm

    .p2align 6
.Lanchor:
    .long thread_list - .Lanchor

    /* Jumped to by a thunk: 0(%rsp) body, 8(%rsp) hook, 16(%rsp) the caller's return address (the slot). */
    .globl strobe_enter_gpr
    .p2align 6
    .type strobe_enter_gpr, @function
strobe_enter_gpr:
    .cfi_startproc
    .cfi_def_cfa_offset 24
    save_all
    movq %rsp, %rdi
    call strobe_on_enter
    testl %eax, %eax
    restore_all
    jz 1f
.Lcall_body:
    leaq 24(%rsp), %rsp         /* as the caller's was before its call: the next one puts the exit stub into its slot */
    .cfi_def_cfa_offset 8       /* 8 too many, and the stack pointer said apart: frames are told apart by their CFA, and this one has no bytes */
    .cfi_escape 0x14, 0x07, 0x01 /* DW_CFA_val_offset rsp, 1 * -8 */
    return_address_from_shadow
    call *-24(%rsp)             /* what lies below rsp by less than 128 bytes no signal handler touches */
    .cfi_endproc
    .size strobe_enter_gpr, . - strobe_enter_gpr

    .globl strobe_exit_stub
    .type strobe_exit_stub, @function
strobe_exit_stub:
    .cfi_startproc
    .cfi_def_cfa_offset 0
    leaq -8(%rsp), %rsp
    .cfi_adjust_cfa_offset 8
    save_all
    subq $16, %rsp
    .cfi_adjust_cfa_offset 16
    movq %xmm0, (%rsp)
    movq %xmm1, 8(%rsp)
    movq %rsp, %rdi
    call strobe_on_exit
    addq $16, %rsp
    .cfi_adjust_cfa_offset -16
    restore_all
    ret                         /* strobe_on_exit put the real address into the slot */
    .cfi_endproc
    .size strobe_exit_stub, . - strobe_exit_stub

    .p2align 4
1:
    .cfi_startproc
    .cfi_def_cfa_offset 24
    leaq 16(%rsp), %rsp
    .cfi_def_cfa_offset 8
    jmp *-16(%rsp)
    .cfi_endproc

    /* The same with xmm0 to xmm7 (low halves) below the registers, and for internal hooks. */
    .macro enter name, function, xmm
    .globl \name
    .p2align 4
    .type \name, @function
\name:
    .cfi_startproc
    .cfi_def_cfa_offset 24
    save_all
    movq %rsp, %rdi
    .if \xmm
    subq $64, %rsp
    .cfi_adjust_cfa_offset 64
    movq %xmm0, (%rsp)
    movq %xmm1, 8(%rsp)
    movq %xmm2, 16(%rsp)
    movq %xmm3, 24(%rsp)
    movq %xmm4, 32(%rsp)
    movq %xmm5, 40(%rsp)
    movq %xmm6, 48(%rsp)
    movq %xmm7, 56(%rsp)
    .endif
    call \function
    .if \xmm
    addq $64, %rsp
    .cfi_adjust_cfa_offset -64
    .endif
    testl %eax, %eax
    restore_all
    jz 1b
    jmp .Lcall_body
    .cfi_endproc
    .size \name, . - \name
    .endm
    enter strobe_enter_xmm, strobe_on_enter, 1
    enter strobe_enter_internal, strobe_on_internal, 0

    /* _Unwind_Backtrace(step, argument), called from a frame of ours that strobe_on_trace hides. 0: step, 8: argument, 16: hidden
     * (struct trace), 24: body, then the result. */
    .globl strobe_enter_backtrace
    .p2align 4
    .type strobe_enter_backtrace, @function
strobe_enter_backtrace:
    .cfi_startproc
    .cfi_def_cfa_offset 24
    popq %r10
    .cfi_adjust_cfa_offset -8
    popq %r11
    .cfi_adjust_cfa_offset -8
    subq $40, %rsp
    .cfi_adjust_cfa_offset 40
    movq %rdi, (%rsp)
    movq %rsi, 8(%rsp)
    movq $0, 16(%rsp)
    movq %r10, 24(%rsp)
    leaq 40(%rsp), %rdi
    call strobe_on_backtrace
    leaq strobe_on_trace(%rip), %rdi
    movq %rsp, %rsi
    call *24(%rsp)
    movq %rax, 24(%rsp)
    leaq 40(%rsp), %rdi
    call strobe_on_backtrace_end
    movq 24(%rsp), %rax
    addq $40, %rsp
    .cfi_adjust_cfa_offset -40
    ret
    .cfi_endproc
    .size strobe_enter_backtrace, . - strobe_enter_backtrace

    /* The very bytes by which unwinders know a signal frame. */
    .globl strobe_signal_return
    .p2align 4
    nop
strobe_signal_return:
    movq $15, %rax
    syscall
    .size strobe_signal_return, . - strobe_signal_return

    .section .note.GNU-stack, "", @progbits
