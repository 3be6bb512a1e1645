/*
 * The transitions of a time zone as bytes, and made of bytes. lib/pitwall/fastboot/zone_data.rb has a table of the
 * format. It is in C because the system's time zones have more than 50,000 transitions.
 */
#include "zone_data.h"

#include <stdint.h>
#include <string.h>

enum { OFFSETS = 256, ROW = 10, VARIABLES = 3 };

static ID id_offset, id_previous, id_time;

/* The number of an offset in the Array `offsets`. A new one is added. -1: there are too many. A zone has few. */
static long
number_of(VALUE offsets, VALUE offset)
{
    long count = RARRAY_LEN(offsets);
    for (long i = 0; i < count; i++) {
        if (rb_ary_entry(offsets, i) == offset) return i;
    }
    if (count == OFFSETS) return -1;
    rb_ary_push(offsets, offset);
    return count;
}

/* Native.zone_bytes(transitions, class) -> [bytes, the different offsets]. nil: the transitions are not all plain objects
 * of this class, or their times do not increase. */
static VALUE
native_zone_bytes(VALUE self, VALUE transitions, VALUE type)
{
    Check_Type(transitions, T_ARRAY);
    VALUE offsets = rb_ary_new(), bytes = rb_str_buf_new(RARRAY_LEN(transitions) * ROW);
    int64_t before = INT64_MIN;
    for (long i = 0; i < RARRAY_LEN(transitions); i++) {
        VALUE one = rb_ary_entry(transitions, i);
        if (!RB_TYPE_P(one, T_OBJECT) || CLASS_OF(one) != type || OBJ_FROZEN(one)) return Qnil;
        if (rb_ivar_count(one) != VARIABLES) return Qnil;

        VALUE time = rb_ivar_get(one, id_time);
        if (!FIXNUM_P(time) || FIX2LONG(time) <= before) return Qnil;
        before = FIX2LONG(time);

        long offset = number_of(offsets, rb_ivar_get(one, id_offset));
        long previous = number_of(offsets, rb_ivar_get(one, id_previous));
        if (offset < 0 || previous < 0) return Qnil;

        char row[ROW] = {(char)offset, (char)previous};
        memcpy(row + 2, &before, sizeof before);
        rb_str_cat(bytes, row, ROW);
    }
    return rb_assoc_new(bytes, offsets);
}

/* Native.zone_transitions(bytes, offsets, class) -> new transitions. ArgumentError: the bytes are damaged.
 *
 * tzinfo's `initialize` sets the three variables in this order, and nothing else. To set them here is faster. */
static VALUE
native_zone_transitions(VALUE self, VALUE bytes, VALUE offsets, VALUE type)
{
    StringValue(bytes);
    Check_Type(offsets, T_ARRAY);
    long count = RSTRING_LEN(bytes) / ROW;
    if (RSTRING_LEN(bytes) % ROW) rb_raise(rb_eArgError, "damaged data");

    VALUE transitions = rb_ary_new_capa(count);
    for (long i = 0; i < count; i++) {
        unsigned char row[ROW];
        int64_t time;
        memcpy(row, RSTRING_PTR(bytes) + i * ROW, ROW);
        memcpy(&time, row + 2, sizeof time);
        if (row[0] >= RARRAY_LEN(offsets) || row[1] >= RARRAY_LEN(offsets)) rb_raise(rb_eArgError, "damaged data");
        VALUE one = rb_obj_alloc(type);
        rb_ivar_set(one, id_offset, rb_ary_entry(offsets, row[0]));
        rb_ivar_set(one, id_previous, rb_ary_entry(offsets, row[1]));
        rb_ivar_set(one, id_time, LL2NUM(time));
        rb_ary_push(transitions, one);
    }
    RB_GC_GUARD(bytes);
    return transitions;
}

void
fb_define_zone_data(VALUE native)
{
    id_offset = rb_intern("@offset");
    id_previous = rb_intern("@previous_offset");
    id_time = rb_intern("@timestamp_value");
    rb_define_singleton_method(native, "zone_bytes", native_zone_bytes, 2);
    rb_define_singleton_method(native, "zone_transitions", native_zone_transitions, 3);
}
