/* Pitwall's own work in the middle of a call of the program, which must not see an exception of that work. */
#ifndef PITWALL_QUIETLY_H
#define PITWALL_QUIETLY_H

#include <ruby/ruby.h>
#include <stdbool.h>

enum { PW_FORGOTTEN = -1 };

/* Runs the function. 0: it returned, and `result` (may be NULL) has its value. PW_FORGOTTEN: it raised a StandardError,
 * which is forgotten; `$!` is as before. Any other number is for pw_go_on. needs GVL */
int pw_quietly(VALUE (*function)(VALUE data), VALUE data, VALUE *result);

/* Runs the function and forgets what it raised, whatever that was; `$!` is as before. True: it returned. `result` (may
 * be NULL) is its value, or nil. needs GVL */
bool pw_attempt(VALUE (*function)(VALUE data), VALUE data, VALUE *result);

/* Lets what is not Pitwall's own go on after the caller has tidied up: an Interrupt, `exit`, Thread#kill. */
static inline void
pw_go_on(int state)
{
    if (state > 0) rb_jump_tag(state);
}

#endif
