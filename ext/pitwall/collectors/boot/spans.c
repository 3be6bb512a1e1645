#include "collectors/boot/spans.h"
#include "collectors/boot/loads.h"
#include <string.h>

static VALUE
run_super(VALUE data)
{
    const VALUE *call = (const VALUE *)data;
    return rb_call_super((int)call[0], (const VALUE *)call[1]);
}

static VALUE ask_name(VALUE self) { return rb_obj_as_string(rb_funcall(self, rb_intern("name"), 0)); }

static VALUE
name_of(int kind, int argc, const VALUE *argv, VALUE self)
{
    if (kind != PW_LOAD_INITIALIZER) return argc && RB_TYPE_P(argv[0], T_STRING) ? argv[0] : Qnil;
    int error = 0;
    VALUE saved = rb_errinfo(), name = rb_protect(ask_name, self, &error);
    if (error) rb_set_errinfo(saved);
    return error ? Qnil : name;
}

static VALUE
run(int kind, int argc, VALUE *argv, VALUE self)
{
    if (!pw_loads_wanted()) return rb_call_super(argc, argv);
    VALUE name = name_of(kind, argc, argv, self);
    pw_load load = pw_load_begin(kind, name);
    int error = 0;
    VALUE result = rb_protect(run_super, (VALUE)(VALUE[]){(VALUE)argc, (VALUE)argv}, &error);
    pw_load_end(load, error ? PW_RAISED : PW_LOADED, kind == PW_LOAD_YAML || kind == PW_LOAD_JSON ? name : Qnil);
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
