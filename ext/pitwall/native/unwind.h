/* The native stack of the calling thread: which functions of C, C++, Rust or assembler have been called by which.
 *
 * The rules by which a compiler's code is unwound are in each object's .eh_frame. pw_unwind_prepare makes a table of
 * them (cfi_parse.h). A handler reads that table and the stack, and nothing else: it never reads an object that might
 * have been unloaded, and it reads the stack only where there is memory (stack_words.h). doc/native.md explains it. */
#ifndef PITWALL_UNWIND_H
#define PITWALL_UNWIND_H

#include "native/interpreter.h"
#include "native/native_frame.h"
#include "native/stack_bounds.h"
#include <stdbool.h>
#include <stdint.h>

/* Makes the tables. Takes some milliseconds. Not in a handler. False: this machine has none (pw_unwind_refusal). To be
 * called from a C method, with Ruby code below it on the stack: then the interpreter's loop is known afterwards. `ruby`:
 * the address of one of Ruby's functions. */
bool pw_unwind_prepare(uintptr_t ruby);

/* Why pw_unwind_prepare returned false, e.g. "native frames are read on Linux only". NULL: it did not. */
const char *pw_unwind_refusal(void);

/* Reads objects loaded since, and forgets unloaded ones. Cheap if nothing has changed. Not in a handler. */
void pw_unwind_refresh(void);

/* The recording has ended. Frees the tables; pw_unwind then finds nothing. */
void pw_unwind_release(void);

/* Around a fork. Nobody may be reading the loader's list meanwhile: the loader's lock would stay locked in the child,
 * and the child's next dlopen would wait for ever. The wait for a thread that reads it is a second at most. */
void pw_unwind_before_fork(void);
void pw_unwind_in_parent(void);
/* In the child of a fork, before other threads are there. The tables stay. */
void pw_unwind_child(void);

/* Writes at most `room` frames, the leaf first, and returns how many. `ucontext`: what a signal handler was given;
 * NULL: from the caller on. The thread's last stack saves work: *kept of its frames next to the root follow the frames
 * that were written. last->generation becomes that of the new stack. async-signal-safe */
uint32_t pw_unwind(const void *ucontext, pw_native_frame *frames, uint32_t room, pw_last_stack *last, uint32_t *kept,
                   pw_unwind_end *end);

#endif
