#include "vm/replaced_methods.h"
#include "vm/c_methods.h"
#include "vm/compiled_code.h"

static void
forget(pw_replaced_methods *methods)
{
    for (int i = 0; i < methods->count; i++) methods->list[i].place = NULL;
}

void
pw_replaced_clear(pw_replaced_methods *methods)
{
    forget(methods);
    if (!methods->kept) {
        methods->kept = Qnil;
        rb_gc_register_address(&methods->kept);
    }
    methods->kept = rb_ary_new();
}

bool
pw_replaced_find(pw_replaced_methods *methods, int at, VALUE method, ID name, int argc, void *instead)
{
    if (NIL_P(method)) return false;
    pw_c_method found = pw_c_method_of(method, name);
    if (!found.place || found.argc != argc) return false;
    for (int i = 0; i < methods->count; i++) {
        if (methods->list[i].place == found.place) return false;
    }
    rb_ary_push(methods->kept, method);
    methods->list[at] = (pw_replaced_method){found.place, *found.place, instead};
    return true;
}

void
pw_replaced_begin(const pw_replaced_methods *methods)
{
    bool is_compiled = pw_jit_runs("YJIT") || pw_jit_runs("ZJIT"); /* asked first, because it may raise */
    for (int i = 0; i < methods->count; i++) {
        const pw_replaced_method *m = &methods->list[i];
        if (m->place) __atomic_store_n(m->place, m->instead, __ATOMIC_RELEASE);
    }
    if (is_compiled) pw_drop_compiled_code(); /* compiled code still calls the methods' own functions */
}

void
pw_replaced_end(pw_replaced_methods *methods)
{
    for (int i = 0; i < methods->count; i++) {
        const pw_replaced_method *m = &methods->list[i];
        if (m->place && *m->place == m->instead) __atomic_store_n(m->place, m->own, __ATOMIC_RELEASE);
    }
    forget(methods);
    if (methods->kept) methods->kept = Qnil;
}
