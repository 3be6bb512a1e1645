#include "collectors/boot/code_caches.h"
#include "collectors/boot/loads.h"
#include <stdbool.h>
#include <string.h>

static bool
is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++) if (strcmp(word, *words) == 0) return true;
    return false;
}

/* What pitwall/fastboot counts: lib/pitwall/fastboot/counts.rb. */
static void
note_fastboot(const char *word)
{
    /* Of searches in $LOAD_PATH, of a file that already has a word, or of an answer that the accelerator did not give. */
    static const char *const of_none[] = {"found", "not_found", "relative_load_path", "rubygems_decides", "stored",
                                          "data_stored", "from_others", NULL};
    static const char *const why_not_stored[] = {"warned", "unwatched", "moving", "undumpable", "silenced", "data_fresh",
                                                 "data_moving", "data_warned", "data_not_plain", "data_silenced", NULL};
    if (is_one_of(word, of_none)) return;
    bool of_data = strncmp(word, "data_", 5) == 0;
    pw_load_came_from("fastboot", word, !of_data, of_data, is_one_of(word, why_not_stored));
}

/* Pitwall::Fastboot::Counts#add(name) */
static VALUE
fastboot_add(VALUE self, VALUE name)
{
    if (SYMBOL_P(name)) note_fastboot(rb_id2name(rb_sym2id(name)));
    return rb_call_super(1, &name);
}

/* Bootsnap._instrument(event, path). Bootsnap calls it only with a callback of the program's own, or for Pitwall. */
static VALUE
bootsnap_instrument(VALUE self, VALUE event, VALUE path)
{
    if (SYMBOL_P(event)) pw_load_came_from("bootsnap", rb_id2name(rb_sym2id(event)), true, true, false);
    if (NIL_P(rb_ivar_get(self, rb_intern("@instrumentation")))) return Qnil;
    return rb_call_super(2, (VALUE[]){event, path});
}

/* define_cache_teller(module, method, cache): a cache ("fastboot", "bootsnap") calls this method with each of its
 * answers. Defines it in a module that is to be prepended: it notes the answer, and calls `super`. */
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
