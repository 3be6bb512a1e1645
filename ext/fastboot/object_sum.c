#include "object_sum.h"

#include <ruby/st.h>

#include "pack.h"

#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

static uint64_t
mix(uint64_t a, uint64_t b)
{
    uint64_t mixed = (a ^ (b + FACTOR)) * UINT64_C(0xff51afd7ed558ccd);
    return mixed ^ (mixed >> 32);
}

/* Entries and variables count in any order: a hash that was made again may have another one. */
static int
add_entry(VALUE key, VALUE value, VALUE sum)
{
    *(uint64_t *)sum += mix(key, value);
    return ST_CONTINUE;
}

static int
add_variable(ID name, VALUE value, st_data_t sum)
{
    const char *text = rb_id2name(name);
    /* Ruby itself keeps others there. */
    if (text && text[0] == '@') *(uint64_t *)sum += mix(name, value);
    return ST_CONTINUE;
}

static uint64_t
sum_of_bytes(const void *bytes, size_t length)
{
    return length == 0 ? 1 : fb_sum(bytes, length);
}

static uint64_t
sum_of_content(VALUE object)
{
    uint64_t sum = 0;
    switch (TYPE(object)) {
      case T_STRING:
        return sum_of_bytes(RSTRING_PTR(object), (size_t)RSTRING_LEN(object));
      case T_ARRAY:
        return sum_of_bytes(RARRAY_CONST_PTR(object), (size_t)RARRAY_LEN(object) * sizeof(VALUE));
      case T_HASH:
        rb_hash_foreach(object, add_entry, (VALUE)&sum);
        return sum;
      case T_STRUCT:
        for (long i = 0; i < NUM2LONG(rb_struct_size(object)); i++) sum = mix(sum, RSTRUCT_GET(object, (int)i));
        return sum;
      default:
#ifdef HAVE_RB_SET_SIZE
        if (RB_TYPE_P(object, T_DATA) && RTEST(rb_obj_is_kind_of(object, rb_cSet))) return rb_set_size(object);
#endif
        return 0;
    }
}

/* object_sum(object) -> Integer: another one if the object itself has changed. Not of the objects that it refers to. */
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
