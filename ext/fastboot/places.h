#ifndef FASTBOOT_PLACES_H
#define FASTBOOT_PLACES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "pack.h"

/*
 * Where a file is and what it looks like. Compiled code contains the file's path and its real path. So a key is the
 * path alone if the real path is the same. Otherwise it is the path, a zero byte, and the real path.
 */
struct fb_place {
    char key[FB_LONGEST_KEY];
    size_t key_length;
    struct fb_attributes attributes; /* as they are now; fb_settled says whether to rely on them */
    int readable;                    /* may this process read the file? 0: no, or in doubt */
};

/* Returns 1, or 0 where there is no regular file, or a path that is not absolute or too long. Makes one system call
 * for a file whose folder was seen less than a second ago. needs GVL: the table of folders is shared. */
int fb_place_of(const char *path, size_t length, struct fb_place *place);

/* Is it a folder, is the path absolute, and was no part of the path a symbolic link within the last second, or since
 * fb_forget_folders? needs GVL, too. */
int fb_is_plain_folder(const char *path);

/* What is known of folders may be old. needs GVL, too. */
void fb_forget_folders(void);

/* Is there a regular file that this process may read, and is no part of its path a symbolic link? needs GVL, too. */
int fb_is_plain_file(const char *path, size_t length);

/* Did the file change so long ago that another change would have given it another change time? Users can set mtime,
 * but not ctime. `now_ns` is the time before the file was read. */
int fb_settled(const struct fb_attributes *attributes, uint64_t now_ns);

struct fb_attributes fb_attributes_of(const struct stat *found);

uint64_t fb_now_ns(void);

/* Is there a regular file that this process may read? -1: there is something, but who may read it is in doubt.
 * own_real_path: is the path absolute, and is no part of it a symbolic link? needs GVL, too. */
int fb_readable(const char *path, int *own_real_path);

#endif
