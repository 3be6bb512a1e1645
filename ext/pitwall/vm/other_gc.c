#include "vm/other_gc.h"
#include "tools/quietly.h"
#include <ruby/ruby.h>
#include <stdio.h>
#include <string.h>

/* A Ruby built --with-modular-gc may run another collector than its own (RUBY_GC_LIBRARY). MMTk's collector reports
 * few events and no causes, and places objects in another way. */
static char other_gc[64];

const char *pw_other_gc(void) { return other_gc[0] ? other_gc : NULL; }

static VALUE
ask_implementation(VALUE unused)
{
    ID config = rb_intern("config");
    if (!rb_respond_to(rb_mGC, config)) return Qnil; /* up to 3.3 there is one collector */
    return rb_hash_lookup(rb_funcall(rb_mGC, config, 0), ID2SYM(rb_intern("implementation")));
}

void
pw_other_gc_init(void)
{
    VALUE name;
    pw_attempt(ask_implementation, Qnil, &name);
    if (!RB_TYPE_P(name, T_STRING) || strcmp(StringValueCStr(name), "default") == 0) return;
    snprintf(other_gc, sizeof other_gc, "%s", StringValueCStr(name));
}
