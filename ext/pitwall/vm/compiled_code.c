#include "vm/compiled_code.h"
#include <ruby/debug.h>

bool
pw_jit_runs(const char *jit)
{
    VALUE vm = rb_const_get(rb_cObject, rb_intern("RubyVM"));
    ID name = rb_intern(jit), enabled = rb_intern("enabled?");
    if (!rb_const_defined_at(vm, name)) return false;
    VALUE module = rb_const_get_at(vm, name);
    return rb_respond_to(module, enabled) && RTEST(rb_funcall(module, enabled, 0));
}

static void
do_nothing(rb_event_flag_t event, VALUE data, VALUE self, ID method, VALUE klass)
{
}

/* Compiled code fires no c_call events. So Ruby drops compiled code when the first c_call hook is added. */
void
pw_drop_compiled_code(void)
{
    rb_add_event_hook(do_nothing, RUBY_EVENT_C_CALL, Qnil);
    rb_remove_event_hook(do_nothing);
}
