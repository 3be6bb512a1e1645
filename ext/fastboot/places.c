#include "places.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define SETTLED_AFTER_NS (3 * SECOND) /* more than the coarsest change times of file systems, 2 s */

/* Folders that were found to be no symbolic links, nor below any: a hash table of copied paths. The table is emptied
 * each second, because the program may put a link in the place of a folder. */
static struct {
    char **paths;
    size_t count, capacity;
    uint64_t until_ns; /* when the table is emptied next */
} folders;

static uint64_t
nanoseconds(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec;
}

static size_t
folder_slot(char **paths, size_t capacity, const char *path, size_t length)
{
    for (size_t i = fb_sum(path, length) & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
        const char *found = paths[i];
        if (!found || (strncmp(found, path, length) == 0 && found[length] == 0)) return i;
    }
}

void
fb_forget_folders(void)
{
    for (size_t i = 0; i < folders.capacity; i++) {
        free(folders.paths[i]);
        folders.paths[i] = NULL;
    }
    folders.count = 0;
}

static void
forget_old_folders(void)
{
    struct timespec clock;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &clock);
    uint64_t now = nanoseconds(&clock);
    if (now < folders.until_ns) return;
    folders.until_ns = now + SECOND;
    fb_forget_folders();
}

static void
remember_folder(const char *path, size_t length)
{
    if (folders.count * 2 >= folders.capacity) {
        size_t capacity = folders.capacity ? folders.capacity * 2 : 1024;
        char **paths = calloc(capacity, sizeof *paths);
        if (!paths) return;
        for (size_t i = 0; i < folders.capacity; i++) {
            char *moved = folders.paths[i];
            if (moved) paths[folder_slot(paths, capacity, moved, strlen(moved))] = moved;
        }
        free(folders.paths);
        folders.paths = paths;
        folders.capacity = capacity;
    }
    char *copy = strndup(path, length);
    if (!copy) return;
    folders.paths[folder_slot(folders.paths, folders.capacity, path, length)] = copy;
    folders.count++;
}

static int
is_remembered(const char *path, size_t length)
{
    return folders.capacity && folders.paths[folder_slot(folders.paths, folders.capacity, path, length)];
}

/* Is neither this folder nor one above it a symbolic link? `path` is absolute, without a slash at its end. */
static int
is_plain_folder(const char *path, size_t length)
{
    forget_old_folders();
    size_t known = length; /* the lowest folder of the path that was seen before */
    while (known > 0 && !is_remembered(path, known)) {
        do known--;
        while (path[known] != '/');
    }
    if (known == length) return 1;

    char copy[PATH_MAX];
    memcpy(copy, path, length);
    while (known < length) {
        size_t end = known + 1;
        while (end < length && path[end] != '/') end++;
        copy[end] = 0;
        struct stat found;
        if (lstat(copy, &found) != 0 || !S_ISDIR(found.st_mode)) return 0;
        remember_folder(path, end);
        copy[end] = '/';
        known = end;
    }
    return 1;
}

struct fb_attributes
fb_attributes_of(const struct stat *found)
{
    return (struct fb_attributes){
        .device = found->st_dev, .inode = found->st_ino, .size = (uint64_t)found->st_size,
        .mtime_ns = nanoseconds(&found->st_mtim), .ctime_ns = nanoseconds(&found->st_ctim),
    };
}

/* May this process read the file? The groups of the process are not looked up. If they would decide, returns 0. */
static int
may_read(const struct stat *found)
{
    const mode_t everyone = S_IRUSR | S_IRGRP | S_IROTH;
    if ((found->st_mode & everyone) == everyone) return 1; /* without a system call */
    uid_t user = geteuid();
    if (user == 0) return 1;
    if (found->st_uid == user) return (found->st_mode & S_IRUSR) != 0;
    return (found->st_mode & S_IRGRP) && (found->st_mode & S_IROTH);
}

static int
take_attributes(const struct stat *found, struct fb_place *place)
{
    place->attributes = fb_attributes_of(found);
    place->readable = may_read(found);
    return S_ISREG(found->st_mode);
}

/* Copies an absolute path, and looks at what is there. Returns 0 where that can't be done. */
static int
look_at(const char *path, size_t length, char copy[PATH_MAX], struct stat *found)
{
    if (length == 0 || length >= PATH_MAX || path[0] != '/' || memchr(path, 0, length)) return 0;
    memcpy(copy, path, length);
    copy[length] = 0;
    return lstat(copy, found) == 0;
}

/* Has an absolute path an empty part, or a part "." or ".."? */
static int
has_odd_parts(const char *path)
{
    const char *last = strrchr(path, '/') + 1;
    if (*last == 0 || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) return 1;
    return strstr(path, "//") || strstr(path, "/./") || strstr(path, "/../");
}

/* Is it its own real path? */
static int
is_plain(const char *path, const struct stat *found)
{
    if (S_ISLNK(found->st_mode) || has_odd_parts(path)) return 0;
    return is_plain_folder(path, (size_t)(strrchr(path, '/') - path));
}

int
fb_is_plain_folder(const char *path)
{
    size_t length = strlen(path);
    return length < PATH_MAX && path[0] == '/' && !has_odd_parts(path) && is_plain_folder(path, length);
}

int
fb_is_plain_file(const char *path, size_t length)
{
    char copy[PATH_MAX];
    struct stat found;
    return look_at(path, length, copy, &found) && S_ISREG(found.st_mode) && may_read(&found) && is_plain(copy, &found);
}

int
fb_place_of(const char *path, size_t length, struct fb_place *place)
{
    char copy[PATH_MAX];
    struct stat found;
    if (!look_at(path, length, copy, &found)) return 0;
    memcpy(place->key, copy, length);
    place->key_length = length;
    if (is_plain(copy, &found)) return take_attributes(&found, place);

    char real[PATH_MAX];
    if (!realpath(copy, real)) return 0;
    size_t real_length = strlen(real);
    if (length + 1 + real_length > FB_LONGEST_KEY) return 0;
    place->key[length] = 0;
    memcpy(place->key + length + 1, real, real_length);
    place->key_length = length + 1 + real_length;
    return lstat(real, &found) == 0 && take_attributes(&found, place);
}

int
fb_settled(const struct fb_attributes *attributes, uint64_t now_ns)
{
    uint64_t changed = attributes->ctime_ns;
    return changed > 0 && changed < now_ns && now_ns - changed > SETTLED_AFTER_NS;
}

uint64_t
fb_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds(&now);
}

int
fb_readable(const char *path, int *own_real_path)
{
    struct stat found;
    *own_real_path = 0;
    int failure = lstat(path, &found), is_link = !failure && S_ISLNK(found.st_mode);
    if (is_link) failure = stat(path, &found);
    if (failure) return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
    if (!S_ISREG(found.st_mode) || !may_read(&found)) return -1;
    *own_real_path = !is_link && path[0] == '/' && is_plain(path, &found);
    return 1;
}
