/* Replaces exec and exit!: completes the recording before the process ends. */
#ifndef PITWALL_ENDINGS_H
#define PITWALL_ENDINGS_H

#include <ruby/ruby.h>

void pw_endings_init(VALUE native);

#endif
