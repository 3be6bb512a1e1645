/* Threads come into the recording and leave it. */
#ifndef PITWALL_REGISTRY_H
#define PITWALL_REGISTRY_H

#include "session/threads.h"

/* Registers a thread (the calling one when `caller`), or finds it. NULL when there is no room. Takes the session's
 * lock. `tid` is 0 when nothing ticks for it yet. needs GVL */
pw_thread *pw_register_thread(VALUE thread, pid_t tid, bool caller);
/* [[thread, native id], ...]: threads that lived before start. needs GVL */
void pw_register_others(VALUE native_thread_ids);
/* The calling thread, which may not be known yet; NULL: it is not recorded. needs GVL */
pw_thread *pw_registered_self(void);

/* The calling thread ends. Not in a handler. */
void pw_thread_ended(pw_thread *t);
/* The calling native thread begins another thread: `t` has ended, and nobody reported when. */
void pw_thread_replaced(pw_thread *t);
/* Ruby 3.1 does not report a thread that ends by an exception, and keeps its native thread for the next one. Looks
 * that find no Ruby frame show the end. In that thread's handler, or by the outside reader. False: the ring is
 * full, try again. async-signal-safe */
bool pw_thread_vanished(pw_thread *t);
/* After so many looks without a frame. async-signal-safe */
uint32_t pw_looks_at_nothing(const pw_thread *t);
/* Ends threads that are dead without a report. needs GVL */
void pw_end_dead_threads(void);

/* Lets the calling native thread lead to `t`, until it ends. */
void pw_enter_thread(pw_thread *t);
void pw_enter_known_thread(VALUE thread); /* where it is registered */

#if PW_THREAD_IN_EVENT
/* The registered thread that an event is about, or NULL. */
pw_thread *pw_thread_of_event(VALUE thread);
#endif

void pw_registry_in_child(void); /* after a fork */
void pw_registry_init(VALUE native);

#endif
