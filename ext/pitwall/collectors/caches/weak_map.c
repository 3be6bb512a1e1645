#include "collectors/caches/weak_map.h"
#include "vm/c_methods.h"

static struct {
    VALUE (*get)(VALUE map, VALUE key);
    VALUE (*set)(VALUE map, VALUE key, VALUE value);
} functions;

static void *
function_of(VALUE klass, const char *name, int argc)
{
    ID id = rb_intern(name);
    pw_c_method m = pw_c_method_of(rb_funcall(klass, rb_intern("instance_method"), 1, ID2SYM(id)), id);
    if (!m.place || m.argc != argc) rb_raise(rb_eRuntimeError, "WeakMap#%s is not Ruby's own", name);
    return *m.place;
}

VALUE
pw_weak_map_new(void)
{
    VALUE klass = rb_const_get(rb_const_get(rb_cObject, rb_intern("ObjectSpace")), rb_intern("WeakMap"));
    if (!functions.get) {
        functions.get = (VALUE (*)(VALUE, VALUE))function_of(klass, "[]", 1);
        functions.set = (VALUE (*)(VALUE, VALUE, VALUE))function_of(klass, "[]=", 2);
    }
    return rb_funcall(klass, rb_intern("new"), 0);
}

VALUE pw_weak_map_get(VALUE map, VALUE key) { return functions.get(map, key); }
void pw_weak_map_set(VALUE map, VALUE key, VALUE value) { functions.set(map, key, value); }
