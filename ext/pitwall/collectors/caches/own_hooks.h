/* Hooks that the program defines itself (method_added, const_added…). A hook that does not call `super` hides the
 * change from Ruby's own hook, which Pitwall watches. So each such method is watched by a TracePoint of its own. Other
 * code is not traced. Another TracePoint watches TracePoint#enable. */
#ifndef PITWALL_OWN_HOOKS_H
#define PITWALL_OWN_HOOKS_H

#include <ruby/ruby.h>

/* May raise. needs GVL */
void pw_own_hooks_start(void);
void pw_own_hooks_stop(void);

#endif
