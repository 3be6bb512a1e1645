/* The proof that own walks see what Ruby's rb_profile_frames sees: at load for a thread's own stack, on demand from
 * outside. */
#ifndef PITWALL_WALK_TESTS_H
#define PITWALL_WALK_TESTS_H

#include <ruby/ruby.h>

/* Proves the layout. To be called before any walk. needs GVL */
void pw_walk_tests_init(VALUE native);

/* NULL, or why stacks can't be read from outside here. needs GVL */
const char *pw_outside_refusal(void);

#endif
