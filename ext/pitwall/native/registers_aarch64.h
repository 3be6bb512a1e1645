/* aarch64 on Linux. See registers.h. */
#ifndef PITWALL_REGISTERS_AARCH64_H
#define PITWALL_REGISTERS_AARCH64_H

#include <signal.h>
#include <ucontext.h>

enum { PW_FP = 29, PW_RETURN = 30, PW_SP = 31, PW_PC = 32, PW_REGISTERS = 33 };
enum { PW_SAVED_REGISTERS = 12, PW_SAVED_FP = 10, PW_SAVED_RETURN = 11 };
static const uint8_t pw_saved_registers[PW_SAVED_REGISTERS] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};

/* A function that calls nothing may leave its return address in x30. */
enum { PW_RETURN_IN_REGISTER = 1 };

/* async-signal-safe */
static inline void
pw_registers_of(const void *ucontext, uintptr_t *r)
{
    const ucontext_t *context = ucontext;
    for (int i = 0; i < 31; i++) r[i] = (uintptr_t)context->uc_mcontext.regs[i];
    r[PW_SP] = (uintptr_t)context->uc_mcontext.sp;
    r[PW_PC] = (uintptr_t)context->uc_mcontext.pc;
}

/* Those of the function that this is used in. */
#define PW_REGISTERS_HERE(r) \
    __asm__ volatile( \
        "stp x19, x20, [%0, 152]\n\tstp x21, x22, [%0, 168]\n\tstp x23, x24, [%0, 184]\n\t" \
        "stp x25, x26, [%0, 200]\n\tstp x27, x28, [%0, 216]\n\tstp x29, x30, [%0, 232]\n\t" \
        "mov x9, sp\n\tstr x9, [%0, 248]\n\tadr x9, .\n\tstr x9, [%0, 256]" \
        : : "r"(r) : "x9", "memory")

/* A return address may be signed in its high bits (pointer authentication). Older processors take this instruction
 * for a NOP. */
static inline uintptr_t
pw_return_address(uintptr_t word)
{
    register uintptr_t x30 __asm__("x30") = word;
    __asm__("hint 7" : "+r"(x30)); /* xpaclri */
    return x30;
}

enum { PW_CFA_AT_ENTRY = 0 };

/* Where the instruction goes, if it is a jump: b, b.cond, cbz, cbnz. Else 0. */
static inline uintptr_t
pw_jump_target(const uint8_t *code)
{
    if ((uintptr_t)code & 3) return 0;
    uint32_t word = (uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24;
    int32_t distance;
    if (word >> 26 == 0x05) distance = (int32_t)(word << 6) >> 6;
    else if (word >> 24 == 0x54 || (word & 0x7e000000) == 0x34000000) distance = (int32_t)(word << 8) >> 13;
    else return 0;
    return (uintptr_t)code + (uintptr_t)((intptr_t)distance * 4);
}

/* The kind of call instruction that ends right before the code at `next`. async-signal-safe */
static inline pw_call_kind
pw_call_before(const uint8_t *next)
{
    uint32_t word = (uint32_t)next[-4] | (uint32_t)next[-3] << 8 | (uint32_t)next[-2] << 16 | (uint32_t)next[-1] << 24;
    if ((word & 0xfffffc1f) == 0xd63f0000) return PW_CALL_OF_ADDRESS;
    return word >> 26 == 0x25 ? PW_CALL_OF_FUNCTION : PW_NO_CALL;
}

#endif
