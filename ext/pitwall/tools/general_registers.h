/* To be included first in a file whose code may run between any two instructions of the program. No code of that
 * file then touches a vector register. The program expects a system call to leave vector registers unchanged.
 * (Functions of other files that such a file calls must not touch vector registers, either.) */
#ifndef PITWALL_GENERAL_REGISTERS_H
#define PITWALL_GENERAL_REGISTERS_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
# pragma GCC target("general-regs-only")
# define PW_GENERAL_REGISTERS_ONLY 1
#else
# define PW_GENERAL_REGISTERS_ONLY 0
#endif

#endif
