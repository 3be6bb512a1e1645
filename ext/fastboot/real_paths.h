#ifndef FASTBOOT_REAL_PATHS_H
#define FASTBOOT_REAL_PATHS_H

#include <ruby.h>

#include "pack.h"

/* Spares Ruby the search for the real path of a file that it is going to load, if no part of the path is a symbolic
 * link. `path` is the name that `require` was given, or the file that was found for it. Names that are not absolute are
 * left to Ruby. */
void fb_know_real_path(VALUE path);

/* The same for the files of a pack that lie in the folder of a file, once for each folder. `require_relative` was
 * called, which Ruby answers alone, and it is likely to ask for these files next. */
void fb_know_real_paths_beside(struct fb_pack *pack, VALUE path);

void fb_define_real_paths(VALUE native);

#endif
