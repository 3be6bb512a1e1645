/*
 * The lower limit of a tracer's cost: Ruby calls a function that does nothing at every call and return. The cost of
 * Pitwall or a peer above this limit is its own.
 */
#include <ruby.h>
#include <ruby/debug.h>

#define CALLS (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL | RUBY_EVENT_CLASS | RUBY_EVENT_C_CALL)
#define RETURNS (RUBY_EVENT_RETURN | RUBY_EVENT_B_RETURN | RUBY_EVENT_END | RUBY_EVENT_C_RETURN)

static void on_event(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass) {}

/* BareHook.start */
static VALUE bare_hook_start(VALUE self)
{
    rb_add_event_hook(on_event, CALLS | RETURNS, Qnil);
    return Qnil;
}

/* BareHook.stop */
static VALUE bare_hook_stop(VALUE self)
{
    rb_remove_event_hook(on_event);
    return Qnil;
}

void Init_bare_hook(void)
{
    VALUE module = rb_define_module("BareHook");

    rb_define_singleton_method(module, "start", bare_hook_start, 0);
    rb_define_singleton_method(module, "stop", bare_hook_stop, 0);
}
