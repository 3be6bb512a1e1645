/* exec and exit!: the recording is completed before them. */
#ifndef PITWALL_ENDINGS_H
#define PITWALL_ENDINGS_H

#include <ruby/ruby.h>

void pw_endings_init(VALUE native);

#endif
