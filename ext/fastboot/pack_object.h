#ifndef FASTBOOT_PACK_OBJECT_H
#define FASTBOOT_PACK_OBJECT_H

#include <ruby.h>

#include "pack.h"

/* Defines Native::Pack: a pack as Ruby sees it. */
void fb_define_pack(VALUE native);

/* The pack of such an object. Raises TypeError for others. */
struct fb_pack *fb_pack_of(VALUE object);

/* The compiled code or the data of a file; :odd (no plain file), :missing, :changed (the file may have changed),
 * :damaged or :refused (Ruby doesn't take the code). */
VALUE fb_load_from_pack(const struct fb_pack *pack, enum fb_kind kind, VALUE path, uint64_t options);

/* [device, inode, size, mtime_ns, ctime_ns] */
VALUE fb_attributes_value(const struct fb_attributes *attributes);

#endif
