/* Registers threads in the recording, and ends them. */
#ifndef PITWALL_REGISTRY_H
#define PITWALL_REGISTRY_H

#include "session/threads.h"

/* Finds or registers a thread. `caller`: the thread is the calling thread. NULL: no room. Takes the session's lock.
 * `tid`: 0 when nothing ticks for the thread yet. needs GVL */
pw_thread *pw_register_thread(VALUE thread, pid_t tid, bool caller);
/* Registers the threads that lived before start: [[thread, native id], ...]. needs GVL */
void pw_register_others(VALUE native_thread_ids);
/* The calling thread, registered now if it was not yet. NULL: the thread is not recorded. needs GVL */
pw_thread *pw_registered_self(void);

/* The calling thread ends. Must not be called in a handler. */
void pw_thread_ended(pw_thread *t);
/* The calling native thread begins another thread. So `t` has ended, at an unknown time. */
void pw_thread_replaced(pw_thread *t);
/* Ends a thread whose end Ruby did not report. Ruby 3.1 does not report a thread that ends by an exception, and reuses
 * its native thread for the next thread. Repeated looks that find no Ruby frame show the end. Called in the thread's
 * handler, by the outside reader, or by another thread with the GVL. False: the ring is full, try again.
 * async-signal-safe */
bool pw_thread_vanished(pw_thread *t);
/* The number of consecutive looks without a frame that show the end. async-signal-safe */
uint32_t pw_looks_at_nothing(const pw_thread *t);
/* Ends dead threads whose end Ruby did not report. needs GVL */
void pw_end_dead_threads(void);

/* Makes pw_self return `t` in the calling native thread, until `t` ends. */
void pw_enter_thread(pw_thread *t);
void pw_enter_known_thread(VALUE thread); /* the same, if the thread is registered */

#if PW_THREAD_IN_EVENT
/* The registered thread of an event, or NULL. */
pw_thread *pw_thread_of_event(VALUE thread);
#endif

void pw_registry_in_child(void); /* after a fork */
void pw_registry_init(VALUE native);

#endif
