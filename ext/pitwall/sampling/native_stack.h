/* Stacks of Ruby and native frames. The walk of the control frames (stack_walk.h) and the native stack (unwind.h) are
 * joined into one stack. */
#ifndef PITWALL_NATIVE_STACK_H
#define PITWALL_NATIVE_STACK_H

#include "session/native_room.h"
#include "session/threads.h"

/* Makes t->native->stack from the walk that was just made. The native stack is read from the handler's context, or from
 * here on. The frame `leaf` stands at the leaf (0: none). async-signal-safe */
void pw_native_stack_take(pw_thread *t, VALUE leaf);

/* A step of a garbage collection begins. Makes t->native->stack from the walk that was just made, and notes the native
 * stack. The walk is not repeated until the step ends: the collection may move objects on the stack. */
void pw_native_collection_begins(pw_thread *t);
void pw_native_collection_ends(pw_thread *t);
/* Makes t->native->stack for a tick within that step: `leaf` is between the functions that called the collector and the
 * collector's own. False: no step has begun. async-signal-safe */
bool pw_native_collection_take(pw_thread *t, VALUE leaf);

/* Prepares native frames. Returns NULL, or why there are none. needs GVL */
const char *pw_native_refusal(void);

void pw_native_stack_init(VALUE native);

#endif
