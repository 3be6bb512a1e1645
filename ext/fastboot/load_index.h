#ifndef FASTBOOT_LOAD_INDEX_H
#define FASTBOOT_LOAD_INDEX_H

#include <ruby.h>

#include <string.h>

static inline int
fb_ends_with(VALUE name, const char *ending)
{
    long length = RSTRING_LEN(name), ending_length = (long)strlen(ending);
    return length >= ending_length && memcmp(RSTRING_PTR(name) + length - ending_length, ending, ending_length) == 0;
}

/* Defines Pitwall::Fastboot::Native::LoadIndex. lib/pitwall/fastboot/load_index.rb says what it is for. */
void fb_define_load_index(VALUE native);

/* Its methods `taken?` and `search`. */
int fb_index_taken(VALUE index, VALUE load_path);
VALUE fb_index_search(VALUE index, VALUE name, VALUE only_files);

#endif
