#include "collectors/boot/spans.h"
#include "collectors/boot/loads.h"
#include "tools/quietly.h"
#include <string.h>

typedef struct { int argc, keywords; const VALUE *argv; } super_call;

static VALUE
run_super(VALUE data)
{
    const super_call *c = (const super_call *)data;
    return rb_call_super_kw(c->argc, c->argv, c->keywords);
}

/* Of an initializer: its name, and where its block begins. */
static VALUE
ask_initializer(VALUE self)
{
    VALUE name = rb_obj_as_string(rb_funcall(self, rb_intern("name"), 0));
    VALUE block = rb_ivar_get(self, rb_intern("@block")), place = Qnil;
    if (rb_obj_is_proc(block)) place = rb_funcall(block, rb_intern("source_location"), 0);
    return rb_assoc_new(name, place);
}

/* Of a Pathname: its path. */
static VALUE
ask_path(VALUE file)
{
    VALUE path = rb_check_funcall(file, rb_intern("to_path"), 0, NULL);
    return RB_TYPE_P(path, T_STRING) ? path : Qnil;
}

/* nil: it raised an exception of its own. */
static VALUE
ask(VALUE (*question)(VALUE), VALUE object)
{
    VALUE found = Qnil;
    pw_go_on(pw_quietly(question, object, &found));
    return found;
}

static void
describe(int kind, int argc, const VALUE *argv, VALUE self, VALUE *name, VALUE *place)
{
    *name = argc && RB_TYPE_P(argv[0], T_STRING) ? argv[0] : Qnil;
    *place = Qnil;
    if (argc && NIL_P(*name) && pw_load_is_data(kind)) *name = ask(ask_path, argv[0]);
    if (kind != PW_LOAD_INITIALIZER) return;
    VALUE found = ask(ask_initializer, self);
    *name = NIL_P(found) ? Qnil : rb_ary_entry(found, 0);
    *place = NIL_P(found) ? Qnil : rb_ary_entry(found, 1);
}

static VALUE
run(int kind, int argc, VALUE *argv, VALUE self)
{
    super_call c = {argc, rb_keyword_given_p() ? RB_PASS_KEYWORDS : RB_NO_KEYWORDS, argv};
    if (!pw_loads_wanted()) return run_super((VALUE)&c);
    VALUE name, place;
    describe(kind, argc, argv, self, &name, &place);
    pw_load load = pw_load_begin(kind, name);
    if (RB_TYPE_P(place, T_ARRAY)) pw_load_is_of(load, rb_ary_entry(place, 0), NUM2INT(rb_ary_entry(place, 1)));
    int error = 0;
    VALUE result = rb_protect(run_super, (VALUE)&c, &error);
    pw_load_end(load, error ? PW_RAISED : PW_LOADED, pw_load_is_data(kind) ? name : Qnil);
    if (error) rb_jump_tag(error);
    RB_GC_GUARD(name);
    return result;
}

#define SPAN(constant, name) \
    static VALUE span_##constant(int argc, VALUE *argv, VALUE self) { return run(constant, argc, argv, self); }
PW_LOAD_KINDS(SPAN)

static const struct {
    const char *name;
    VALUE (*function)(int, VALUE *, VALUE);
} spans[] = {
#define ROW(constant, name) {name, span_##constant},
    PW_LOAD_KINDS(ROW)
};

/* define_span(module, method, kind): defines the method in the module. The method calls `super`, as a load of this
 * kind. */
static VALUE
native_define_span(VALUE self, VALUE module, VALUE method, VALUE kind)
{
    Check_Type(module, T_MODULE);
    rb_ext_ractor_safe(true); /* within a require, Ruby treats a new method as unsafe */
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        if (strcmp(StringValueCStr(kind), spans[i].name) != 0) continue;
        rb_define_method(module, rb_id2name(rb_sym2id(method)), spans[i].function, -1);
        return Qtrue;
    }
    return Qfalse;
}

void
pw_spans_init(VALUE native)
{
    rb_define_singleton_method(native, "define_span", native_define_span, 3);
}
