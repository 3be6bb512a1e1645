#include "collectors/syscalls/dispatch_code.h"

#if PW_DISPATCH

#include "collectors/syscalls/syscall_after.h"
#include <stddef.h>

__attribute__((used)) _Atomic uint64_t pw_twin_returns[PW_TWINS], pw_maker_returns[PW_MAKERS];

__attribute__((used)) __thread uint32_t pw_dispatch_making;

_Static_assert(offsetof(pw_call_frame, number) == 48 && offsetof(pw_call_frame, start) == 56 &&
               offsetof(pw_call_frame, end) == 64 &&
               offsetof(pw_call_frame, result) == 72 && offsetof(pw_call_frame, rbx) == 80 &&
                   offsetof(pw_call_frame, return_address) == 136 &&
               sizeof(pw_call_frame) == 144, "the assembler code below knows these");

__attribute__((used)) void (*pw_dispatch_ending)(pw_call_frame *call);

/* RESTORE restores the argument registers. A `syscall` changes rax, rcx and r11 anyway, so RESTORE omits them.
 * The `ret` of LEAVE pops the frame and the red zone. */
#define RESTORE \
    "  mov 0(%rsp), %rdi\n  mov 8(%rsp), %rsi\n  mov 16(%rsp), %rdx\n" \
    "  mov 24(%rsp), %r10\n  mov 32(%rsp), %r8\n  mov 40(%rsp), %r9\n"
#define LEAVE "  lea 136(%rsp), %rsp\n  .cfi_def_cfa_offset 136\n  ret $128\n"
#define UNWIND "  .cfi_startproc\n  .cfi_def_cfa rsp, 272\n  .cfi_offset rip, -136\n"
/* Calls a function on an aligned stack, with the frame as its argument. */
#define CALL_OUT(function) \
    "  mov %rbx, 80(%rsp)\n  .cfi_offset rbx, -192\n  mov %rsp, %rbx\n  .cfi_def_cfa_register rbx\n" \
    "  mov %rsp, %rdi\n  and $-16, %rsp\n  call " function "\n" \
    "  mov %rbx, %rsp\n  .cfi_def_cfa_register rsp\n  mov 80(%rsp), %rbx\n" \
    RESTORE

__asm__(
    ".pushsection " PW_UNSEEN_SECTION ", \"ax\", @progbits\n"
    ".balign 64\n"
    ".hidden pw_twins\n.hidden pw_makers\n.hidden pw_call_recorded\n"
    ".hidden pw_go_on_plain\n.hidden pw_go_on_recorded\n.hidden pw_go_on_ending\n.hidden pw_return_from_signal\n"
    ".globl pw_twins\n.globl pw_makers\n.globl pw_call_recorded\n"
    ".globl pw_go_on_plain\n.globl pw_go_on_recorded\n.globl pw_go_on_ending\n.globl pw_return_from_signal\n"

    "pw_twins:\n"
    ".set twin, 0\n"
    ".rept 1024\n"
    "  syscall\n"
    "  jmp *pw_twin_returns+twin(%rip)\n"
    "  .set twin, twin + 8\n"
    ".endr\n"

    ".balign 32\n"
    "pw_makers:\n"
    ".set maker, 0\n"
    ".rept 64\n"
    "  .balign 32\n"
    "  syscall\n"
    "  test %rax, %rax\n"
    "  jz 1f\n"
    "  mov pw_dispatch_making@gottpoff(%rip), %rcx\n"
    "  decl %fs:(%rcx)\n"
    "1: jmp *pw_maker_returns+maker(%rip)\n"
    "  .set maker, maker + 8\n"
    ".endr\n"

    ".balign 16\n"
    ".type pw_call_recorded, @function\n"
    "pw_call_recorded:\n"
    "  .cfi_startproc\n"
    "  push %rbx\n"
    "  .cfi_def_cfa_offset 16\n"
    "  .cfi_offset rbx, -16\n"
    "  mov %rdi, %rbx\n"
    "  rdtsc\n  shl $32, %rdx\n  or %rdx, %rax\n  mov %rax, 56(%rbx)\n"
    "  mov 0(%rbx), %rdi\n  mov 8(%rbx), %rsi\n  mov 16(%rbx), %rdx\n  mov 24(%rbx), %r10\n  mov 32(%rbx), %r8\n  mov 40(%rbx), %r9\n"
    "  mov 48(%rbx), %rax\n"
    "  syscall\n"
    "  mov %rax, 72(%rbx)\n"
    "  rdtsc\n  shl $32, %rdx\n  or %rdx, %rax\n  mov %rax, 64(%rbx)\n"
    "  pop %rbx\n"
    "  .cfi_def_cfa_offset 8\n"
    "  .cfi_restore rbx\n"
    "  ret\n"
    "  .cfi_endproc\n"

    /* Returns from Pitwall's own handler, and from other handlers whose rt_sigreturn was dispatched. */
    ".balign 16\n"
    "pw_return_from_signal:\n"
    "  mov $15, %eax\n"
    "  syscall\n"
    "  hlt\n"

    ".balign 16\n"
    "pw_go_on_plain:\n"
    UNWIND
    "  syscall\n"
    RESTORE
    LEAVE
    "  .cfi_endproc\n"

    ".balign 16\n"
    "pw_go_on_ending:\n"
    UNWIND
    CALL_OUT("*pw_dispatch_ending(%rip)")
    "  mov 48(%rsp), %rax\n"
    "  syscall\n"
    LEAVE
    "  .cfi_endproc\n"

    ".balign 16\n"
    "pw_go_on_recorded:\n"
    UNWIND
    "  rdtsc\n  shl $32, %rdx\n  or %rdx, %rax\n  mov %rax, 56(%rsp)\n"
    "  mov 16(%rsp), %rdx\n"
    "  mov 48(%rsp), %rax\n"
    "  syscall\n"
    "  mov %rax, 72(%rsp)\n"
    "  rdtsc\n  shl $32, %rdx\n  or %rdx, %rax\n  mov %rax, 64(%rsp)\n"
    CALL_OUT("pw_syscall_after")
    "  mov 72(%rsp), %rax\n"
    LEAVE
    "  .cfi_endproc\n"

    ".popsection\n"
);

#endif
