/* For Pitwall's own work inside a call of the program. The program must not see an exception of Pitwall's work. */
#ifndef PITWALL_QUIETLY_H
#define PITWALL_QUIETLY_H

#include <ruby/ruby.h>
#include <stdbool.h>

enum { PW_FORGOTTEN = -1 };

/* Use it in a hook of the program, or around a method of the program. Runs the function. 0: it returned, and `result`
 * (may be NULL) has its value. PW_FORGOTTEN: it raised a StandardError, which is forgotten; `$!` is as before. Any
 * other number: something else ended the function (Interrupt, `exit`, Thread#kill). Tidy up, then pass the number to
 * pw_go_on. needs GVL */
int pw_quietly(VALUE (*function)(VALUE data), VALUE data, VALUE *result);

/* Use it for work that runs no code of the program for long: in jobs, at the start and end of a recording, for a name.
 * Runs the function. Forgets everything that ended it, also Interrupt, `exit` and Thread#kill; `$!` is as before.
 * True: it returned. `result` (may be NULL) is its value, or nil. needs GVL */
bool pw_attempt(VALUE (*function)(VALUE data), VALUE data, VALUE *result);

/* Call it after tidying up. Lets an Interrupt, `exit` or Thread#kill go on. Does nothing for 0 and PW_FORGOTTEN. */
static inline void
pw_go_on(int state)
{
    if (state > 0) rb_jump_tag(state);
}

#endif
