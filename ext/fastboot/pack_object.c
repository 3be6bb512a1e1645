#include "pack_object.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "places.h"

/* Bytes of compiled code that are read before pages of the pack are released. */
enum { RELEASE_AFTER = 4 << 20 };

static VALUE iseq_class;
static ID id_load_from_binary;

/* A pack stays mapped while the process lives: loaded code may refer to it. */
static size_t
pack_memsize(const void *data)
{
    const struct fb_pack *pack = data;
    size_t tables = 1 + (pack->contents != NULL) + (pack->folders != NULL);
    return sizeof *pack + pack->capacity * sizeof *pack->entries + tables * pack->slot_count * sizeof *pack->slots;
}

static const rb_data_type_t pack_type = {
    "pitwall/fastboot pack", {NULL, RUBY_NEVER_FREE, pack_memsize}, NULL, NULL, RUBY_TYPED_FREE_IMMEDIATELY,
};

struct fb_pack *
fb_pack_of(VALUE self)
{
    struct fb_pack *pack = rb_check_typeddata(self, &pack_type);
    if (!pack->bytes) rb_raise(rb_eIOError, "closed pack");
    return pack;
}

/* Only a file that this user or root owns, and that nobody else may write: code in it will be run. */
static const char *
refusal_of(const struct stat *found)
{
    if (!S_ISREG(found->st_mode)) return "it is no regular file";
    if (found->st_uid != geteuid() && found->st_uid != 0) return "it belongs to another user";
    if (found->st_mode & (S_IWGRP | S_IWOTH)) return "other users may write it";
    return NULL;
}

/* Pages of the pack that were read count as the process's memory. The kernel keeps them in its cache. */
static void
release_pages(const struct fb_pack *pack, size_t bytes_read)
{
    static size_t unreleased;
    unreleased += bytes_read;
    if (unreleased < RELEASE_AFTER) return;
    unreleased = 0;
    madvise((void *)(uintptr_t)pack->bytes, pack->size, MADV_DONTNEED);
}

/* Pack.open(path, identity) -> the Pack, or a String that says why it can't be used. */
static VALUE
pack_open(VALUE class, VALUE path, VALUE identity)
{
    StringValueCStr(path);
    StringValue(identity);
    if (RSTRING_LEN(identity) != FB_DIGEST_SIZE) rb_raise(rb_eArgError, "an identity has %d bytes", FB_DIGEST_SIZE);

    struct fb_pack *pack;
    VALUE self = TypedData_Make_Struct(class, struct fb_pack, &pack_type, pack);
    int descriptor = open(RSTRING_PTR(path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return rb_str_new_cstr(errno == ENOENT ? "there is none yet" : strerror(errno));

    struct stat found;
    const char *refusal = fstat(descriptor, &found) == 0 ? refusal_of(&found) : strerror(errno);
    void *bytes = MAP_FAILED;
    if (!refusal && found.st_size == 0) refusal = "it is empty";
    if (!refusal) bytes = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (!refusal && bytes == MAP_FAILED) refusal = strerror(errno);
    close(descriptor);
    if (!refusal) refusal = fb_pack_scan(pack, bytes, (size_t)found.st_size, (const uint8_t *)RSTRING_PTR(identity));
    if (!refusal) {
        release_pages(pack, RELEASE_AFTER); /* the scan has read a part of most pages */
        return self;
    }
    fb_pack_free(pack);
    *pack = (struct fb_pack){0};
    if (bytes != MAP_FAILED) munmap(bytes, (size_t)found.st_size);
    return rb_str_new_cstr(refusal);
}

static VALUE
load_code(VALUE binary)
{
    return rb_funcall(iseq_class, id_load_from_binary, 1, binary);
}

static VALUE
refused(VALUE unused, VALUE error)
{
    return ID2SYM(rb_intern("refused"));
}

/* The compiled code, or :damaged, or :refused (Ruby doesn't take it). Interrupts and `throw` go on to the caller. */
static VALUE
code_of(const struct fb_pack *pack, const struct fb_entry *entry)
{
    if (!fb_entry_intact(entry)) return ID2SYM(rb_intern("damaged"));

    VALUE binary = rb_str_new_static(entry->body, (long)entry->head->body_length);
    VALUE code = rb_rescue2(load_code, binary, refused, Qnil, rb_eStandardError, rb_eNoMemError, (VALUE)0);
    RB_GC_GUARD(binary);
    release_pages(pack, entry->head->body_length);
    return code;
}

/* The compiled code, as code_of; or the bytes of data, or :damaged. */
static VALUE
body_of(const struct fb_pack *pack, const struct fb_entry *entry)
{
    if (entry->head->kind == FB_CODE) return code_of(pack, entry);
    if (!fb_entry_intact(entry)) return ID2SYM(rb_intern("damaged"));
    return rb_str_new_static(entry->body, (long)entry->head->body_length);
}

VALUE
fb_load_from_pack(const struct fb_pack *pack, enum fb_kind kind, VALUE path, uint64_t options)
{
    StringValue(path);
    if ((pack->flags & FB_FROZEN) && !memchr(RSTRING_PTR(path), 0, (size_t)RSTRING_LEN(path))) {
        const struct fb_entry *entry = fb_pack_find(pack, kind, RSTRING_PTR(path), (size_t)RSTRING_LEN(path), options);
        if (entry) return body_of(pack, entry);
    }

    struct fb_place place;
    if (!fb_place_of(RSTRING_PTR(path), (size_t)RSTRING_LEN(path), &place)) return ID2SYM(rb_intern("odd"));
    if (kind == FB_DATA && !place.readable) return ID2SYM(rb_intern("odd")); /* Ruby itself opens files of code */
    const struct fb_entry *entry = fb_pack_find(pack, kind, place.key, place.key_length, options);
    if (!entry) return ID2SYM(rb_intern("missing"));
    for (; entry; entry = fb_pack_older(pack, entry)) {
        if (entry->attributes.ctime_ns && fb_attributes_equal(&entry->attributes, &place.attributes)) {
            return body_of(pack, entry);
        }
    }
    return ID2SYM(rb_intern("changed"));
}

/* load(kind, path, options) -> the compiled code, or the bytes of data; :odd (no plain file), :missing, :changed (the
 * file may have changed), :damaged or :refused. */
static VALUE
pack_load(VALUE self, VALUE kind, VALUE path, VALUE options)
{
    return fb_load_from_pack(fb_pack_of(self), NUM2UINT(kind), path, NUM2ULL(options));
}

/* load_version(kind, key, options, digest) -> the body of the version with this content, as load; nil: none. */
static VALUE
pack_load_version(VALUE self, VALUE kind, VALUE key, VALUE options, VALUE digest)
{
    const struct fb_pack *pack = fb_pack_of(self);
    StringValue(key);
    StringValue(digest);
    if (RSTRING_LEN(digest) != FB_DIGEST_SIZE) return Qnil;
    const struct fb_entry *entry =
        fb_pack_find(pack, NUM2UINT(kind), RSTRING_PTR(key), (size_t)RSTRING_LEN(key), NUM2ULL(options));
    for (; entry; entry = fb_pack_older(pack, entry)) {
        if (memcmp(entry->head->digest, RSTRING_PTR(digest), FB_DIGEST_SIZE) == 0) return body_of(pack, entry);
    }
    return Qnil;
}

/* with_content(kind, options, digest) -> [key, body]. Returns the newest version with this content, of any file. nil:
 * there is none, or it is damaged. */
static VALUE
pack_with_content(VALUE self, VALUE kind, VALUE options, VALUE digest)
{
    struct fb_pack *pack = fb_pack_of(self);
    StringValue(digest);
    if (RSTRING_LEN(digest) != FB_DIGEST_SIZE) return Qnil;
    const struct fb_entry *entry =
        fb_pack_with_content(pack, NUM2UINT(kind), NUM2ULL(options), (const uint8_t *)RSTRING_PTR(digest));
    if (!entry || !fb_entry_intact(entry)) return Qnil;
    return rb_assoc_new(rb_str_new(entry->key, entry->head->key_length),
                        rb_str_new(entry->body, (long)entry->head->body_length));
}

VALUE
fb_attributes_value(const struct fb_attributes *attributes)
{
    return rb_ary_new_from_args(5, ULL2NUM(attributes->device), ULL2NUM(attributes->inode), ULL2NUM(attributes->size),
                                ULL2NUM(attributes->mtime_ns), ULL2NUM(attributes->ctime_ns));
}

/* versions -> [[key, options, attributes, digest, written_s, length of the body, newest?, kind]], in the file's
 * order. */
static VALUE
pack_versions(VALUE self)
{
    const struct fb_pack *pack = fb_pack_of(self);
    VALUE all = rb_ary_new_capa(pack->count);
    for (uint32_t i = 0; i < pack->count; i++) {
        const struct fb_entry *entry = &pack->entries[i];
        const struct fb_head *head = entry->head;
        rb_ary_push(all, rb_ary_new_from_args(8, rb_str_new(entry->key, head->key_length), ULL2NUM(head->options),
                                              fb_attributes_value(&entry->attributes),
                                              rb_str_new((const char *)head->digest, FB_DIGEST_SIZE),
                                              ULL2NUM(head->written_s), ULL2NUM(head->body_length),
                                              entry->is_newest ? Qtrue : Qfalse, UINT2NUM(head->kind)));
    }
    return all;
}

/* body(n) -> the compiled code or the data of the version n as a String; nil: it is damaged. */
static VALUE
pack_body(VALUE self, VALUE number)
{
    const struct fb_pack *pack = fb_pack_of(self);
    uint32_t i = NUM2UINT(number);
    if (i >= pack->count || !fb_entry_intact(&pack->entries[i])) return Qnil;
    return rb_str_new(pack->entries[i].body, (long)pack->entries[i].head->body_length);
}

/* facts -> [bytes, bytes in whole records, records, frozen?] */
static VALUE
pack_facts(VALUE self)
{
    const struct fb_pack *pack = fb_pack_of(self);
    return rb_ary_new_from_args(4, SIZET2NUM(pack->size), SIZET2NUM(pack->valid_size), UINT2NUM(pack->records),
                                pack->flags & FB_FROZEN ? Qtrue : Qfalse);
}

/* Call close only if no code or data was loaded from the pack. */
static VALUE
pack_close(VALUE self)
{
    struct fb_pack *pack = fb_pack_of(self);
    fb_pack_free(pack);
    munmap((void *)(uintptr_t)pack->bytes, pack->size);
    *pack = (struct fb_pack){0};
    return Qnil;
}

void
fb_define_pack(VALUE native)
{
    id_load_from_binary = rb_intern("load_from_binary");
    iseq_class = rb_path2class("RubyVM::InstructionSequence");
    rb_gc_register_address(&iseq_class);
    VALUE pack = rb_define_class_under(native, "Pack", rb_cObject);
    rb_undef_alloc_func(pack);
    rb_define_singleton_method(pack, "open", pack_open, 2);
    rb_define_method(pack, "load", pack_load, 3);
    rb_define_method(pack, "load_version", pack_load_version, 4);
    rb_define_method(pack, "with_content", pack_with_content, 3);
    rb_define_method(pack, "versions", pack_versions, 0);
    rb_define_method(pack, "body", pack_body, 1);
    rb_define_method(pack, "facts", pack_facts, 0);
    rb_define_method(pack, "close", pack_close, 0);
}
