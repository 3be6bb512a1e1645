#ifndef FASTBOOT_LOAD_INDEX_H
#define FASTBOOT_LOAD_INDEX_H

#include <ruby.h>

/* Defines Pitwall::Fastboot::Native::LoadIndex. lib/pitwall/fastboot/load_index.rb says what it is for. */
void fb_define_load_index(VALUE native);

/* Is $LOAD_PATH what was taken last? Elements are compared by identity, as Ruby does. */
int fb_index_taken(VALUE index, VALUE load_path);

/* The path that Ruby would find; false: there is none; nil: it is in doubt. `name` is relative, without a zero byte.
 * only_files: are there only extensions that are files? */
VALUE fb_index_search(VALUE index, VALUE name, VALUE only_files);

#endif
