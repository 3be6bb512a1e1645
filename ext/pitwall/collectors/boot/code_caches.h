/* Caches of compiled code say where a file's code came from. */
#ifndef PITWALL_CODE_CACHES_H
#define PITWALL_CODE_CACHES_H

#include <ruby/ruby.h>

void pw_code_caches_init(VALUE native);

#endif
