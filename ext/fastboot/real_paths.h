#ifndef FASTBOOT_REAL_PATHS_H
#define FASTBOOT_REAL_PATHS_H

#include <ruby.h>

#include "pack.h"

/* Spares Ruby the search for the real path of a file that it is going to load, if no part of the path is a symbolic
 * link. `path` is the name that `require` was given, or the file that was found for it. Names that are not absolute are
 * left to Ruby.
 * own_real_path: 1 if the caller has just looked at the path, and no part of it is a symbolic link; else 0 */
void fb_know_real_path(VALUE path, int own_real_path);

/* The same for the files of a pack that lie in the folder of this one. To be called for each file that is loaded
 * without `require`. When it is called for the second file of a folder, it is likely that the program loads the others
 * by `require_relative`, too, which Ruby answers alone. They are looked at then, once for each folder. */
void fb_know_real_paths_beside(struct fb_pack *pack, VALUE path);

void fb_define_real_paths(VALUE native);

#endif
