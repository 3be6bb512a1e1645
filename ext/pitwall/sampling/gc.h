/* Garbage collection as frames. */
#ifndef PITWALL_GC_H
#define PITWALL_GC_H

#include "session/modules.h"
#include "session/threads.h"

extern const pw_module pw_gc;

/* Is a collection running? Then the tick is noted (for the collecting thread) or deferred. async-signal-safe */
bool pw_gc_takes_tick(pw_thread *t, int64_t wall);
/* From outside: none runs, and none will begin its work before the reader's lock is let go. holds reader lock */
bool pw_gc_rests(void);
/* Ruby may have forgotten that we listen: at the next safepoint asks Ruby to go on reporting. */
void pw_gc_ask_again(void);

#endif
