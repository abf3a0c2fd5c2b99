/* Functions whose first instructions test the moving of code: each is called twice with each argument, its results are printed. Names that
 * start with `bad_` must be refused (and say why in their name), all others must be hooked and still compute the same. */
#include <stdio.h>

#define FUNCTION(name, body) \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n.p2align 4\n" #name ":\n" body "\n.size " #name ", . - " #name "\n"); \
    long name(long);

__asm__(".data\n.p2align 4\nword: .quad 77\nhalf: .double 2.5\nplace: .quad aid\n.text\naid: leaq 5(%rdi), %rax\n ret\n");

FUNCTION(load_rip, "movq word(%rip), %rax\n addq %rdi, %rax\n ret")
FUNCTION(lea_rip, "leaq word(%rip), %rax\n movq (%rax), %rax\n subq %rdi, %rax\n ret")
FUNCTION(compare_rip, "cmpb $77, word(%rip)\n jne 1f\n leaq 1(%rdi), %rax\n ret\n1: xorl %eax, %eax\n ret")
FUNCTION(compare_rip_wide, "cmpl $77, word(%rip)\n sete %al\n movzbl %al, %eax\n addq %rdi, %rax\n ret")
FUNCTION(vector_rip, "cvtsi2sdq %rdi, %xmm0\n mulsd half(%rip), %xmm0\n cvttsd2siq %xmm0, %rax\n ret")
FUNCTION(short_jump, "testq %rdi, %rdi\n je 1f\n leaq (%rdi,%rdi,2), %rax\n ret\n1: movl $9, %eax\n ret")
FUNCTION(long_jump, "testq %rdi, %rdi\n {disp32} jne 1f\n movl $11, %eax\n ret\n .fill 300, 1, 0x90\n1: leaq -3(%rdi), %rax\n ret")
FUNCTION(two_jumps, "decl %edi\n js 1f\n je 2f\n movl %edi, %eax\n ret\n1: movl $21, %eax\n ret\n2: movl $22, %eax\n ret")
FUNCTION(calls_first, "call aid\n addq $1, %rax\n ret")
FUNCTION(calls_after_push, "pushq %rbx\n call aid\n popq %rbx\n ret")
FUNCTION(calls_memory, "subq $8, %rsp\n call *place(%rip)\n addq $8, %rsp\n addq $3, %rax\n ret")
FUNCTION(calls_register, "leaq aid(%rip), %rax\n call *%rax\n ret")
FUNCTION(calls_far_register, "pushq %r12\n movq %rdi, %r12\n leaq aid(%rip), %r11\n call *%r11\n addq %r12, %rax\n popq %r12\n ret")
FUNCTION(tail_jump, "jmp aid")
FUNCTION(tail_jump_short, "incq %rdi\n jmp 1f\n nop\n nop\n1: leaq (%rdi,%rdi), %rax\n ret")
FUNCTION(tail_jump_memory, "jmp *place(%rip)")
FUNCTION(marked, "endbr64\n leaq 13(%rdi), %rax\n incq %rax\n ret")
FUNCTION(five_bytes, "leaq 1(%rdi), %rax\n ret")
FUNCTION(push_immediate, "pushq $123456\n popq %rax\n addq %rdi, %rax\n ret")
FUNCTION(long_first, "movabsq $0x123456789ab, %rax\n addq %rdi, %rax\n ret")
FUNCTION(recursive, "pushq %rbx\n movq %rdi, %rbx\n xorl %eax, %eax\n testq %rdi, %rdi\n jle 1f\n decq %rdi\n call recursive\n addq %rbx, %rax\n1: popq %rbx\n ret")
FUNCTION(loops_later, "xorl %eax, %eax\n movl $3, %ecx\n1: addq %rdi, %rax\n decl %ecx\n jne 1b\n ret")
FUNCTION(suspicious_bytes, "movl $0xfdeb, %eax\n addq %rdi, %rax\n ret") /* holds the bytes of a jump to its start; they are data */
FUNCTION(branch_behind, "movl $4, %ecx\n jmp 2f\n1: ret\n2: movl %edi, %eax\n jmp 1b")
FUNCTION(segment_first, "movq %fs:0, %rax\n xorq %rax, %rax\n addq %rdi, %rax\n ret")

FUNCTION(bad_small, "movl %edi, %eax\n ret")
FUNCTION(bad_ends_early, "xorl %eax, %eax\n ret\n .fill 8, 1, 0x90")
FUNCTION(bad_branch_in, "xorl %eax, %eax\n1: incl %eax\n decl %edi\n jg 1b\n ret")
FUNCTION(bad_branch_to_start, "decq %rdi\n cmpq $3, %rdi\n jg bad_branch_to_start\n movq %rdi, %rax\n ret")
FUNCTION(bad_branch_far, "xorl %eax, %eax\n1: incl %eax\n decl %edi\n jmp 2f\n .fill 400, 1, 0x90\n2: testl %edi, %edi\n jg 1b\n ret")
FUNCTION(bad_counted_jump, "movl %edi, %ecx\n jrcxz 1f\n movl $1, %eax\n ret\n1: movl $2, %eax\n ret")
FUNCTION(bad_trap, "movl %edi, %eax\n int3\n nop\n nop\n ret") /* not called */
FUNCTION(bad_system_call, "nop\n syscall\n nop\n nop\n nop\n ret") /* not called */
FUNCTION(bad_returns_inside, "call *%rdi\n nop\n nop\n nop\n nop\n ret") /* not called */
FUNCTION(bad_unknown, ".byte 0x06, 0x06, 0x06, 0x06, 0x06, 0x06") /* not called */

#define CALL(name) printf("%s %ld %ld %ld\n", #name, name(0) + name(0), name(1) + name(1), name(7) + name(7));

int main(void) {
    CALL(load_rip) CALL(lea_rip) CALL(compare_rip) CALL(compare_rip_wide) CALL(vector_rip) CALL(short_jump) CALL(long_jump) CALL(two_jumps)
    CALL(calls_first) CALL(calls_after_push) CALL(calls_memory) CALL(calls_register) CALL(calls_far_register) CALL(tail_jump)
    CALL(tail_jump_short) CALL(tail_jump_memory) CALL(marked) CALL(five_bytes) CALL(push_immediate) CALL(long_first) CALL(recursive)
    CALL(loops_later) CALL(branch_behind) CALL(suspicious_bytes) CALL(segment_first)
    CALL(bad_small) CALL(bad_ends_early) CALL(bad_branch_in) CALL(bad_branch_to_start) CALL(bad_branch_far) CALL(bad_counted_jump)
    return 0;
}
