#include "vm/compiled_code.h"
#include <ruby/debug.h>

bool
pw_jit_runs(const char *jit)
{
    VALUE vm = rb_const_get(rb_cObject, rb_intern("RubyVM"));
    ID name = rb_intern(jit), enabled = rb_intern("enabled?");
    if (!rb_const_defined(vm, name)) return false;
    VALUE module = rb_const_get(vm, name);
    return rb_respond_to(module, enabled) && RTEST(rb_funcall(module, enabled, 0));
}

static void
do_nothing(rb_event_flag_t event, VALUE data, VALUE self, ID method, VALUE klass)
{
}

/* Compiled code does not tell of calls of C functions, so Ruby drops this code when such calls begin to be traced. */
void
pw_drop_compiled_code(void)
{
    if (!pw_jit_runs("YJIT") && !pw_jit_runs("ZJIT")) return;
    rb_add_event_hook(do_nothing, RUBY_EVENT_C_CALL, Qnil);
    rb_remove_event_hook(do_nothing);
}
