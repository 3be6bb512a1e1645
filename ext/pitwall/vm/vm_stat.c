#include "vm/vm_stat.h"
#include "vm/c_methods.h"

static VALUE (*function)(int argc, VALUE *argv, VALUE self);
static VALUE vm_class;

bool
pw_vm_stat_find(void)
{
    if (function) return true;
    ID stat = rb_intern("stat");
    vm_class = rb_const_get(rb_cObject, rb_intern("RubyVM"));
    pw_c_method found = pw_c_method_of(rb_obj_method(vm_class, ID2SYM(stat)), stat);
    if (!found.place || found.argc != -1) return false;
    function = (VALUE (*)(int, VALUE *, VALUE))*found.place;
    return true;
}

VALUE
pw_vm_stat_all(void)
{
    return function(0, NULL, vm_class);
}

uint64_t
pw_vm_stat(VALUE name)
{
    return NUM2ULL(function(1, &name, vm_class));
}
