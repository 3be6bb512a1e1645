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

/* Each entry has a value of its own: the number, and a serial number above it. Ruby 3.1 keeps a list of the keys of each
 * value, and its compaction takes the list for an object: with 30 keys (or 62, 94, ...) for one that has moved. */
enum { NUMBER_BITS = 24 };

long
pw_weak_map_get(VALUE map, VALUE key)
{
    VALUE value = functions.get(map, key);
    return FIXNUM_P(value) ? FIX2LONG(value) & ((1L << NUMBER_BITS) - 1) : -1;
}

void
pw_weak_map_set(VALUE map, VALUE key, long number)
{
    static unsigned long serial;
    long most = (1L << NUMBER_BITS) - 1;
    unsigned long turn = ++serial & ((1UL << (sizeof(long) * 8 - 2 - NUMBER_BITS)) - 1);
    functions.set(map, key, LONG2FIX((long)(turn << NUMBER_BITS) | (number < most ? number : most)));
}
