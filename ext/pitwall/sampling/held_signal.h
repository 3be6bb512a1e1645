/* Holding a tick's signal back while a thread waits, so that no tick interrupts the call that it waits in. */
#ifndef PITWALL_HELD_SIGNAL_H
#define PITWALL_HELD_SIGNAL_H

#include <stdbool.h>

/* Ticks come by signal from here on, or no longer. */
void pw_signal_is_handled(bool handled);

/* The calling thread lets go of the GVL: its ticks wait until it is back. All functions but the first:
 * async-signal-safe */
void pw_signal_hold_back(void);
/* It is back: whether a recording is under way or not. */
void pw_signal_let_through(void);
/* C code is about to wait in the calling thread. The signal that stays blocked meanwhile; 0: none, and _ends is not
 * to be called. */
int pw_signal_wait_begins(void);
void pw_signal_wait_ends(void);
/* Has a thread anywhere the signal still blocked? */
bool pw_signal_held_back(void);
void pw_signal_in_child(void); /* after a fork */

#endif
