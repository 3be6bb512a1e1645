/* The stack that the native thread was made with. */
#ifndef PITWALL_STACK_BOUNDS_H
#define PITWALL_STACK_BOUNDS_H

#include "tools/hidden.h"
#include <stdint.h>

/* From `seen` to `to` it was read before: its pages stay for as long as the thread is there. 0: never. */
typedef struct { uintptr_t from, to, seen; } pw_stack_bounds;

/* 0: not known. */
extern PW_HIDDEN __thread pw_stack_bounds pw_own_stack __attribute__((tls_model("initial-exec")));

/* The calling thread remembers the bounds of its own stack, and its samples are cheaper from then on. Not in a
 * handler. */
void pw_unwind_know_stack(void);

#endif
