#ifndef FASTBOOT_DATA_H
#define FASTBOOT_DATA_H

#include <ruby.h>

/* Defines Native.serve_data, and the methods that replace Psych.load_file, JSON.load_file and their variants. */
void fb_define_data(VALUE native);

/* Ruby is going to load a file of code: it may define or change Psych or JSON. */
void fb_note_load(void);

#endif
