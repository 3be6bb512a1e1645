#ifndef FASTBOOT_DATA_H
#define FASTBOOT_DATA_H

#include <ruby.h>

/* Defines Native.serve_data, and the methods that stand in the place of those of libraries that parse files. */
void fb_define_data(VALUE native);

/* Ruby is going to load a file of code: it may define or change such a library. */
void fb_note_load(void);

#endif
