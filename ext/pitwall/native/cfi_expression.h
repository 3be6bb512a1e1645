/* Evaluates the DWARF expressions of rare rules: those of PLT entries, of signal frames, of functions that align their
 * stack. */
#ifndef PITWALL_CFI_EXPRESSION_H
#define PITWALL_CFI_EXPRESSION_H

#include "native/cfi_table.h"

#if PW_UNWINDS
# include "native/stack_words.h"

/* `initial`: what is on the expression's stack first; NULL: nothing. False: an unknown operation, no memory at an
 * address, or too many steps. async-signal-safe */
bool pw_cfi_evaluate(const pw_cfi_table *table, int32_t expression, const uintptr_t registers[PW_REGISTERS],
                     const uintptr_t *initial, pw_stack_words *words, uintptr_t *result);
#endif

#endif
