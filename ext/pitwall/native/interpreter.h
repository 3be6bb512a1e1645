/* Where the interpreter's loop is. Ruby does not export its name (vm_exec_core). */
#ifndef PITWALL_INTERPRETER_H
#define PITWALL_INTERPRETER_H

#include "native/cfi_table.h"
#include "native/native_frame.h"

/* Of the frames of a C method's stack, the first that is of a big function of Ruby is the loop. Does nothing if the
 * loop is known. Not in a handler. */
void pw_interpreter_learn(const pw_cfi_table *ruby, const pw_native_frame *frames, uint32_t count);

/* Whether the function is the interpreter's loop (vm_exec_core), or a part of it that the compiler has put elsewhere.
 * `function` is as pw_native_frame has it. async-signal-safe */
bool pw_unwind_is_interpreter(uintptr_t function);

/* The loop's start and those of its parts, at most `room`. Returns how many; 0: the loop is not known. Not in a
 * handler. */
uint32_t pw_interpreter_functions(uintptr_t *functions, uint32_t room);

/* Whether compiled code may have been called from that function: of Ruby's functions, by the loop and by the function
 * that calls the loop (vm_exec). True for all functions if the loop is not known. async-signal-safe */
bool pw_interpreter_enters_code(uintptr_t function);

#endif
