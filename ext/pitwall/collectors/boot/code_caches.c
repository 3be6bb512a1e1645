#include "collectors/boot/code_caches.h"
#include "collectors/boot/loads.h"
#include <stdbool.h>
#include <string.h>

/* What pitwall/fastboot counts of searches in $LOAD_PATH. It says nothing of the file that is being loaded. */
static bool
is_of_search(VALUE name)
{
    static const char *const names[] = {"found", "not_found", "relative_load_path", "rubygems_decides"};
    const char *text = rb_id2name(rb_sym2id(name));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) if (strcmp(text, names[i]) == 0) return true;
    return false;
}

/* Pitwall::Fastboot::Counts#add(name) */
static VALUE
fastboot_add(VALUE self, VALUE name)
{
    if (SYMBOL_P(name) && !is_of_search(name)) pw_load_came_from("fastboot", name);
    return rb_call_super(1, &name);
}

/* Bootsnap._instrument(event, path). Bootsnap calls it only with a callback of the program's own, or for Pitwall. */
static VALUE
bootsnap_instrument(VALUE self, VALUE event, VALUE path)
{
    pw_load_came_from("bootsnap", event);
    if (NIL_P(rb_ivar_get(self, rb_intern("@instrumentation")))) return Qnil;
    return rb_call_super(2, (VALUE[]){event, path});
}

/* define_cache_teller(module, method, cache): defines the method by which a cache ("fastboot", "bootsnap") is told what
 * it did. It calls `super`. */
static VALUE
native_define_cache_teller(VALUE self, VALUE module, VALUE method, VALUE cache)
{
    Check_Type(module, T_MODULE);
    bool is_bootsnap = strcmp(StringValueCStr(cache), "bootsnap") == 0;
    const char *name = rb_id2name(rb_sym2id(method));
    rb_ext_ractor_safe(true); /* within a require, Ruby treats a new method as unsafe */
    if (is_bootsnap) rb_define_method(module, name, bootsnap_instrument, 2);
    else rb_define_method(module, name, fastboot_add, 1);
    return Qtrue;
}

void
pw_code_caches_init(VALUE native)
{
    rb_define_singleton_method(native, "define_cache_teller", native_define_cache_teller, 3);
}
