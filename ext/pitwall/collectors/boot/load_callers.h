/* Who asked for a load. */
#ifndef PITWALL_LOAD_CALLERS_H
#define PITWALL_LOAD_CALLERS_H

#include <ruby/ruby.h>
#include <stdbool.h>

/* A recording begins. Calls a Ruby method. needs GVL */
void pw_load_callers_start(void);
/* The file of the innermost Ruby line outside of libraries that stand between a program and Ruby's own `require`, and
 * the line. Qnil and 0: none. needs GVL */
VALUE pw_load_asked_by(int *line);
/* Is the calling `require` that of an autoloaded constant? needs GVL */
bool pw_load_is_autoload(void);

#endif
