/* Copying from memory that may not be there. Loads fault only between strobe_copy_begins and strobe_copy_ends; strobe_fault_table says where
 * to go on then (recorder_faults.c). All registers used are the callee's to use. No string instruction, no vector register. */
    .text
    .globl strobe_copy, strobe_copy_text, strobe_fault_gate, strobe_fault_table
    .hidden strobe_copy, strobe_copy_text, strobe_fault_gate, strobe_fault_table

    /* uint64_t strobe_copy(void *to, uint64_t from, uint64_t bytes). r8: bytes copied for certain. */
    .p2align 6
    .type strobe_copy, @function
strobe_copy:
    .cfi_startproc
    xorl %r8d, %r8d
    cmpq $8, %rdx
    jb .Lcopy_bytes
    leaq -8(%rdx), %rcx         /* where the last whole word begins */
    cmpq $32, %rdx
    jb .Lcopy_words
    leaq -32(%rdx), %r11
.Lcopy_begins:
1:  movq (%rsi,%r8), %r9
    movq 8(%rsi,%r8), %r10
    movq %r9, (%rdi,%r8)
    movq %r10, 8(%rdi,%r8)
    movq 16(%rsi,%r8), %r9
    movq 24(%rsi,%r8), %r10
    movq %r9, 16(%rdi,%r8)
    movq %r10, 24(%rdi,%r8)
    addq $32, %r8
    cmpq %r11, %r8
    jbe 1b
    cmpq %rcx, %r8
    jae 3f
.Lcopy_words:
2:  movq (%rsi,%r8), %r9
    movq %r9, (%rdi,%r8)
    addq $8, %r8
    cmpq %rcx, %r8
    jb 2b
3:  movq (%rsi,%rcx), %r9       /* the rest, and some of what was copied before */
    movq %r9, (%rdi,%rcx)
    movq %rdx, %rax
    ret
.Lcopy_bytes:
    cmpq %rdx, %r8
    jae .Lcopy_over
4:  movzbl (%rsi,%r8), %r9d
    movb %r9b, (%rdi,%r8)
    incq %r8
    cmpq %rdx, %r8
    jb 4b
.Lcopy_over:
    movq %r8, %rax
    ret
    .cfi_endproc
    .size strobe_copy, . - strobe_copy

    /* struct text strobe_copy_text(void *to, uint64_t from, uint64_t most): rax bytes, rdx why. Whole words are loaded where they are aligned
     * alone: no page behind the one with the 0 is touched. */
    .p2align 6
    .type strobe_copy_text, @function
strobe_copy_text:
    .cfi_startproc
    xorl %r8d, %r8d
    movabsq $0x0101010101010101, %rcx
    movq %rcx, %rax
    shlq $7, %rax
.Ltext_bytes:
    cmpq %rdx, %r8
    jae .Ltext_limit
.Ltext_begins:
    movzbl (%rsi,%r8), %r9d
    movb %r9b, (%rdi,%r8)
    incq %r8
    testl %r9d, %r9d
    jz .Ltext_found
    leaq (%rsi,%r8), %r9
    testl $7, %r9d
    jnz .Ltext_bytes
.Ltext_words:
    leaq 8(%r8), %r10
    cmpq %rdx, %r10
    ja .Ltext_bytes
    movq (%rsi,%r8), %r9
    movq %r9, (%rdi,%r8)
    movq %r9, %r11
    notq %r9
    subq %rcx, %r11
    andq %r9, %r11
    andq %rax, %r11             /* the top bit of the first byte that is 0 (others above it may be set too) */
    jnz 5f
    movq %r10, %r8
    jmp .Ltext_words
5:  bsfq %r11, %r11
    shrl $3, %r11d
    leaq 1(%r8,%r11), %r8
.Ltext_found:
    xorl %edx, %edx
    movq %r8, %rax
    ret
.Ltext_limit:
    movl $1, %edx
    movq %r8, %rax
    ret
.Ltext_over:
    movl $2, %edx
    movq %r8, %rax
    ret
    .cfi_endproc
    .size strobe_copy_text, . - strobe_copy_text

    /* The kernel's handler of SIGSEGV and SIGBUS. strobe_on_fault answers 0, or the handler to go on to as if the kernel had called it. */
    .p2align 4
    .type strobe_fault_gate, @function
strobe_fault_gate:
    .cfi_startproc
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    call strobe_on_fault
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    jz 6f
    jmpq *%rax
6:  ret
    .cfi_endproc
    .size strobe_fault_gate, . - strobe_fault_gate

    /* {begin, end, where to go on}, as distances from the table */
    .section .rodata, "a", @progbits
    .p2align 2
strobe_fault_table:
    .long .Lcopy_begins - strobe_fault_table, .Lcopy_bytes - strobe_fault_table, .Lcopy_bytes - strobe_fault_table
    .long .Lcopy_bytes - strobe_fault_table, .Lcopy_over - strobe_fault_table, .Lcopy_over - strobe_fault_table
    .long .Ltext_begins - strobe_fault_table, .Ltext_found - strobe_fault_table, .Ltext_over - strobe_fault_table
    .section .note.GNU-stack, "", @progbits
