#include "object_sum.h"

#include <ruby/st.h>

#include "pack.h"

static uint64_t
mix(uint64_t a, uint64_t b)
{
    const uint64_t both[] = {a, b};
    return fb_sum(both, sizeof both);
}

/* The order of entries and variables does not count: the same entries may be in another order. */
static int
add_entry(VALUE key, VALUE value, VALUE sum)
{
    *(uint64_t *)sum += mix(key, value);
    return ST_CONTINUE;
}

#ifdef HAVE_RB_SET_FOREACH
static int
add_element(VALUE element, VALUE sum)
{
    return add_entry(element, element, sum);
}
#endif

static int
add_variable(ID name, VALUE value, st_data_t sum)
{
    const char *text = rb_id2name(name);
    /* Variables of Ruby itself have other names. */
    if (text && text[0] == '@') *(uint64_t *)sum += mix(name, value);
    return ST_CONTINUE;
}

static uint64_t
sum_of_content(VALUE object)
{
    uint64_t sum = 0;
    switch (TYPE(object)) {
      case T_STRING:
        return fb_sum(RSTRING_PTR(object), (size_t)RSTRING_LEN(object));
      case T_ARRAY:
        return fb_sum(RARRAY_CONST_PTR(object), (size_t)RARRAY_LEN(object) * sizeof(VALUE));
      case T_HASH:
        rb_hash_foreach(object, add_entry, (VALUE)&sum);
        return sum;
      case T_STRUCT:
        for (long i = 0; i < NUM2LONG(rb_struct_size(object)); i++) sum = mix(sum, RSTRUCT_GET(object, (int)i));
        return sum;
      default:
#ifdef HAVE_RB_SET_FOREACH
        if (RB_TYPE_P(object, T_DATA) && RTEST(rb_obj_is_kind_of(object, rb_cSet))) {
            rb_set_foreach(object, add_element, (VALUE)&sum);
        }
#endif
        return sum;
    }
}

/* object_sum(object) -> Integer. The sum changes when the object changes. Changes of objects to which the object refers
 * do not count. */
static VALUE
native_object_sum(VALUE self, VALUE object)
{
    if (SPECIAL_CONST_P(object)) return INT2FIX(0);
    uint64_t sum = sum_of_content(object);
    rb_ivar_foreach(object, add_variable, (st_data_t)&sum);
    sum = mix(sum, RTEST(rb_obj_frozen_p(object)));
    return LONG2FIX((long)(sum >> 2));
}

void
fb_define_object_sum(VALUE native)
{
    rb_define_singleton_method(native, "object_sum", native_object_sum, 1);
}
