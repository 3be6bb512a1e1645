#ifndef FASTBOOT_PREFAULT_H
#define FASTBOOT_PREFAULT_H

#include <ruby.h>

/* A file is being loaded. needs GVL */
void fb_prefault_loads(void);

/* Defines Native.prefault and Native.prefaults. */
void fb_define_prefault(VALUE native);

#endif
