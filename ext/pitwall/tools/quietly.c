#include "tools/quietly.h"

/* After Thread#kill and throw, errinfo is no exception object. */
static int
is_own_error(VALUE error)
{
    return RB_TYPE_P(error, T_OBJECT) && RTEST(rb_obj_is_kind_of(error, rb_eStandardError));
}

int
pw_quietly(VALUE (*function)(VALUE data), VALUE data, VALUE *result)
{
    int state = 0;
    VALUE saved = rb_errinfo(), value = rb_protect(function, data, &state);
    if (!state && result) *result = value;
    if (!state || !is_own_error(rb_errinfo())) return state;
    rb_set_errinfo(saved);
    return PW_FORGOTTEN;
}

bool
pw_attempt(VALUE (*function)(VALUE data), VALUE data, VALUE *result)
{
    int state = 0;
    VALUE saved = rb_errinfo(), value = rb_protect(function, data, &state);
    if (state) rb_set_errinfo(saved);
    if (result) *result = state ? Qnil : value;
    return !state;
}
