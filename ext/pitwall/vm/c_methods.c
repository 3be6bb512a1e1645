#include "vm/c_methods.h"
#include "vm/valid_frames.h"
#include "vm/vm_compat.h"
#include "vm/vm_layout.h"

#if PW_LAYOUT_RUBY

/* A Method object's data holds a few classes and the method entry. The entry is the word that is a method entry of
 * this name. */
enum { DATA_WORDS = 5 };

static const VALUE *
entry_of(VALUE method, ID name)
{
    if (!RB_TYPE_P(method, T_DATA)) return NULL;
    const VALUE *data = RTYPEDDATA_P(method) ? pw_typed_data(method) : NULL;
    for (int i = 0; data && i < DATA_WORDS; i++) {
        if (!pw_frame_valid(data[i])) continue;
        const VALUE *entry = (const VALUE *)data[i];
        if (pw_imemo_of_flags(entry[0]) == PW_IMEMO_MENT && entry[PW_ME_CALLED_ID] == name) return entry;
    }
    return NULL;
}

pw_c_method
pw_c_method_of(VALUE method, ID name)
{
    const VALUE *entry = entry_of(method, name);
    VALUE *definition = entry ? (VALUE *)entry[PW_ME_DEF] : NULL;
    /* The alias of a module's method names the entry of that method. */
    if (definition && pw_method_type_of(definition[0]) == PW_METHOD_ALIAS) {
        entry = (const VALUE *)definition[PW_DEF_ALIASED];
        definition = entry ? (VALUE *)entry[PW_ME_DEF] : NULL;
    }
    if (!definition || pw_method_type_of(definition[0]) != PW_METHOD_CFUNC) return (pw_c_method){0};
    return (pw_c_method){(void **)&definition[PW_DEF_FUNCTION], *(const int *)&definition[PW_DEF_ARGC]};
}

VALUE
pw_code_of_method(VALUE method, ID name)
{
    const VALUE *entry = entry_of(method, name);
    const VALUE *definition = entry ? (const VALUE *)entry[PW_ME_DEF] : NULL;
    bool by_def = definition && pw_method_type_of(definition[0]) == PW_METHOD_ISEQ;
    return by_def ? definition[PW_DEF_CODE] : 0;
}

#else

pw_c_method pw_c_method_of(VALUE method, ID name) { return (pw_c_method){0}; }
VALUE pw_code_of_method(VALUE method, ID name) { return 0; }

#endif
