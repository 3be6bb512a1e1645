/*
 * Real paths that Ruby need not look for. `require` loads a file only if no file with the same real path is loaded. To
 * find the real path takes a system call for each folder of the path. Ruby 3.3 and newer keeps real paths in a Hash. No
 * interface gives this Hash, but the VM refers to it. A path without a symbolic link is its own real path. Files with
 * such a path are added to the Hash before Ruby loads them: files of `require` one by one, files of `require_relative`
 * by folders.
 */
#include "real_paths.h"

#include <ruby/encoding.h>

#include <string.h>

#include "places.h"
#include "tools.h"

static VALUE real_paths = Qnil; /* Ruby's Hash: path => real path, both interned; nil: not found */
static unsigned long added;

enum { MOST_BESIDE = 1000 }; /* files of one folder: the program may load few of them */

#ifdef HAVE_RB_OBJSPACE_REACHABLE_OBJECTS_FROM_ROOT

enum { MOST_HIDDEN = 16 }; /* there are 2 to 4 */

void rb_objspace_reachable_objects_from_root(void (*)(const char *category, VALUE object, void *data), void *data);

struct hidden {
    VALUE hashes[MOST_HIDDEN];
    int count;
};

/* Ruby's Hash has no class, so that programs can't see it. */
static void
note_hidden(const char *category, VALUE object, void *data)
{
    struct hidden *hidden = data;
    if (strcmp(category, "vm") != 0 || RB_SPECIAL_CONST_P(object) || RB_BUILTIN_TYPE(object) != T_HASH) return;
    if (RBASIC_CLASS(object) == 0 && hidden->count < MOST_HIDDEN) hidden->hashes[hidden->count++] = object;
}

static void
find_real_paths(VALUE path, VALUE real_path)
{
    struct hidden hidden = {.count = 0};
    rb_objspace_reachable_objects_from_root(note_hidden, &hidden);
    for (int i = 0; i < hidden.count; i++) {
        VALUE found = rb_hash_lookup(hidden.hashes[i], path);
        if (RB_TYPE_P(found, T_STRING) && RTEST(rb_str_equal(found, real_path))) real_paths = hidden.hashes[i];
    }
}

#else

static void
find_real_paths(VALUE path, VALUE real_path)
{
}

#endif

/* Is it a path that Ruby would look up as it is? */
static int
is_simple(VALUE path)
{
    if (NIL_P(real_paths) || !RB_TYPE_P(path, T_STRING)) return 0;
    /* If the name is of a subclass of String, and the real path is known, Ruby 3.4 and 4.0 give a wrong __FILE__. */
    if (RBASIC_CLASS(path) != rb_cString || rb_ivar_count(path) > 0) return 0;
    if (RSTRING_LEN(path) == 0 || RSTRING_PTR(path)[0] != '/') return 0;
    /* For a path in another encoding, Ruby's real path may have a third encoding. */
    rb_encoding *encoding = rb_enc_get(path);
    if (encoding != rb_filesystem_encoding() && encoding != rb_utf8_encoding()) return 0;
    return rb_enc_str_asciionly_p(path);
}

/* Adds a path to Ruby's Hash if the path is its own real path. For the path, is_simple is true.
 * own_real_path: as for fb_know_real_path */
static void
know(VALUE path, int own_real_path)
{
    if (!NIL_P(rb_hash_lookup(real_paths, path))) return;
    if (!own_real_path && !fb_is_plain_file(RSTRING_PTR(path), (size_t)RSTRING_LEN(path))) return;
    /* A copy: the program may change its own String. */
    VALUE known = rb_enc_interned_str(RSTRING_PTR(path), RSTRING_LEN(path), rb_enc_get(path));
    RB_GC_GUARD(path);
    rb_hash_aset(real_paths, known, known);
    added++;
}

void
fb_know_real_path(VALUE path, int own_real_path)
{
    if (!is_simple(path)) return;
    if (!fb_ends_with(path, ".rb") && !fb_ends_with(path, ".so")) path = rb_str_plus(path, rb_str_new_cstr(".rb"));
    know(path, own_real_path);
}

void
fb_know_real_paths_beside(struct fb_pack *pack, VALUE path)
{
    if (!is_simple(path)) return;
    rb_encoding *encoding = rb_enc_get(path);
    const char *text = RSTRING_PTR(path);
    size_t length = (size_t)RSTRING_LEN(path), folder = fb_folder_length(text, length);
    struct fb_entry *entry = fb_pack_second_of_folder(pack, text, length);
    for (int i = 0; entry && i < MOST_BESIDE; i++, entry = fb_pack_beside(pack, entry)) {
        if (entry->head->key_length <= folder || memcmp(entry->key, text, folder) != 0) continue; /* hashes collide */
        VALUE other = rb_enc_str_new(entry->key, (long)entry->head->key_length, encoding);
        if (rb_enc_str_asciionly_p(other)) know(other, 0);
    }
    RB_GC_GUARD(path);
}

/* know_real_paths(path, real path): of a file that `require` is loading or has loaded. Ruby's Hash is the one that has
 * this path with this real path. If there is no such Hash, real paths are never added. While this function runs, no
 * other Ractor may run, because it could change what the VM refers to. */
static VALUE
native_know_real_paths(VALUE self, VALUE path, VALUE real_path)
{
    StringValue(path);
    StringValue(real_path);
    find_real_paths(path, real_path);
    return Qnil;
}

/* real_paths -> how many files Ruby was spared to look for */
static VALUE
native_real_paths(VALUE self)
{
    return ULONG2NUM(added);
}

void
fb_define_real_paths(VALUE native)
{
    fb_hold((VALUE *const[]){&real_paths, NULL});
    rb_define_singleton_method(native, "know_real_paths", native_know_real_paths, 2);
    rb_define_singleton_method(native, "real_paths", native_real_paths, 0);
}
