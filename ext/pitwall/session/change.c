#include "session/change.h"

static struct {
    bool changing;
    VALUE by;        /* the thread that runs the change; nil between changes */
    VALUE exception; /* raised after the change; nil (at first Qfalse): none */
} state;

bool pw_changing(void) { return state.changing; }
void pw_raise_after(VALUE exception) { state.exception = exception; }
void pw_forget_change(void) { state.changing = false; }

static VALUE
changed(VALUE unused)
{
    state.changing = false;
    state.by = Qnil;
    return Qnil;
}

VALUE
pw_change(VALUE (*what)(VALUE), VALUE argument)
{
    state.changing = true;
    state.by = rb_thread_current();
    VALUE result = rb_ensure(what, argument, changed, Qnil), exception = state.exception;
    state.exception = Qnil;
    if (RTEST(exception)) rb_exc_raise(exception);
    return result;
}

void
pw_change_alone(VALUE (*what)(VALUE))
{
    while (state.changing && state.by != rb_thread_current()) rb_thread_schedule();
    if (state.changing) what(Qnil);
    else pw_change(what, Qnil);
}

void
pw_change_init(void)
{
    rb_gc_register_address(&state.by);
    rb_gc_register_address(&state.exception);
}
