#include "tools/settings.h"
#include <stdlib.h>
#include <string.h>

VALUE
pw_setting(VALUE settings, const char *name)
{
    VALUE value = rb_hash_lookup(settings, rb_str_new_cstr(name));
    return RB_TYPE_P(value, T_STRING) ? value : Qnil;
}

bool
pw_setting_is_on(VALUE settings, const char *name, bool otherwise)
{
    VALUE value = pw_setting(settings, name);
    return NIL_P(value) ? otherwise : strcmp(StringValueCStr(value), "1") == 0;
}

uint64_t
pw_setting_number(VALUE settings, const char *name, uint64_t otherwise)
{
    VALUE value = pw_setting(settings, name);
    return NIL_P(value) ? otherwise : strtoull(StringValueCStr(value), NULL, 10);
}
