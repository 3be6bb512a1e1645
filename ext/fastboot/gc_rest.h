#ifndef FASTBOOT_GC_REST_H
#define FASTBOOT_GC_REST_H

#include <ruby.h>

/* A file is being loaded. needs GVL */
void fb_gc_rest_loads(void);

/* Defines Native.rest_gc, and Fastboot::GCMethods, which stands before GC's own methods. */
void fb_define_gc_rest(VALUE fastboot, VALUE native);

#endif
