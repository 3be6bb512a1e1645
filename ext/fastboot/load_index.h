#ifndef FASTBOOT_LOAD_INDEX_H
#define FASTBOOT_LOAD_INDEX_H

#include <ruby.h>

/* Defines Pitwall::Fastboot::Native::LoadIndex. lib/pitwall/fastboot/load_index.rb says what it is for. */
void fb_define_load_index(VALUE native);

/* Does $LOAD_PATH still have the elements that `take` was given? They are compared by identity, as Ruby does. */
int fb_index_taken(VALUE index, VALUE load_path);

/* Returns the path of the file that Ruby would find, in the file system's encoding. False: there is no such file.
 * nil: in doubt. `name` is relative and has no zero byte. `only_files` is false if Ruby may have extensions without a
 * file. Sets `own_real_path` if a path is returned: is it the file's real path? */
VALUE fb_index_search(VALUE index, VALUE name, VALUE only_files, int *own_real_path);

#endif
