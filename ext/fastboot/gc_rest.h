#ifndef FASTBOOT_GC_REST_H
#define FASTBOOT_GC_REST_H

#include <ruby.h>

/* A file is being loaded. needs GVL */
void fb_gc_rest_loads(void);

/* Defines Native.rest_gc and Native.gc_rests. */
void fb_define_gc_rest(VALUE native);

#endif
