#include "tools/raw_syscall.h"

#if PW_DISPATCH

__asm__(
    ".pushsection " PW_UNSEEN_SECTION ", \"ax\", @progbits\n"
    ".balign 16\n"
    ".globl pw_raw_syscall\n.hidden pw_raw_syscall\n"
    ".type pw_raw_syscall, @function\n"
    "pw_raw_syscall:\n"
    "  .cfi_startproc\n"
    "  mov %rdi, %rax\n  mov %rsi, %rdi\n  mov %rdx, %rsi\n  mov %rcx, %rdx\n  mov %r8, %r10\n  mov %r9, %r8\n  mov 8(%rsp), %r9\n"
    "  syscall\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size pw_raw_syscall, . - pw_raw_syscall\n"
    ".popsection\n"
);

#endif
