/*
 * pitwall/fastboot_pack: what `require "pitwall/fastboot"` needs of C. It loads and tests nothing when it is loaded.
 * All functions here need the GVL.
 *
 * Reading order:
 *   pack.h         the file; pack_object.c: a pack as Ruby sees it
 *   places.h       is a file what it was?
 *   require.c      stands before Kernel#require; load_index.c: which folder has a name
 *   real_paths.c   tells Ruby the real paths of files
 *   code.c         gives Ruby the code of a file
 *   data.c         methods that load YAML, JSON and time zone files
 *   plain_data.c   results of YAML and JSON files as bytes; zone_data.c: those of time zones
 *   gc_rest.c      garbage collection rests meanwhile; memory_limits.c: what limits memory; extension_frames.c: does
 *                  a C extension wait?
 *   prefault.c     touches new memory before it is needed; outside_thread.c: a thread that Ruby does not know
 *   object_sum.c   has an object changed?
 */
#include <ruby.h>
#include <ruby/ractor.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code.h"
#include "data.h"
#include "gc_rest.h"
#include "load_index.h"
#include "main_ractor.h"
#include "object_sum.h"
#include "pack_object.h"
#include "places.h"
#include "plain_data.h"
#include "prefault.h"
#include "real_paths.h"
#include "require.h"
#include "tools.h"
#include "zone_data.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "packs are little-endian"
#endif

static VALUE warning_module, fastboot; /* Pitwall::Fastboot */
static VALUE daemon_before = Qnil;    /* the Method that was replaced */

/* ---- The main Ractor ---- */

static rb_ractor_local_key_t main_only; /* non-NULL in the main Ractor */
static const struct rb_ractor_local_storage_type nothing_to_free = {NULL, NULL};

void
fb_note_main_ractor(void)
{
    main_only = rb_ractor_local_storage_ptr_newkey(&nothing_to_free);
    rb_ractor_local_storage_ptr_set(main_only, &main_only);
}

int
fb_in_main_ractor(void)
{
    return rb_ractor_local_storage_ptr(main_only) != NULL;
}

/* ---- Files ---- */

static VALUE
native_digest(VALUE self, VALUE string)
{
    uint8_t digest[FB_DIGEST_SIZE];
    StringValue(string);
    fb_blake2b(RSTRING_PTR(string), (size_t)RSTRING_LEN(string), digest);
    return rb_str_new((const char *)digest, sizeof digest);
}

static VALUE
native_sum(VALUE self, VALUE string)
{
    StringValue(string);
    return ULL2NUM(fb_sum(RSTRING_PTR(string), (size_t)RSTRING_LEN(string)));
}

/* place(path) -> [key, attributes], or nil where it is no plain file. */
static VALUE
native_place(VALUE self, VALUE path)
{
    struct fb_place place;
    StringValue(path);
    if (!fb_place_of(RSTRING_PTR(path), (size_t)RSTRING_LEN(path), &place)) return Qnil;
    return rb_assoc_new(rb_str_new(place.key, (long)place.key_length), fb_attributes_value(&place.attributes));
}

static VALUE
content_of(int descriptor, const struct stat *before)
{
    size_t size = (size_t)before->st_size, got = 0;
    VALUE content = rb_str_new(NULL, (long)size + 1); /* one more: has it grown? */
    while (got <= size) {
        ssize_t count = read(descriptor, RSTRING_PTR(content) + got, size + 1 - got);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return Qnil;
        if (count == 0) break;
        got += (size_t)count;
    }
    return got == size ? native_digest(Qnil, rb_str_substr(content, 0, (long)size)) : Qnil;
}

/* read(path) -> [digest of the content, attributes]; the ctime is 0 where the file changed too recently. nil where it
 * can't be read, or changes meanwhile. */
static VALUE
native_read(VALUE self, VALUE path)
{
    struct stat before = {0}, after = {0};
    uint64_t now_ns = fb_now_ns();
    int descriptor = open(StringValueCStr(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return Qnil;
    VALUE digest = Qnil;
    if (fstat(descriptor, &before) == 0 && S_ISREG(before.st_mode) && before.st_size < 1 << 28) {
        digest = content_of(descriptor, &before);
    }
    int known = fstat(descriptor, &after) == 0;
    close(descriptor);
    struct fb_attributes first = fb_attributes_of(&before), last = fb_attributes_of(&after);
    if (NIL_P(digest) || !known || !fb_attributes_equal(&first, &last)) return Qnil;
    if (!fb_settled(&last, now_ns)) last.ctime_ns = 0;
    return rb_assoc_new(digest, fb_attributes_value(&last));
}

/* settled?(ctime_ns) -> would a change from now on give the file another change time? */
static VALUE
native_settled(VALUE self, VALUE changed_ns)
{
    struct fb_attributes attributes = {.ctime_ns = NUM2ULL(changed_ns)};
    return fb_settled(&attributes, fb_now_ns()) ? Qtrue : Qfalse;
}

/* ---- Warnings ---- */

static VALUE listener = Qnil, plain_warn = Qnil; /* the module Warnings; an UnboundMethod */

/* Warning#warn: tells of the call, and calls the method that it has replaced. It is in C, so that backtraces and the
 * method's parameters stay as they are. */
static VALUE
warning_warn(int argc, VALUE *argv, VALUE self)
{
    if (fb_in_main_ractor()) rb_funcall(listener, rb_intern("note"), 0);
    VALUE method = rb_funcall(plain_warn, rb_intern("bind"), 1, self);
    return rb_method_call_kw(argc, argv, method, rb_keyword_given_p());
}

/* Native.replace_warn(the module Warnings, the UnboundMethod of now) */
static VALUE
native_replace_warn(VALUE self, VALUE module, VALUE plain)
{
    listener = module;
    plain_warn = plain;
    fb_redefine(rb_define_method, warning_module, "warn", warning_warn, -1);
    return Qnil;
}

/* Process.daemon. It makes a child, which goes on as this program, and ends this process without at_exit. */
static VALUE
process_daemon(int argc, VALUE *argv, VALUE self)
{
    VALUE is_same = fb_in_main_ractor() ? rb_funcall(fastboot, rb_intern("before_daemon"), 0) : Qfalse;
    VALUE result = rb_method_call(argc, argv, daemon_before);
    if (RTEST(is_same)) rb_funcall(fastboot, rb_intern("after_daemon"), 0);
    return result;
}

/* watch_daemons: Fastboot.before_daemon and after_daemon are called from now on. */
static VALUE
native_watch_daemons(VALUE self)
{
    daemon_before = fb_replace_method(rb_mProcess, "daemon", process_daemon, -1);
    return Qnil;
}

RUBY_FUNC_EXPORTED void
Init_fastboot_pack(void)
{
    rb_ext_ractor_safe(true);
    fb_note_main_ractor();
    warning_module = rb_path2class("Warning");
    fb_hold((VALUE *const[]){&fastboot, &warning_module, &listener, &plain_warn, &daemon_before, NULL});

    fastboot = rb_define_module_under(rb_define_module("Pitwall"), "Fastboot");
    VALUE native = rb_define_module_under(fastboot, "Native");
    rb_define_singleton_method(native, "digest", native_digest, 1);
    rb_define_singleton_method(native, "sum", native_sum, 1);
    rb_define_singleton_method(native, "place", native_place, 1);
    rb_define_singleton_method(native, "read", native_read, 1);
    rb_define_singleton_method(native, "settled?", native_settled, 1);
    rb_define_singleton_method(native, "watch_daemons", native_watch_daemons, 0);
    rb_define_singleton_method(native, "replace_warn", native_replace_warn, 2);
    fb_define_pack(native);
    fb_define_require(native);
    fb_define_real_paths(native);
    fb_define_code(fastboot, native);
    fb_define_gc_rest(native);
    fb_define_prefault(native);
    fb_define_load_index(native);
    fb_define_data(native);
    fb_define_plain_data(native);
    fb_define_zone_data(native);
    fb_define_object_sum(native);
}
