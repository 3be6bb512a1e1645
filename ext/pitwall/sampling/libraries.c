#include "sampling/libraries.h"
#include <stdbool.h>

enum { MOST = 16 };

static struct {
    /* The top-level constants to look for when a file is about to run, and the module to tell of each. */
    struct { ID name; VALUE teller; } wanted[MOST];
    int count;
    bool hooked;
} state;

static VALUE
look(VALUE at)
{
    int i = FIX2INT(at);
    return rb_funcall(state.wanted[i].teller, rb_intern("look"), 1, ID2SYM(state.wanted[i].name));
}

static void on_script(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass);

static void
follow(void)
{
    if (state.hooked == (state.count > 0)) return;
    state.hooked = state.count > 0;
    if (state.hooked) rb_add_event_hook((rb_event_hook_func_t)on_script, RUBY_EVENT_SCRIPT_COMPILED, Qnil);
    else rb_remove_event_hook((rb_event_hook_func_t)on_script);
}

/* Allocates nothing until one of the constants exists. A module that raises is not asked again for that constant. */
static void
on_script(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass)
{
    for (int i = 0; i < state.count; i++) {
        if (!rb_const_defined_at(rb_cObject, state.wanted[i].name)) continue;
        ID name = state.wanted[i].name;
        int error = 0;
        VALUE saved = rb_errinfo(), done = rb_protect(look, INT2FIX(i), &error);
        if (error) rb_set_errinfo(saved);
        if ((!error && !RTEST(done)) || i >= state.count || state.wanted[i].name != name) continue;
        state.wanted[i--] = state.wanted[--state.count];
    }
    follow();
}

/* watch(module, names): calls module.look(name) before each file is run, once a constant of that name exists, until
 * look returns true. The event changes no code of methods, so YJIT's compiled code stays valid. */
static VALUE
native_watch(VALUE self, VALUE teller, VALUE names)
{
    Check_Type(names, T_ARRAY);
    for (long n = 0; n < RARRAY_LEN(names); n++) {
        ID name = rb_sym2id(rb_ary_entry(names, n));
        bool known = false;
        for (int i = 0; i < state.count && !known; i++) known = state.wanted[i].name == name;
        if (known || state.count == MOST) continue;
        state.wanted[state.count].name = name;
        state.wanted[state.count++].teller = teller;
    }
    follow();
    return Qnil;
}

static void
init(VALUE native)
{
    for (int i = 0; i < MOST; i++) rb_gc_register_address(&state.wanted[i].teller);
    rb_define_singleton_method(native, "watch", native_watch, 2);
}

const pw_module pw_libraries = {.init = init};
