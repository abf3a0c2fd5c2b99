/* Where a call that the session makes on a held thread (actors/session/ptrace/call.py) returns to. The session stops the thread at the system call
 * below and gives it its registers back by ptrace. Where the session has died meanwhile, the thread does the same by itself: rbx, which functions
 * keep, is the address of its own signal mask, of its registers as they are popped here, of the flags, and of the instruction that it was at. All
 * this ends 128 bytes, the red zone, below its own stack pointer. Vector registers are nobody's business: nothing that is called touches them. */
    .text
    .p2align 4
    .ascii "strobe: return!"
    .byte 0
    .globl strobe_return
    .type strobe_return, @function
strobe_return:
    movq %rbx, %rsp
    movq %rax, %r12                 /* the result */
    movl $14, %eax                  /* rt_sigprocmask(SIG_SETMASK, rbx, NULL, 8) */
    movl $2, %edi
    movq %rsp, %rsi
    xorl %edx, %edx
    movl $8, %r10d
    syscall
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rax
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    popfq
    ret $128
    .size strobe_return, . - strobe_return

    .section .note.GNU-stack, "", @progbits
