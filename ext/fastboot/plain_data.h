#ifndef FASTBOOT_PLAIN_DATA_H
#define FASTBOOT_PLAIN_DATA_H

#include <ruby.h>

/* Defines Native.plain_data(bytes, frozen). It reads what Pitwall::Fastboot::PlainData.dump wrote, and returns the same
 * objects, made anew. */
void fb_define_plain_data(VALUE native);

#endif
