/* Beginning and ending a recording run Ruby code here and there, and so let other threads run. Those threads must
 * not begin or end what is half begun or half ended. All functions need the GVL. */
#ifndef PITWALL_CHANGE_H
#define PITWALL_CHANGE_H

#include <ruby/ruby.h>
#include <stdbool.h>

/* Is the recording being begun or ended? */
bool pw_changing(void);
/* Runs `what` while no other thread changes the recording. Not to be called during a change. Raises what
 * pw_raise_after was given. */
VALUE pw_change(VALUE (*what)(VALUE), VALUE argument);
/* The same, but waits for another thread's change. Within a change of its own thread (a trap's code) it just runs
 * `what`. */
void pw_change_alone(VALUE (*what)(VALUE));
/* An exception of the program's, to be raised once the recording has ended. */
void pw_raise_after(VALUE exception);
/* In a forked child: the changing thread did not come along. */
void pw_forget_change(void);

void pw_change_init(void);

#endif
