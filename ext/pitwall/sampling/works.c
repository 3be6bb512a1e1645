#include "sampling/works.h"
#include "session/modules.h"
#include "tools/clock.h"

pw_work_counts pw_works;

/* begin_work() -> now: a piece of work begins. */
static VALUE
native_begin_work(VALUE self)
{
    atomic_fetch_add_explicit(&pw_works.begun, 1, memory_order_relaxed);
    pw_modules_work();
    return LL2NUM(pw_now_ns());
}

void
pw_work_ended(void)
{
    pw_modules_work();
    atomic_fetch_add_explicit(&pw_works.ended, 1, memory_order_relaxed);
}

void
pw_works_reset(void)
{
    atomic_store(&pw_works.begun, 0);
    atomic_store(&pw_works.ended, 0);
}

void
pw_works_init(VALUE native)
{
    rb_define_singleton_method(native, "begin_work", native_begin_work, 0);
}
