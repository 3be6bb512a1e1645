/* Garbage collection as frames. */
#ifndef PITWALL_GC_H
#define PITWALL_GC_H

#include "session/modules.h"
#include "session/threads.h"

extern const pw_module pw_gc;

/* Is a collection running? If so, notes the tick (in the collecting thread) or defers it. async-signal-safe */
bool pw_gc_takes_tick(pw_thread *t, int64_t wall);
/* For outside readers. True: no collection runs, and none begins before the reader lock is released.
 * holds reader lock */
bool pw_gc_rests(void);
/* Registers the events again at the next safepoint, because Ruby may have stopped reporting collections. */
void pw_gc_ask_again(void);

#endif
