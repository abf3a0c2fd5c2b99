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
    .cfi_def_cfa_offset 0
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
