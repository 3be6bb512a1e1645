#include "require.h"

#include <ruby/encoding.h>

#include <string.h>

#include "load_index.h"
#include "main_ractor.h"
#include "real_paths.h"
#include "tools.h"

static VALUE load_index = Qnil; /* a LoadIndex; nil: none is in use */
static int is_ours;
static ID id_before, id_plain_require, id_add, id_found, id_not_found, id_rubygems_decides, id_rubygems_decides_p,
          id_take_load_path, id_to_path, id_wake, id_waits_p, id_bind_call, id_instance_method;

/* A LazyGems, and its Hash from the names of files to gems that wait. nil: there is no list of lazy gems. */
static VALUE lazy_gems = Qnil, lazy_names = Qnil;

/* Module#autoload and Kernel#autoload (UnboundMethods) and Kernel.autoload (a Method), as they were before this
 * extension replaced them. nil: not replaced, because there are no lazy gems. */
static VALUE module_autoload_before = Qnil, kernel_autoload_before = Qnil, function_autoload_before = Qnil;

/* A plain String: RubyGems asks others for `to_path`. An ASCII name without a zero byte, neither absolute, nor explicitly
 * relative, nor in a home folder. */
static int
is_searched_for(VALUE name)
{
    if (!RB_TYPE_P(name, T_STRING) || RBASIC_CLASS(name) != rb_cString) return 0;
    if (RSTRING_LEN(name) == 0 || !rb_enc_str_asciionly_p(name)) return 0;
    const char first = RSTRING_PTR(name)[0];
    return first != '/' && first != '.' && first != '~' && !memchr(RSTRING_PTR(name), 0, (size_t)RSTRING_LEN(name));
}

/* Can Ruby answer without searching? If only an extension of that name is loaded, Ruby must search: a `.rb` file comes
 * first. */
static int
is_plainly_provided(VALUE name)
{
    if (fb_ends_with(name, ".rb") || fb_ends_with(name, ".so")) return 1;
    VALUE source = rb_str_plus(name, rb_str_new_cstr(".rb"));
    return rb_provided(StringValueCStr(source));
}

/* What a search needs of Ruby. */
static struct {
    VALUE folders;      /* Native::LoadIndex */
    VALUE load_path;    /* $LOAD_PATH */
    VALUE only_files;   /* false: Ruby may have extensions without a file */
    VALUE counts;
    VALUE warned_names; /* a Hash with the first parts of all names that RubyGems may warn of, or nil if it warns of
                         * none. true: RubyGems may activate gems. Then LoadIndex#rubygems_decides? is asked. */
} search = {Qnil, Qnil, Qnil, Qnil, Qnil};

static int
is_word(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '+' || byte == '-';
}

/* Is it a plain name of a file? Its parts don't begin with a dot. It does not end with .o, .dll, .dylib or .bundle:
 * for these Ruby tries other endings, too. It is no extension without a file (ruby_init_ext in Ruby's source). */
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
    return !fb_ends_with(name, ".o") && !fb_ends_with(name, ".dll") && !fb_ends_with(name, ".dylib") &&
           !fb_ends_with(name, ".bundle");
}

/* Would RubyGems activate a gem for it, or warn? */
static int
rubygems_decides(VALUE name)
{
    if (NIL_P(search.warned_names)) return 0;
    if (search.warned_names == Qtrue) return RTEST(rb_funcall(load_index, id_rubygems_decides_p, 1, name));
    long length = (long)strcspn(RSTRING_PTR(name), "/.");
    return RTEST(rb_hash_lookup(search.warned_names, rb_str_new(RSTRING_PTR(name), length)));
}

/* Ruby gives a path the encoding of the name, or that of the file system if the name is US-ASCII or binary. */
static rb_encoding *
encoding_of_path(VALUE name)
{
    rb_encoding *encoding = rb_enc_get(name);
    return encoding == rb_usascii_encoding() || encoding == rb_ascii8bit_encoding() ? rb_filesystem_encoding() : encoding;
}

/* Returns the path of the file that Ruby would find, false if there is no such file, or nil if Ruby has to search.
 * own_real_path: set if the path is the file's real path */
static VALUE
find(VALUE name, int *own_real_path)
{
    VALUE path = Qnil;
    ID counted = id_not_found;
    if (rubygems_decides(name)) counted = id_rubygems_decides;
    else if (is_usual(name)) {
        if (!fb_index_taken(search.folders, search.load_path)) rb_funcall(load_index, id_take_load_path, 0);
        path = fb_index_search(search.folders, name, search.only_files, own_real_path);
        /* RubyGems activates gems for names that no folder has. */
        if (path == Qfalse && search.warned_names == Qtrue) path = Qnil;
        if (RTEST(path)) rb_enc_associate(path, encoding_of_path(name));
        if (!NIL_P(path)) counted = id_found;
    }
    rb_funcall(search.counts, id_add, 1, ID2SYM(counted));
    return path;
}

/* What to do with the name. A path: require that file instead. false: there is no such file. true: it is loaded
 * already. nil: Ruby has to search. own_real_path: as for find */
static VALUE
path_of(VALUE name, int *own_real_path)
{
    int is_provided = rb_provided(StringValueCStr(name));
    if (is_provided && is_plainly_provided(name)) return Qnil;
    VALUE path = find(name, own_real_path);
    if (!is_provided || NIL_P(path)) return path;
    if (path == Qfalse) return Qtrue; /* the extension is loaded, and no folder has Ruby code of that name */
    return fb_ends_with(path, ".so") && !rb_provided(StringValueCStr(path)) ? Qnil : path;
}

/* If `name` is a file of a gem that waits, the gem is loaded first. */
static void
wake(VALUE name)
{
    if (NIL_P(lazy_names) || !fb_in_main_ractor()) return;
    VALUE text = RB_TYPE_P(name, T_STRING) ? name : rb_check_funcall(name, id_to_path, 0, NULL); /* a Pathname */
    if (!RB_TYPE_P(text, T_STRING)) text = rb_check_string_type(name);
    if (NIL_P(text)) return;
    VALUE gem = rb_hash_lookup(lazy_names, text);
    if (!NIL_P(gem)) rb_funcall(lazy_gems, id_wake, 2, gem, text);
}

/* `require` as it was before, for an object that may lack Kernel's methods: a program has bound `require` to it. */
static VALUE
require_bound(VALUE self, VALUE name)
{
    VALUE before = rb_funcall(rb_mKernel, id_instance_method, 1, ID2SYM(id_before));
    return rb_funcall(before, id_bind_call, 2, self, name);
}

/* Runs before RubyGems' Kernel#require. It is in C because backtraces and `caller` then name no file of this
 * library. */
static VALUE
kernel_require(VALUE self, VALUE name)
{
    VALUE path = Qnil;
    int own_real_path = 0;
    wake(name);
    if (!rb_obj_is_kind_of(self, rb_cObject)) return require_bound(self, name);
    if (is_searched_for(name) && fb_in_main_ractor() && !NIL_P(load_index)) {
        path = path_of(name, &own_real_path);
        if (path == Qtrue) return Qfalse;
        if (path == Qfalse) rb_loaderror_with_path(name, "cannot load such file -- %"PRIsVALUE, name);
    }
    if (fb_in_main_ractor()) fb_know_real_path(NIL_P(path) ? name : path, !NIL_P(path) && own_real_path);
    is_ours = 1;
    VALUE loaded = NIL_P(path) ? rb_funcall(self, id_before, 1, name) : rb_funcall(self, id_plain_require, 1, path);
    is_ours = 0; /* it was still 1 if no file was loaded */
    return loaded;
}

/* search_with(folders, $LOAD_PATH, only files?, counts): see `search`. */
static VALUE
native_search_with(VALUE self, VALUE folders, VALUE load_path, VALUE only_files, VALUE counts)
{
    Check_Type(load_path, T_ARRAY);
    search.folders = folders;
    search.load_path = load_path;
    search.only_files = only_files;
    search.counts = counts;
    return Qnil;
}

/* replace_require(index, id of the plain require, warned names): search_with was called, and
 * Kernel#pitwall_require_before must exist. */
static VALUE
native_replace_require(VALUE self, VALUE index, VALUE plain, VALUE warned_names)
{
    if (!NIL_P(warned_names) && warned_names != Qtrue) Check_Type(warned_names, T_HASH);
    load_index = index;
    search.warned_names = warned_names;
    id_plain_require = rb_sym2id(plain);
    rb_define_private_method(rb_mKernel, "require", kernel_require, 1);
    return Qnil;
}

/* Is an autoload of this constant to be ignored? */
static int
is_ignored(VALUE module, VALUE name, VALUE file)
{
    if (!fb_in_main_ractor() || !(SYMBOL_P(name) || RB_TYPE_P(name, T_STRING))) return 0;
    if (!RTEST(rb_funcall(lazy_gems, id_waits_p, 2, module, name))) return 0;
    return RSTRING_LEN(rb_get_path(file)) > 0; /* Ruby raises ArgumentError */
}

/* Module#autoload */
static VALUE
module_autoload(VALUE self, VALUE name, VALUE file)
{
    if (is_ignored(self, name, file)) return Qnil;
    return rb_funcall(module_autoload_before, id_bind_call, 3, self, name, file);
}

/* The module of the code that calls a C function. */
static VALUE
calling_module(void)
{
    VALUE nesting = rb_funcall(rb_cModule, rb_intern("nesting"), 0);
    return RARRAY_LEN(nesting) > 0 ? RARRAY_AREF(nesting, 0) : rb_cObject;
}

/* Kernel#autoload */
static VALUE
kernel_autoload(VALUE self, VALUE name, VALUE file)
{
    if (is_ignored(calling_module(), name, file)) return Qnil;
    return rb_funcall(kernel_autoload_before, id_bind_call, 3, self, name, file);
}

/* Kernel.autoload */
static VALUE
function_autoload(VALUE self, VALUE name, VALUE file)
{
    if (is_ignored(calling_module(), name, file)) return Qnil;
    return rb_method_call(2, (const VALUE[]){name, file}, function_autoload_before);
}

/* The method `autoload` that the module itself defines, not a prepended module. An UnboundMethod, or nil. */
static VALUE
autoload_of(VALUE module)
{
    VALUE method = rb_funcall(module, id_instance_method, 1, ID2SYM(rb_intern("autoload")));
    return fb_method_of(method, module);
}

static void
replace_autoload(void)
{
    module_autoload_before = autoload_of(rb_cModule);
    kernel_autoload_before = autoload_of(rb_mKernel);
    function_autoload_before = fb_replace_method(rb_mKernel, "autoload", function_autoload, 2);
    if (!NIL_P(module_autoload_before)) fb_redefine(rb_define_method, rb_cModule, "autoload", module_autoload, 2);
    if (!NIL_P(kernel_autoload_before)) {
        fb_redefine(rb_define_private_method, rb_mKernel, "autoload", kernel_autoload, 2);
    }
}

/* wake_by(LazyGems, its Hash): see lazy_gems. Called once. */
static VALUE
native_wake_by(VALUE self, VALUE gems, VALUE names)
{
    Check_Type(names, T_HASH);
    lazy_gems = gems;
    lazy_names = names;
    replace_autoload();
    return Qnil;
}

int
fb_require_was_called(void)
{
    int called = is_ours;
    is_ours = 0;
    return called;
}

void
fb_define_require(VALUE native)
{
    id_before = rb_intern("pitwall_require_before");
    id_add = rb_intern("add");
    id_found = rb_intern("found");
    id_not_found = rb_intern("not_found");
    id_rubygems_decides = rb_intern("rubygems_decides");
    id_rubygems_decides_p = rb_intern("rubygems_decides?");
    id_take_load_path = rb_intern("take_load_path");
    id_to_path = rb_intern("to_path");
    id_wake = rb_intern("wake");
    id_waits_p = rb_intern("waits?");
    id_bind_call = rb_intern("bind_call");
    id_instance_method = rb_intern("instance_method");
    fb_hold((VALUE *const[]){&load_index, &search.folders, &search.load_path, &search.warned_names,
                             &search.counts, &lazy_gems, &lazy_names, &module_autoload_before, &kernel_autoload_before,
                             &function_autoload_before, NULL});

    rb_define_singleton_method(native, "search_with", native_search_with, 4);
    rb_define_singleton_method(native, "replace_require", native_replace_require, 3);
    rb_define_singleton_method(native, "wake_by", native_wake_by, 2);
}
