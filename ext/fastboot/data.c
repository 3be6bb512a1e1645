/*
 * The methods that stand in the place of Psych.load_file, JSON.load_file and their variants, and of `read` of tzinfo's
 * reader of time zones. They ask the DataCache (lib/pitwall/fastboot/data_cache.rb), and call the method that they
 * replaced if it has no answer.
 *
 * They are in C because backtraces and `warn(…, uplevel:)` then name no file of this library.
 */
#include "data.h"

#include <stdint.h>

#include "main_ractor.h"
#include "tools.h"

static VALUE cache = Qnil, call_class = Qnil;
static ID id_find, id_parsed, id_keep, id_file;
static uint64_t loads;     /* of files of code */
enum { MOST_LIBRARIES = 8 };
static ID waiting[MOST_LIBRARIES]; /* constants of the libraries that the program has not loaded so far */
static long waiting_count;

/* The replaced methods keep another name in their module. */
static struct {
    const char *name, *before;
    ID id, id_before;
} methods[] = {
    {"load_file", "pitwall_load_file_before", 0, 0},
    {"load_file!", "pitwall_load_file_before!", 0, 0},
    {"safe_load_file", "pitwall_safe_load_file_before", 0, 0},
    {"unsafe_load_file", "pitwall_unsafe_load_file_before", 0, 0},
    {"read", "pitwall_read_before", 0, 0},
};
enum { METHODS = sizeof methods / sizeof *methods };

static ID
before_of(ID id)
{
    for (int i = 0; i < METHODS; i++) {
        if (methods[i].id == id) return methods[i].id_before;
    }
    rb_bug("pitwall/fastboot: a method of an unknown name");
}

/* `usual`: the arguments are a file, and perhaps a Hash of options. */
static VALUE
load_file(int argc, VALUE *argv, VALUE self, int usual)
{
    ID id = rb_frame_this_func(); /* If it was called by an alias, this is the original name. */
    VALUE answer = cache;
    if (usual && !NIL_P(cache) && !rb_block_given_p() && fb_in_main_ractor()) {
        answer = rb_funcall(cache, id_find, 4, self, ID2SYM(id), argv[0], argc > 1 ? argv[1] : Qnil);
        if (answer != cache && rb_obj_class(answer) != call_class) return answer;
    }

    VALUE result = rb_funcallv_kw(self, before_of(id), argc, argv, RB_PASS_CALLED_KEYWORDS);
    if (answer != cache) rb_funcall(cache, id_parsed, 2, answer, result);
    return result;
}

static VALUE
file_and_keywords(int argc, VALUE *argv, VALUE self)
{
    return load_file(argc, argv, self, argc == (rb_keyword_given_p() ? 2 : 1));
}

static VALUE
file_and_hash(int argc, VALUE *argv, VALUE self)
{
    return load_file(argc, argv, self, argc == 1 || (argc == 2 && RB_TYPE_P(argv[1], T_HASH)));
}

/* A receiver with singleton methods may have changed how files are read. Then the library's own method is called. */
static VALUE
file_alone(int argc, VALUE *argv, VALUE self)
{
    return load_file(argc, argv, self, argc == 1 && !rb_keyword_given_p() && CLASS_OF(self) == rb_obj_class(self));
}

/* Methods by which the libraries read files. A test may replace them for a while. */
static struct { int of_class; const char *name; ID id; } readers[] = {
    {1, "open", 0}, {1, "read", 0}, {1, "new", 0}, {0, "initialize", 0}, {0, "read", 0}, {0, "seek", 0},
    {0, "external_encoding", 0},
};
enum { READERS = sizeof readers / sizeof *readers };

/* Native.files_as_usual? -> does reading a file in Ruby give what the file has? */
static VALUE
native_files_as_usual(VALUE self)
{
    if (rb_const_get(rb_cObject, id_file) != rb_cFile) return Qfalse;
    for (int i = 0; i < READERS; i++) {
        if (!rb_method_basic_definition_p(readers[i].of_class ? CLASS_OF(rb_cFile) : rb_cFile, readers[i].id)) return Qfalse;
    }
    return Qtrue;
}

/* Native.serve_data(cache, class): from now on this DataCache is asked. It answers with one of these:
 *   the data, which the program gets;
 *   itself: the library parses the file;
 *   an object of the class: the library parses the file, and `parsed` of the cache gets this object and the result. */
static VALUE
native_serve_data(VALUE self, VALUE new_cache, VALUE new_class)
{
    cache = new_cache;
    call_class = new_class;
    return Qnil;
}

void
fb_note_load(void)
{
    loads++;
    for (long i = 0; i < waiting_count; i++) {
        if (!rb_const_defined_at(rb_cObject, waiting[i])) continue;
        rb_funcall(cache, id_keep, 0);
        return;
    }
}

/* Native.loads -> how many files of code Ruby has loaded. */
static VALUE
native_loads(VALUE self)
{
    return ULL2NUM(loads);
}

/* Native.libraries_wait(names): for each file of code, calls `keep` of the cache if one of these constants is there. */
static VALUE
native_libraries_wait(VALUE self, VALUE names)
{
    Check_Type(names, T_ARRAY);
    if (RARRAY_LEN(names) > MOST_LIBRARIES) rb_raise(rb_eArgError, "more than %d libraries", MOST_LIBRARIES);
    waiting_count = 0;
    for (long i = 0; i < RARRAY_LEN(names); i++) waiting[waiting_count++] = rb_sym2id(rb_ary_entry(names, i));
    return Qnil;
}

void
fb_define_data(VALUE native)
{
    fb_hold((VALUE *const[]){&cache, &call_class, NULL});
    id_find = rb_intern("find");
    id_parsed = rb_intern("parsed");
    id_keep = rb_intern("keep");
    id_file = rb_intern("File");
    for (int i = 0; i < READERS; i++) readers[i].id = rb_intern(readers[i].name);

    VALUE with_keywords = rb_define_module_under(native, "FileAndKeywords");
    VALUE with_hash = rb_define_module_under(native, "FileAndHash");
    VALUE alone = rb_define_module_under(native, "FileAlone");
    for (int i = 0; i < METHODS; i++) {
        methods[i].id = rb_intern(methods[i].name);
        methods[i].id_before = rb_intern(methods[i].before);
        rb_define_method(with_keywords, methods[i].name, file_and_keywords, -1);
        rb_define_method(with_hash, methods[i].name, file_and_hash, -1);
        rb_define_method(alone, methods[i].name, file_alone, -1);
    }
    rb_define_singleton_method(native, "serve_data", native_serve_data, 2);
    rb_define_singleton_method(native, "loads", native_loads, 0);
    rb_define_singleton_method(native, "files_as_usual?", native_files_as_usual, 0);
    rb_define_singleton_method(native, "libraries_wait", native_libraries_wait, 1);
}
