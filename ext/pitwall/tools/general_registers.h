/* First in a file whose code may run between any two instructions of the program: none of it touches a vector
 * register, which the program believes untouched by a system call. (What such a file calls elsewhere must keep to
 * that too.) */
#ifndef PITWALL_GENERAL_REGISTERS_H
#define PITWALL_GENERAL_REGISTERS_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
# pragma GCC target("general-regs-only")
# define PW_GENERAL_REGISTERS_ONLY 1
#else
# define PW_GENERAL_REGISTERS_ONLY 0
#endif

#endif
