#include "collectors/boot/load_methods.h"
#include "collectors/boot/loads.h"
#include "vm/replaced_methods.h"
#include <string.h>

enum { OF_KERNEL, OF_KERNEL_ITSELF, OF_BASIC_OBJECT, OF_MODULE, OF_BINDING };

typedef struct {
    int owner;
    const char *name;
    int kind;
    int file;    /* of code that is evaluated: the argument that names the file */
    int argc;    /* as given to rb_define_method */
} watched;

/* Libraries that replace `require` keep Ruby's own method under another name. Several names may share one function; it
 * is watched once. Bundler.setup puts a `require` from bundled_gems.rb in place (Ruby 3.3 and newer). That one calls
 * Kernel.no_warning_require, which is Ruby's own. */
static const watched methods[] = {
    {OF_KERNEL, "pitwall_require_before", PW_LOAD_REQUIRE, 0, 1}, /* Ruby's own, if RubyGems is absent */
    {OF_KERNEL, "require", PW_LOAD_REQUIRE, 0, 1},
    {OF_KERNEL, "gem_original_require", PW_LOAD_REQUIRE, 0, 1},
    {OF_KERNEL, "require_without_bootsnap", PW_LOAD_REQUIRE, 0, 1},
    {OF_KERNEL, "zeitwerk_original_require", PW_LOAD_REQUIRE, 0, 1},
    {OF_KERNEL, "no_warning_require", PW_LOAD_REQUIRE, 0, 1},
    {OF_KERNEL_ITSELF, "require", PW_LOAD_REQUIRE, 0, 1},
    {OF_KERNEL_ITSELF, "no_warning_require", PW_LOAD_REQUIRE, 0, 1},
    {OF_KERNEL, "require_relative", PW_LOAD_REQUIRE_RELATIVE, 0, 1},
    {OF_KERNEL_ITSELF, "require_relative", PW_LOAD_REQUIRE_RELATIVE, 0, 1},
    {OF_KERNEL, "load", PW_LOAD_LOAD, 0, -1},
    {OF_KERNEL, "load_without_bootsnap", PW_LOAD_LOAD, 0, -1},
    {OF_KERNEL_ITSELF, "load", PW_LOAD_LOAD, 0, -1},
    {OF_KERNEL, "eval", PW_LOAD_EVAL, 2, -1},
    {OF_KERNEL_ITSELF, "eval", PW_LOAD_EVAL, 2, -1},
    {OF_BASIC_OBJECT, "instance_eval", PW_LOAD_EVAL, 1, -1},
    {OF_MODULE, "class_eval", PW_LOAD_EVAL, 1, -1},
    {OF_MODULE, "module_eval", PW_LOAD_EVAL, 1, -1},
    {OF_BINDING, "eval", PW_LOAD_EVAL, 1, -1},
};

enum { METHODS = sizeof methods / sizeof *methods };

static pw_replaced_method replaced_list[METHODS]; /* by the index in `methods` */
static pw_replaced_methods replaced = {replaced_list, METHODS, 0};

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
    void *own = replaced_list[c->method - methods].own;
    if (c->method->argc == 1) return ((VALUE (*)(VALUE, VALUE))own)(c->self, c->argv[0]);
    return ((VALUE (*)(int, const VALUE *, VALUE))own)(c->argc, c->argv, c->self);
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

/* Not inlined: gcc would warn of argv[1] where a caller has one argument. */
static __attribute__((noinline)) VALUE
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
#define SLOTS(S) S(0) S(1) S(2) S(3) S(4) S(5) S(6) S(7) S(8) S(9) S(10) S(11) S(12) S(13) S(14) S(15) S(16) S(17) S(18)
enum { SLOT_COUNT = 19 };
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
    /* Then Kernel#require is the accelerator's (pitwall/fastboot), which calls Ruby's own. */
    bool is_require = m->owner == OF_KERNEL && strcmp(m->name, "require") == 0;
    if (is_require && rb_method_boundp(owner, rb_intern("pitwall_require_before"), 0)) return Qnil;
    return rb_funcall(owner, rb_intern("instance_method"), 1, ID2SYM(id));
}

const char *
pw_load_methods_start(void)
{
    bool requires = false;
    pw_replaced_clear(&replaced);
    for (int i = 0; i < METHODS; i++) {
        const watched *m = &methods[i];
        bool found = pw_replaced_find(&replaced, i, method_of(m), rb_intern(m->name), m->argc, function_of(i));
        if (found && m->owner == OF_KERNEL && m->kind == PW_LOAD_REQUIRE) requires = true;
    }
    if (!requires) {
        pw_replaced_end(&replaced);
        return "cannot watch what is loaded: Kernel#require is not Ruby's own, nor has RubyGems kept it";
    }
    pw_replaced_begin(&replaced);
    return NULL;
}

void pw_load_methods_stop(void) { pw_replaced_end(&replaced); }
