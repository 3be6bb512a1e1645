/* x86-64 on Linux. See registers.h. */
#ifndef PITWALL_REGISTERS_X86_64_H
#define PITWALL_REGISTERS_X86_64_H

#include <signal.h>
#include <ucontext.h>

enum { PW_RBX = 3, PW_FP = 6, PW_SP = 7, PW_PC = 16, PW_RETURN = 16, PW_REGISTERS = 17 };
enum { PW_SAVED_REGISTERS = 7, PW_SAVED_FP = 1, PW_SAVED_RETURN = 6 };
static const uint8_t pw_saved_registers[PW_SAVED_REGISTERS] = {3, 6, 12, 13, 14, 15, 16};

/* Call instructions push the return address: it is always in memory. */
enum { PW_RETURN_IN_REGISTER = 0 };

/* async-signal-safe */
static inline void
pw_registers_of(const void *ucontext, uintptr_t *r)
{
    static const uint8_t places[PW_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11,
        REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    const ucontext_t *context = ucontext;
    for (int i = 0; i < PW_REGISTERS; i++) r[i] = (uintptr_t)context->uc_mcontext.gregs[places[i]];
}

/* Those of the function that this is used in. */
#define PW_REGISTERS_HERE(r) \
    __asm__ volatile( \
        "movq %%rbx, 24(%0)\n\tmovq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\tmovq %%r12, 96(%0)\n\t" \
        "movq %%r13, 104(%0)\n\tmovq %%r14, 112(%0)\n\tmovq %%r15, 120(%0)\n\t" \
        "leaq 0(%%rip), %%rcx\n\tmovq %%rcx, 128(%0)" \
        : : "a"(r) : "rcx", "memory")

/* The address that a saved return address stands for. */
static inline uintptr_t pw_return_address(uintptr_t word) { return word; }

enum { PW_CFA_AT_ENTRY = 8 };

/* Where the instruction goes, if it is a jump with a 32-bit distance: jmp, jcc. Else 0. */
static inline uintptr_t
pw_jump_target(const uint8_t *code)
{
    uint32_t size = code[0] == 0xe9 ? 5 : code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 6 : 0;
    if (!size) return 0;
    const uint8_t *d = code + size - 4;
    uint32_t distance = (uint32_t)d[0] | (uint32_t)d[1] << 8 | (uint32_t)d[2] << 16 | (uint32_t)d[3] << 24;
    return (uintptr_t)code + size + (uintptr_t)(intptr_t)(int32_t)distance;
}

/* The kind of call instruction that ends right before the code at `next`; 8 bytes before it can be read.
 * async-signal-safe */
static inline pw_call_kind
pw_call_before(const uint8_t *next)
{
    if (next[-2] == 0xff && (next[-1] & 0xf8) == 0xd0) return PW_CALL_OF_ADDRESS;                      /* %reg */
    if (next[-2] == 0xff && (next[-1] & 0xf8) == 0x10 && (next[-1] & 7) != 4) return PW_CALL_OF_ADDRESS; /* (%reg) */
    if (next[-3] == 0xff && (next[-2] & 0xb8) == 0x10) return PW_CALL_OF_ADDRESS;        /* 8(%reg), (%reg,%reg) */
    if (next[-4] == 0xff && next[-3] == 0x54) return PW_CALL_OF_ADDRESS;                 /* 8(%reg,%reg) */
    if (next[-6] == 0xff && (next[-5] & 0x38) == 0x10) return PW_CALL_OF_ADDRESS;        /* n(%reg), n(%rip) */
    if (next[-7] == 0xff && next[-6] == 0x94) return PW_CALL_OF_ADDRESS;                 /* n(%reg,%reg) */
    return next[-5] == 0xe8 ? PW_CALL_OF_FUNCTION : PW_NO_CALL;
}

#endif
