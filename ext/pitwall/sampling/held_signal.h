/* Blocks the tick signal while a thread waits, so that no tick interrupts the call in which the thread waits. */
#ifndef PITWALL_HELD_SIGNAL_H
#define PITWALL_HELD_SIGNAL_H

#include <stdbool.h>

/* Says whether ticks come by signal from now on. */
void pw_signal_is_handled(bool handled);

/* The calling thread releases the GVL: blocks its ticks. All functions but pw_signal_is_handled: async-signal-safe */
void pw_signal_hold_back(void);
/* The calling thread has the GVL again: unblocks its ticks. Called with or without a recording. */
void pw_signal_let_through(void);
/* C code is about to wait in the calling thread. Returns the signal that is blocked during the wait. 0: none, and
 * pw_signal_wait_ends must not be called. */
int pw_signal_wait_begins(void);
void pw_signal_wait_ends(void);
/* Does any thread still have the signal blocked? */
bool pw_signal_held_back(void);
void pw_signal_in_child(void); /* after a fork */

#endif
