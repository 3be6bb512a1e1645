#ifndef FASTBOOT_OBJECT_SUM_H
#define FASTBOOT_OBJECT_SUM_H

#include <ruby.h>

void fb_define_object_sum(VALUE native);

#endif
