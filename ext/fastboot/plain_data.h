#ifndef FASTBOOT_PLAIN_DATA_H
#define FASTBOOT_PLAIN_DATA_H

#include <ruby.h>

/* Defines Native.plain_data(bytes, frozen) -> the objects that Pitwall::Fastboot::PlainData wrote. */
void fb_define_plain_data(VALUE native);

#endif
