/*
 * pitwall/fastboot_pack: what `require "pitwall/fastboot"` needs of C. It loads and tests nothing when it is loaded.
 *
 * Reading order: pack.h (the file), places.h (is a file what it was?), this file (the Ruby side),
 * data.c (methods that load YAML and JSON files), plain_data.c, blake2b.c.
 * All functions here need the GVL.
 */
#include <ruby.h>
#include <ruby/ractor.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "gc_rest.h"
#include "load_index.h"
#include "pack.h"
#include "places.h"
#include "plain_data.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "packs are little-endian"
#endif

#ifdef HAVE_RB_GET_COVERAGES
VALUE rb_get_coverages(void);
#endif

static VALUE iseq_class;
/* Bytes of compiled code. */
enum { RELEASE_AFTER = 4 << 20 };

static VALUE vm_class, warning_module, fastboot_module;
static ID id_load_from_binary, id_find, id_before, id_plain_require;
static ID id_script_lines, id_debugger, id_keep_script_lines, id_aref, id_compile_option, id_keep_index, id_load, id_add, id_hit;
static ID id_found, id_not_found, id_rubygems_decides, id_take_load_path;
static rb_ractor_local_key_t main_only; /* non-NULL in the main Ractor */
static const struct rb_ractor_local_storage_type nothing_to_free = {NULL, NULL};
static VALUE require_index = Qnil;
static int require_is_ours; /* called since the last file was loaded: nobody has replaced it */

/* ---- Packs ---- */

/* A pack stays mapped while the process lives: loaded code may refer to it. */
static size_t
pack_memsize(const void *data)
{
    const struct fb_pack *pack = data;
    return sizeof *pack + pack->capacity * sizeof *pack->entries + pack->slot_count * sizeof *pack->slots;
}

static const rb_data_type_t pack_type = {
    "pitwall/fastboot pack", {NULL, RUBY_NEVER_FREE, pack_memsize}, NULL, NULL, RUBY_TYPED_FREE_IMMEDIATELY,
};

static const struct fb_pack *
pack_of(VALUE self)
{
    return rb_check_typeddata(self, &pack_type);
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

/* Pack.open(path, identity) -> Pack, or a String: why not. */
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

static VALUE
load_from_pack(const struct fb_pack *pack, enum fb_kind kind, VALUE path, uint64_t options)
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
    return load_from_pack(pack_of(self), NUM2UINT(kind), path, NUM2ULL(options));
}

/* load_version(kind, key, options, digest) -> the body of the version with this content, as load; nil: none. */
static VALUE
pack_load_version(VALUE self, VALUE kind, VALUE key, VALUE options, VALUE digest)
{
    const struct fb_pack *pack = pack_of(self);
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

static VALUE
attributes_value(const struct fb_attributes *attributes)
{
    return rb_ary_new_from_args(5, ULL2NUM(attributes->device), ULL2NUM(attributes->inode), ULL2NUM(attributes->size),
                                ULL2NUM(attributes->mtime_ns), ULL2NUM(attributes->ctime_ns));
}

/* versions -> [[key, options, attributes, digest, written_s, length of the body, newest?, kind]], in the file's
 * order. */
static VALUE
pack_versions(VALUE self)
{
    const struct fb_pack *pack = pack_of(self);
    VALUE all = rb_ary_new_capa(pack->count);
    for (uint32_t i = 0; i < pack->count; i++) {
        const struct fb_entry *entry = &pack->entries[i];
        const struct fb_head *head = entry->head;
        rb_ary_push(all, rb_ary_new_from_args(8, rb_str_new(entry->key, head->key_length), ULL2NUM(head->options),
                                              attributes_value(&entry->attributes),
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
    const struct fb_pack *pack = pack_of(self);
    uint32_t i = NUM2UINT(number);
    if (i >= pack->count || !fb_entry_intact(&pack->entries[i])) return Qnil;
    return rb_str_new(pack->entries[i].body, (long)pack->entries[i].head->body_length);
}

/* facts -> [bytes, bytes in whole records, records, frozen?] */
static VALUE
pack_facts(VALUE self)
{
    const struct fb_pack *pack = pack_of(self);
    return rb_ary_new_from_args(4, SIZET2NUM(pack->size), SIZET2NUM(pack->valid_size), UINT2NUM(pack->records),
                                pack->flags & FB_FROZEN ? Qtrue : Qfalse);
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
    return rb_assoc_new(rb_str_new(place.key, (long)place.key_length), attributes_value(&place.attributes));
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
    return rb_assoc_new(digest, attributes_value(&last));
}

/* readable?(path) -> whether `require` could load this file; nil: in doubt. */
static VALUE
native_readable(VALUE self, VALUE path)
{
    int found = fb_readable(StringValueCStr(path));
    return found < 0 ? Qnil : found ? Qtrue : Qfalse;
}

/* settled?(ctime_ns) -> would a change from now on give the file another change time? */
static VALUE
native_settled(VALUE self, VALUE changed_ns)
{
    struct fb_attributes attributes = {.ctime_ns = NUM2ULL(changed_ns)};
    return fb_settled(&attributes, fb_now_ns()) ? Qtrue : Qfalse;
}

#ifdef HAVE_RB_GET_COVERAGES
/* Is code being compiled so that its runs are counted? */
static VALUE
native_covered(VALUE self)
{
    return RTEST(rb_get_coverages()) ? Qtrue : Qfalse;
}
#endif

/* ---- require ---- */

static int
ends_with(VALUE name, const char *ending)
{
    long length = RSTRING_LEN(name), ending_length = (long)strlen(ending);
    return length >= ending_length && memcmp(RSTRING_PTR(name) + length - ending_length, ending, ending_length) == 0;
}

/* A name without its zero byte, neither absolute, nor explicitly relative, nor in a home folder. */
static int
is_searched_for(VALUE name)
{
    if (!RB_TYPE_P(name, T_STRING) || RSTRING_LEN(name) == 0) return 0;
    const char first = RSTRING_PTR(name)[0];
    return first != '/' && first != '.' && first != '~' && !memchr(RSTRING_PTR(name), 0, (size_t)RSTRING_LEN(name));
}

/* Does Ruby know without searching that the feature is there? If an extension has the name, it searches all folders for
 * a file with Ruby code first. */
static int
is_plainly_provided(VALUE name)
{
    if (ends_with(name, ".rb") || ends_with(name, ".so")) return 1;
    VALUE source = rb_str_plus(name, rb_str_new_cstr(".rb"));
    return rb_provided(StringValueCStr(source));
}

/* What LoadIndex#find would ask of Ruby is known: it needs no Ruby code. */
static struct {
    VALUE folders;      /* Native::LoadIndex; nil: LoadIndex#find decides */
    VALUE load_path;    /* $LOAD_PATH */
    VALUE warned_names; /* the first parts of names that RubyGems may warn of, or nil */
    VALUE only_files;   /* has Ruby only extensions that are files? */
    VALUE counts;
} quick = {Qnil, Qnil, Qnil, Qnil, Qnil};

static int
is_word(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '+' || byte == '-';
}

/* LoadIndex#usual?: parts that don't begin with a dot, no ending of which Ruby tries others, too, and no extension that
 * is no file. */
static int
is_usual(VALUE name)
{
    const char *text = RSTRING_PTR(name);
    long length = RSTRING_LEN(name);
    for (long i = 0; i < length; i++) {
        int begins = i == 0 || text[i - 1] == '/';
        if (!is_word(text[i]) && (begins || (text[i] != '.' && text[i] != '/'))) return 0;
    }
    if (text[length - 1] == '/' || strcmp(text, "prism/prism") == 0) return 0;
    return !ends_with(name, ".o") && !ends_with(name, ".dll") && !ends_with(name, ".dylib") && !ends_with(name, ".bundle");
}

static int
may_be_warned_of(VALUE name)
{
    if (NIL_P(quick.warned_names)) return 0;
    long length = (long)strcspn(RSTRING_PTR(name), "/.");
    return RTEST(rb_hash_lookup(quick.warned_names, rb_str_new(RSTRING_PTR(name), length)));
}

/* LoadIndex#find */
static VALUE
find(VALUE name)
{
    if (NIL_P(quick.folders)) return rb_funcall(require_index, id_find, 1, name);

    VALUE path = Qnil;
    ID counted = id_not_found;
    if (may_be_warned_of(name)) counted = id_rubygems_decides;
    else if (is_usual(name)) {
        if (!fb_index_taken(quick.folders, quick.load_path)) rb_funcall(require_index, id_take_load_path, 0);
        path = fb_index_search(quick.folders, name, quick.only_files);
        if (!NIL_P(path)) counted = id_found;
    }
    rb_funcall(quick.counts, id_add, 1, ID2SYM(counted));
    return path;
}

/* The path to require instead of the name; nil: Ruby is to search; false: there is no such file. */
static VALUE
path_of(VALUE name)
{
    int is_provided = rb_provided(StringValueCStr(name));
    if (is_provided && is_plainly_provided(name)) return Qnil;
    VALUE path = find(name);
    if (!is_provided) return path;
    if (!RTEST(path)) return Qnil;
    return ends_with(path, ".so") && !rb_provided(StringValueCStr(path)) ? Qnil : path;
}

/* Runs before RubyGems' Kernel#require. It is in C because backtraces and `caller` then name no file of this library. */
static VALUE
kernel_require(VALUE self, VALUE name)
{
    require_is_ours = 1;
    if (is_searched_for(name) && rb_ractor_local_storage_ptr(main_only) && !NIL_P(require_index)) {
        VALUE path = path_of(name);
        if (path == Qfalse) rb_loaderror_with_path(name, "cannot load such file -- %"PRIsVALUE, name);
        if (!NIL_P(path)) return rb_funcall(self, id_plain_require, 1, path);
    }
    return rb_funcall(self, id_before, 1, name);
}

/* Native.replace_require(index, id of the plain require): Kernel#pitwall_require_before must exist. */
static VALUE
native_replace_require(VALUE self, VALUE index, VALUE plain)
{
    require_index = index;
    id_plain_require = rb_sym2id(plain);
    rb_define_private_method(rb_mKernel, "require", kernel_require, 1);
    return Qnil;
}

/* find_quickly(folders or nil, $LOAD_PATH, warned names or nil, only files?, counts) */
static VALUE
native_find_quickly(VALUE self, VALUE folders, VALUE load_path, VALUE warned_names, VALUE only_files, VALUE counts)
{
    if (!NIL_P(warned_names)) Check_Type(warned_names, T_HASH);
    Check_Type(load_path, T_ARRAY);
    quick.folders = folders;
    quick.load_path = load_path;
    quick.warned_names = warned_names;
    quick.only_files = only_files;
    quick.counts = counts;
    return Qnil;
}

/* ---- Code of files ---- */

/* What the code of a file depends on beside the file, as the Ruby side saw it last (CompileCache#options_now). */
static struct {
    VALUE cache; /* asked where there is any doubt; nil: nobody is asked */
    VALUE pack, expected, counts;
    unsigned long changes; /* of options: how often a program has set one */
    int options_known;     /* `sum` is of the compiler's options and warnings as they are */
    uint64_t sum;
    int source_known, source_kept; /* RubyVM.keep_script_lines */
} serving = {.cache = Qnil, .pack = Qnil, .expected = Qnil, .counts = Qnil};

/* The gem debug makes Ruby keep the text of all code. It shows the file itself where there is no text. */
static int
source_is_kept(void)
{
    if (rb_const_defined(rb_cObject, id_script_lines)) return 1;
    if (!serving.source_known) serving.source_kept = RTEST(rb_funcall(vm_class, id_keep_script_lines, 0));
    serving.source_known = 1;
    return serving.source_kept && !rb_const_defined(rb_cObject, id_debugger);
}

/* source_kept? -> does the program want the text of the code that it loads? */
static VALUE
native_source_kept(VALUE self)
{
    return source_is_kept() ? Qtrue : Qfalse;
}

/* InstructionSequence.compile_option=, Warning[]= and RubyVM.keep_script_lines= are called. */
static VALUE
options_change(int argc, VALUE *argv)
{
    VALUE result = rb_call_super(argc, argv);
    serving.changes++;
    serving.options_known = 0;
    serving.source_known = 0;
    return result;
}

static VALUE
option_changes(VALUE self, VALUE value)
{
    return options_change(1, &value);
}

static VALUE
warning_changes(VALUE self, VALUE category, VALUE value)
{
    VALUE arguments[] = {category, value};
    return options_change(2, arguments);
}

/* The code, where nothing speaks against it; otherwise nil. */
static VALUE
undoubted_code(VALUE path)
{
    if (NIL_P(serving.pack) || RHASH_SIZE(serving.expected) > 0 || RTEST(ruby_verbose)) return Qnil;
#ifdef HAVE_RB_GET_COVERAGES
    if (RTEST(rb_get_coverages())) return Qnil;
#else
    return Qnil;
#endif
    if (source_is_kept() || !serving.options_known) return Qnil;
    VALUE code = load_from_pack(pack_of(serving.pack), FB_CODE, path, serving.sum);
    return SYMBOL_P(code) ? Qnil : code;
}

/* RubyVM::InstructionSequence.load_iseq. Ruby calls it for each file that it loads. Other Ractors compile for
 * themselves. */
static VALUE
load_iseq(VALUE self, VALUE path)
{
    if (!rb_ractor_local_storage_ptr(main_only)) return Qnil;
    if (!require_is_ours) rb_funcall(fastboot_module, id_keep_index, 0);
    require_is_ours = 0;
    fb_gc_rest_loads();
    fb_note_load();
    if (NIL_P(serving.cache)) return Qnil;

    VALUE code = undoubted_code(path);
    if (NIL_P(code)) return rb_funcall(serving.cache, id_load, 1, path);
    rb_funcall(serving.counts, id_add, 1, ID2SYM(id_hit));
    return code;
}

/* Native.serve(cache, pack or nil, expected files, counts) */
static VALUE
native_serve(VALUE self, VALUE cache, VALUE pack, VALUE expected, VALUE counts)
{
    if (!NIL_P(pack)) pack_of(pack);
    Check_Type(expected, T_HASH);
    serving.cache = cache;
    serving.pack = pack;
    serving.expected = expected;
    serving.counts = counts;
    return Qnil;
}

/* option_changes -> how often a program has set an option */
static VALUE
native_option_changes(VALUE self)
{
    return ULONG2NUM(serving.changes);
}

/* options_are(sum, changes): unless another thread has set an option since then. */
static VALUE
native_options_are(VALUE self, VALUE sum, VALUE changes)
{
    serving.sum = NUM2ULL(sum);
    serving.options_known = NUM2ULONG(changes) == serving.changes;
    return Qnil;
}

static VALUE
native_stop_index(VALUE self)
{
    require_index = Qnil;
    return Qnil;
}

/* ---- Warnings ---- */

static VALUE listener = Qnil, plain_warn = Qnil; /* the module Warnings; an UnboundMethod */

/* Warning#warn: tells of the call, and calls the method that it has replaced. It is in C, so that backtraces and the
 * method's parameters stay as they are. */
static VALUE
warning_warn(int argc, VALUE *argv, VALUE self)
{
    if (rb_ractor_local_storage_ptr(main_only)) rb_funcall(listener, rb_intern("note"), 0);
    VALUE method = rb_funcall(plain_warn, rb_intern("bind"), 1, self);
    return rb_method_call_kw(argc, argv, method, rb_keyword_given_p());
}

/* Native.replace_warn(the module Warnings, the UnboundMethod of now) */
static VALUE
native_replace_warn(VALUE self, VALUE module, VALUE plain)
{
    listener = module;
    plain_warn = plain;
    VALUE verbose = ruby_verbose;
    ruby_verbose = Qfalse; /* Ruby would warn of it */
    rb_define_method(warning_module, "warn", warning_warn, -1);
    ruby_verbose = verbose;
    return Qnil;
}

RUBY_FUNC_EXPORTED void
Init_fastboot_pack(void)
{
    rb_ext_ractor_safe(true);
    main_only = rb_ractor_local_storage_ptr_newkey(&nothing_to_free);
    rb_ractor_local_storage_ptr_set(main_only, &require_index);
    rb_gc_register_address(&require_index);
    rb_gc_register_address(&iseq_class);
    rb_gc_register_address(&listener);
    rb_gc_register_address(&plain_warn);
    iseq_class = rb_path2class("RubyVM::InstructionSequence");
    id_load_from_binary = rb_intern("load_from_binary");
    id_find = rb_intern("find");
    id_before = rb_intern("pitwall_require_before");
    id_script_lines = rb_intern("SCRIPT_LINES__");
    id_debugger = rb_intern("DEBUGGER__");
    id_keep_script_lines = rb_intern("keep_script_lines");
    id_aref = rb_intern("[]");
    id_compile_option = rb_intern("compile_option");
    id_keep_index = rb_intern("keep_index");
    id_load = rb_intern("load");
    id_add = rb_intern("add");
    id_hit = rb_intern("hit");
    id_found = rb_intern("found");
    id_not_found = rb_intern("not_found");
    id_rubygems_decides = rb_intern("rubygems_decides");
    id_take_load_path = rb_intern("take_load_path");

    VALUE fastboot = rb_define_module_under(rb_define_module("Pitwall"), "Fastboot");
    vm_class = rb_path2class("RubyVM");
    warning_module = rb_path2class("Warning");
    fastboot_module = fastboot;
    rb_gc_register_address(&vm_class);
    rb_gc_register_address(&warning_module);
    rb_gc_register_address(&fastboot_module);
    VALUE *const held[] = {&serving.cache, &serving.pack, &serving.expected, &serving.counts, &quick.folders,
                           &quick.load_path, &quick.warned_names, &quick.counts};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) rb_gc_register_address(held[i]);

    rb_define_method(rb_define_module_under(fastboot, "CompileOption"), "compile_option=", option_changes, 1);
    rb_define_method(rb_define_module_under(fastboot, "KeepScriptLines"), "keep_script_lines=", option_changes, 1);
    rb_define_method(rb_define_module_under(fastboot, "WarningCategory"), "[]=", warning_changes, 2);

    /* Stands before the class of RubyVM::InstructionSequence, where Ruby itself has undefined the method. */
    rb_define_method(rb_define_module_under(fastboot, "Hook"), "load_iseq", load_iseq, 1);
    VALUE native = rb_define_module_under(fastboot, "Native");
    rb_define_singleton_method(native, "digest", native_digest, 1);
    rb_define_singleton_method(native, "sum", native_sum, 1);
    rb_define_singleton_method(native, "place", native_place, 1);
    rb_define_singleton_method(native, "read", native_read, 1);
    rb_define_singleton_method(native, "readable?", native_readable, 1);
    rb_define_singleton_method(native, "settled?", native_settled, 1);
    rb_define_singleton_method(native, "source_kept?", native_source_kept, 0);
    rb_define_singleton_method(native, "serve", native_serve, 4);
    rb_define_singleton_method(native, "option_changes", native_option_changes, 0);
    rb_define_singleton_method(native, "options_are", native_options_are, 2);
    rb_define_singleton_method(native, "find_quickly", native_find_quickly, 5);
    rb_define_singleton_method(native, "replace_require", native_replace_require, 2);
    rb_define_singleton_method(native, "stop_index", native_stop_index, 0);
    rb_define_singleton_method(native, "replace_warn", native_replace_warn, 2);
#ifdef HAVE_RB_GET_COVERAGES
    rb_define_singleton_method(native, "covered?", native_covered, 0);
#endif
    fb_define_gc_rest(fastboot, native);
    fb_define_load_index(native);
    fb_define_data(native);
    fb_define_plain_data(native);
    VALUE pack = rb_define_class_under(native, "Pack", rb_cObject);
    rb_undef_alloc_func(pack);
    rb_define_singleton_method(pack, "open", pack_open, 2);
    rb_define_method(pack, "load", pack_load, 3);
    rb_define_method(pack, "load_version", pack_load_version, 4);
    rb_define_method(pack, "versions", pack_versions, 0);
    rb_define_method(pack, "body", pack_body, 1);
    rb_define_method(pack, "facts", pack_facts, 0);
}
