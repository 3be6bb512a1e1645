#include "collectors/boot/load_methods.h"
#include "collectors/boot/loads.h"
#include "vm/c_methods.h"
#include <string.h>

enum { OF_KERNEL, OF_KERNEL_ITSELF, OF_BASIC_OBJECT, OF_MODULE, OF_BINDING };

typedef struct {
    int owner;
    const char *name;
    int kind;
    int file;    /* of code that is evaluated: the argument that names the file */
    int argc;    /* as given to rb_define_method */
    void **place; /* NULL: not watched */
    void *own;    /* the method's own function */
} watched;

/* Whoever replaces `require` keeps Ruby's own under another name. Rows of one function stand for the same method. */
static watched methods[] = {
    {OF_KERNEL, "require", PW_LOAD_REQUIRE, 0, 1, NULL, NULL},
    {OF_KERNEL, "gem_original_require", PW_LOAD_REQUIRE, 0, 1, NULL, NULL},
    {OF_KERNEL, "require_without_bootsnap", PW_LOAD_REQUIRE, 0, 1, NULL, NULL},
    {OF_KERNEL, "zeitwerk_original_require", PW_LOAD_REQUIRE, 0, 1, NULL, NULL},
    {OF_KERNEL_ITSELF, "require", PW_LOAD_REQUIRE, 0, 1, NULL, NULL},
    {OF_KERNEL, "require_relative", PW_LOAD_REQUIRE_RELATIVE, 0, 1, NULL, NULL},
    {OF_KERNEL_ITSELF, "require_relative", PW_LOAD_REQUIRE_RELATIVE, 0, 1, NULL, NULL},
    {OF_KERNEL, "load", PW_LOAD_LOAD, 0, -1, NULL, NULL},
    {OF_KERNEL, "load_without_bootsnap", PW_LOAD_LOAD, 0, -1, NULL, NULL},
    {OF_KERNEL_ITSELF, "load", PW_LOAD_LOAD, 0, -1, NULL, NULL},
    {OF_KERNEL, "eval", PW_LOAD_EVAL, 2, -1, NULL, NULL},
    {OF_KERNEL_ITSELF, "eval", PW_LOAD_EVAL, 2, -1, NULL, NULL},
    {OF_BASIC_OBJECT, "instance_eval", PW_LOAD_EVAL, 1, -1, NULL, NULL},
    {OF_MODULE, "class_eval", PW_LOAD_EVAL, 1, -1, NULL, NULL},
    {OF_MODULE, "module_eval", PW_LOAD_EVAL, 1, -1, NULL, NULL},
    {OF_BINDING, "eval", PW_LOAD_EVAL, 1, -1, NULL, NULL},
};

enum { METHODS = sizeof methods / sizeof *methods };

/* An Array of the Method objects, so that Ruby does not free what the places are in when the program redefines a
 * method. */
static VALUE kept = Qnil;

typedef struct {
    const watched *method;
    int argc;
    const VALUE *argv;
    VALUE self;
} call;

static VALUE
call_own(VALUE data)
{
    const call *c = (const call *)data;
    if (c->method->argc == 1) return ((VALUE (*)(VALUE, VALUE))c->method->own)(c->self, c->argv[0]);
    return ((VALUE (*)(int, const VALUE *, VALUE))c->method->own)(c->argc, c->argv, c->self);
}

/* Code that is evaluated counts as a file if it names one that is not the caller's: a Gemfile, a gemspec. */
static bool
is_of_a_file(const call *c)
{
    int at = c->method->file;
    if (c->argc <= at || !RB_TYPE_P(c->argv[0], T_STRING) || !RB_TYPE_P(c->argv[at], T_STRING)) return false;
    const char *file = RSTRING_PTR(c->argv[at]), *caller;
    if (RSTRING_LEN(c->argv[at]) == 0 || file[0] == '(' || file[0] == '<') return false;
    caller = rb_sourcefile();
    return !caller || strlen(caller) != (size_t)RSTRING_LEN(c->argv[at]) ||
        memcmp(caller, file, (size_t)RSTRING_LEN(c->argv[at])) != 0;
}

/* The feature that was provided last is the one that `require` has just loaded: it is provided after it has run. */
static VALUE
last_feature(void)
{
    VALUE features = rb_gv_get("$LOADED_FEATURES");
    if (!RB_TYPE_P(features, T_ARRAY) || RARRAY_LEN(features) == 0) return Qnil;
    VALUE path = RARRAY_AREF(features, RARRAY_LEN(features) - 1);
    return RB_TYPE_P(path, T_STRING) ? path : Qnil;
}

static VALUE
run(const watched *m, int argc, const VALUE *argv, VALUE self)
{
    call c = {m, argc, argv, self};
    bool is_eval = m->kind == PW_LOAD_EVAL, requires = m->kind != PW_LOAD_LOAD && !is_eval;
    if (!pw_loads_wanted() || argc < 1 || (is_eval && !is_of_a_file(&c))) return call_own((VALUE)&c);
    VALUE name = argv[m->file], path = Qnil;
    pw_load load = pw_load_begin(m->kind, RB_TYPE_P(name, T_STRING) ? name : Qnil);
    int error = 0;
    VALUE result = rb_protect(call_own, (VALUE)&c, &error);
    if (requires && !error && !RTEST(result)) {
        pw_load_was_done(load);
        return result;
    }
    if (requires && !error) path = last_feature();
    if (is_eval) path = name;
    pw_load_end(load, error ? PW_RAISED : PW_LOADED, path);
    if (error) rb_jump_tag(error);
    return result;
}

/* ---- functions in place of the methods' own ---- */

/* A C function is not told which method called it, so each method has functions of its own, one for each number of
 * arguments. */
#define SLOT(i) \
    static VALUE one_##i(VALUE self, VALUE a) { return run(&methods[i], 1, (VALUE[]){a}, self); } \
    static VALUE any_##i(int argc, VALUE *argv, VALUE self) { return run(&methods[i], argc, argv, self); }
#define ROW(i) {(void *)any_##i, (void *)one_##i},
#define SLOTS(S) S(0) S(1) S(2) S(3) S(4) S(5) S(6) S(7) S(8) S(9) S(10) S(11) S(12) S(13) S(14) S(15)
enum { SLOT_COUNT = 16 };
_Static_assert((int)METHODS == (int)SLOT_COUNT, "every watched method has a slot");

SLOTS(SLOT)
static void *const functions[SLOT_COUNT][2] = {SLOTS(ROW)};

static void *function_of(int i) { return functions[i][methods[i].argc == 1]; }

/* ---- start and stop ---- */

static VALUE
method_of(const watched *m)
{
    ID id = rb_intern(m->name);
    VALUE owners[] = {rb_mKernel, rb_mKernel, rb_cBasicObject, rb_cModule, rb_const_get(rb_cObject, rb_intern("Binding"))};
    VALUE owner = owners[m->owner];
    if (m->owner == OF_KERNEL_ITSELF) return rb_obj_respond_to(owner, id, 1) ? rb_obj_method(owner, ID2SYM(id)) : Qnil;
    if (!rb_method_boundp(owner, id, 0)) return Qnil;
    return rb_funcall(owner, rb_intern("instance_method"), 1, ID2SYM(id));
}

const char *
pw_load_methods_start(void)
{
    static bool ready;
    bool requires = false;
    if (!ready) rb_gc_register_address(&kept);
    ready = true;
    kept = rb_ary_new();
    for (int i = 0; i < METHODS; i++) {
        watched *m = &methods[i];
        m->place = NULL;
        VALUE method = method_of(m);
        pw_c_method own = {0};
        if (!NIL_P(method)) own = pw_c_method_of(method, rb_intern(m->name));
        bool twice = false;
        for (int at = 0; at < i; at++) twice |= methods[at].place && methods[at].place == own.place;
        if (!own.place || own.argc != m->argc || twice) continue; /* absent, or another library's */
        m->own = *own.place;
        m->place = own.place;
        rb_ary_push(kept, method);
        if (m->owner == OF_KERNEL && m->kind == PW_LOAD_REQUIRE) requires = true;
    }
    if (!requires) {
        for (int i = 0; i < METHODS; i++) methods[i].place = NULL;
        kept = Qnil;
        return "cannot watch what is loaded: Kernel#require is not Ruby's own, nor has RubyGems kept it";
    }
    for (int i = 0; i < METHODS; i++) {
        if (methods[i].place) __atomic_store_n(methods[i].place, function_of(i), __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Code that a JIT has compiled may call Pitwall's function later. The function then calls the method's own. */
void
pw_load_methods_stop(void)
{
    for (int i = 0; i < METHODS; i++) {
        watched *m = &methods[i];
        if (m->place && *m->place == function_of(i)) __atomic_store_n(m->place, m->own, __ATOMIC_RELEASE);
        m->place = NULL;
    }
    kept = Qnil;
}
