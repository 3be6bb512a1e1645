/* The registers of the machine, by their DWARF numbers, and where a signal's context has them. One header for each
 * architecture has what differs:
 *
 *   PW_REGISTERS          how many are followed, the pc included
 *   PW_SP, PW_FP, PW_PC   numbers of the stack pointer, the frame pointer and the pc
 *   pw_saved_registers    those that a function saves for its caller, with the one that holds the return address
 *   PW_RETURN             number of the register whose rule gives the return address
 *   PW_CFA_AT_ENTRY       at a function's first instruction the CFA is the stack pointer plus this */
#ifndef PITWALL_REGISTERS_H
#define PITWALL_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

/* A function calls another one whose place it knows, or the code at an address that it has. */
typedef enum { PW_NO_CALL, PW_CALL_OF_FUNCTION, PW_CALL_OF_ADDRESS } pw_call_kind;

#if defined(__linux__) && defined(__x86_64__) && defined(__LP64__)
# define PW_UNWINDS 1
# include "native/registers_x86_64.h"
#elif defined(__linux__) && defined(__aarch64__) && defined(__LP64__)
# define PW_UNWINDS 1
# include "native/registers_aarch64.h"
#else
# define PW_UNWINDS 0
enum { PW_REGISTERS = 1, PW_SAVED_REGISTERS = 1 };
#endif

#if PW_UNWINDS
typedef struct { uintptr_t r[PW_REGISTERS]; } pw_registers;
#endif

#endif
