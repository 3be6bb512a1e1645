#ifndef FASTBOOT_REQUIRE_H
#define FASTBOOT_REQUIRE_H

#include <ruby.h>

/* Defines what LoadIndex needs to stand before Kernel#require. */
void fb_define_require(VALUE native);

/* Was this Kernel#require called since the last question? Then nobody has replaced it. */
int fb_require_was_called(void);

#endif
