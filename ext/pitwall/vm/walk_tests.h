/* Proves that own walks see the frames that Ruby's rb_profile_frames sees. The proof for a thread's own stack runs
 * at load. The proof for reading from outside runs on demand. */
#ifndef PITWALL_WALK_TESTS_H
#define PITWALL_WALK_TESTS_H

#include <ruby/ruby.h>

/* Proves the layout. Must be called before any walk. needs GVL */
void pw_walk_tests_init(VALUE native);

/* NULL, or why stacks can't be read from outside here. needs GVL */
const char *pw_outside_refusal(void);

#endif
