/*
 * Makes the objects of a YAML or JSON file from bytes. lib/pitwall/fastboot/plain_data.rb writes them, and has a table
 * of the format. Each call makes new objects. Damaged bytes raise ArgumentError.
 */
#include "plain_data.h"

#include <ruby/encoding.h>

#include <stdint.h>
#include <string.h>

enum { DEEPEST = 100 }; /* as in plain_data.rb; each level takes C stack */

struct reader {
    const char *at, *end;
    rb_encoding *utf8;
    VALUE shared; /* an Array: objects that occur again; Qfalse: none yet */
    int frozen;
};

NORETURN(static void damaged(void));

static void
damaged(void)
{
    rb_raise(rb_eArgError, "damaged data");
}

static size_t
left(const struct reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

static unsigned char
read_byte(struct reader *reader)
{
    if (reader->at == reader->end) damaged();
    return (unsigned char)*reader->at++;
}

/* Seven bits a byte, the highest first; all but the last have the bit 128 (`w` of Array#pack). */
static uint64_t
read_number(struct reader *reader)
{
    uint64_t number = 0;
    for (;;) {
        unsigned char byte = read_byte(reader);
        if (number >> 57) damaged();
        number = number << 7 | (byte & 127);
        if (byte < 128) return number;
    }
}

/* A number of bytes or of objects, which have at least one byte each. */
static long
read_count(struct reader *reader)
{
    uint64_t count = read_number(reader);
    if (count > left(reader)) damaged();
    return (long)count;
}

static const char *
take(struct reader *reader, long length)
{
    if ((size_t)length > left(reader)) damaged();
    const char *bytes = reader->at;
    reader->at += length;
    return bytes;
}

static VALUE
read_symbol(struct reader *reader)
{
    long length = read_count(reader);
    const char *bytes = take(reader, length);
    VALUE symbol = rb_check_symbol_cstr(bytes, length, reader->utf8);
    return NIL_P(symbol) ? rb_to_symbol(rb_enc_str_new(bytes, length, reader->utf8)) : symbol;
}

static VALUE
read_integer(struct reader *reader)
{
    uint64_t number = read_number(reader);
    return LL2NUM((int64_t)(number >> 1) ^ -(int64_t)(number & 1));
}

static VALUE
read_large_integer(struct reader *reader)
{
    long length = read_count(reader);
    return rb_str_to_inum(rb_str_new(take(reader, length), length), 10, 1);
}

static VALUE
read_float(struct reader *reader)
{
    double number;
    memcpy(&number, take(reader, sizeof number), sizeof number);
    return DBL2NUM(number);
}

static VALUE
read_string(struct reader *reader, int interned)
{
    long length = read_count(reader);
    const char *bytes = take(reader, length);
    return interned ? rb_enc_interned_str(bytes, length, reader->utf8) : rb_enc_str_new(bytes, length, reader->utf8);
}

/* The object may be referred to from now on, also from what is in it. */
static VALUE
share(struct reader *reader, VALUE object, int is_shared)
{
    if (!is_shared) return object;
    if (!reader->shared) reader->shared = rb_ary_new();
    return rb_ary_push(reader->shared, object), object;
}

static VALUE read_object(struct reader *reader, int depth);

static VALUE
read_array(struct reader *reader, int depth, int is_shared)
{
    long count = read_count(reader);
    VALUE array = share(reader, rb_ary_new_capa(count), is_shared);
    while (count-- > 0) rb_ary_push(array, read_object(reader, depth + 1));
    return reader->frozen ? rb_ary_freeze(array) : array;
}

static VALUE
read_hash(struct reader *reader, int depth, int is_shared)
{
    long count = read_count(reader);
#ifdef HAVE_RB_HASH_NEW_CAPA
    VALUE hash = share(reader, rb_hash_new_capa(count), is_shared);
#else
    VALUE hash = share(reader, rb_hash_new(), is_shared);
#endif
    while (count-- > 0) {
        VALUE key = read_object(reader, depth + 1);
        rb_hash_aset(hash, key, read_object(reader, depth + 1));
    }
    return reader->frozen ? rb_hash_freeze(hash) : hash;
}

static VALUE
read_reference(struct reader *reader)
{
    uint64_t number = read_number(reader);
    if (!reader->shared || number >= (uint64_t)RARRAY_LEN(reader->shared)) damaged();
    return RARRAY_AREF(reader->shared, (long)number);
}

static VALUE
read_object(struct reader *reader, int depth)
{
    if (depth > DEEPEST) damaged();
    unsigned char type = read_byte(reader);
    int is_shared = type == 'm';
    if (is_shared) type = read_byte(reader);
    switch (type) {
      case 'k': return read_string(reader, 1);
      case 's': return share(reader, read_string(reader, reader->frozen), is_shared);
      case 'h': return read_hash(reader, depth, is_shared);
      case 'a': return read_array(reader, depth, is_shared);
      case 'y': return read_symbol(reader);
      case 'i': return read_integer(reader);
      case 'n': return Qnil;
      case 't': return Qtrue;
      case 'f': return Qfalse;
      case 'd': return read_float(reader);
      case 'b': return read_large_integer(reader);
      case 'r': return read_reference(reader);
    }
    damaged();
}

static VALUE
native_plain_data(VALUE self, VALUE bytes, VALUE frozen)
{
    StringValue(bytes);
    struct reader reader = {
        .at = RSTRING_PTR(bytes), .end = RSTRING_END(bytes), .utf8 = rb_utf8_encoding(), .shared = Qfalse,
        .frozen = RTEST(frozen),
    };
    VALUE object = read_object(&reader, 0);
    if (reader.at != reader.end) damaged();
    RB_GC_GUARD(bytes);
    return object;
}

void
fb_define_plain_data(VALUE native)
{
    rb_define_singleton_method(native, "plain_data", native_plain_data, 2);
}
