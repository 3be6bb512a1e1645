/* C methods that change classes, methods or constants. While a recording runs, each method calls a function of Pitwall
 * in place of its own (vm/replaced_methods.h). Pitwall's function calls the method's own function, and notes the change. */
#ifndef PITWALL_WATCHED_METHODS_H
#define PITWALL_WATCHED_METHODS_H

#include <ruby/ruby.h>

/* Returns NULL, or why the methods can't be watched. May raise. needs GVL */
const char *pw_watched_methods_start(void);
void pw_watched_methods_stop(void);

#endif
