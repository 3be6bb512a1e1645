/* A change begins or ends the recording. A change runs Ruby code at some points, so other threads may run during it.
 * Other threads must not begin or end the recording during a change. All functions need the GVL. */
#ifndef PITWALL_CHANGE_H
#define PITWALL_CHANGE_H

#include <ruby/ruby.h>
#include <stdbool.h>

/* Is a change under way? */
bool pw_changing(void);
/* Runs `what` as a change. Must not be called during a change. Afterwards raises the exception that pw_raise_after
 * got, if any. */
VALUE pw_change(VALUE (*what)(VALUE), VALUE argument);
/* Runs `what` as a change, after waiting for another thread's change to end. If the calling thread itself is in a
 * change (a trap's code), runs `what` as a part of that change. */
void pw_change_alone(VALUE (*what)(VALUE));
/* Keeps an exception of the program. pw_change raises the exception after the change. */
void pw_raise_after(VALUE exception);
/* In a forked child: forgets the change, because the changing thread does not exist in the child. */
void pw_forget_change(void);

void pw_change_init(void);

#endif
