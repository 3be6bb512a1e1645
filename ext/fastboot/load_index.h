#ifndef FASTBOOT_LOAD_INDEX_H
#define FASTBOOT_LOAD_INDEX_H

#include <ruby.h>

/* Defines Pitwall::Fastboot::Native::LoadIndex. lib/pitwall/fastboot/load_index.rb says what it is for. */
void fb_define_load_index(VALUE native);

/* Its methods `taken?` and `search`. */
int fb_index_taken(VALUE index, VALUE load_path);
VALUE fb_index_search(VALUE index, VALUE name, VALUE only_files);

#endif
