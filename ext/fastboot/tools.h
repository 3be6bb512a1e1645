#ifndef FASTBOOT_TOOLS_H
#define FASTBOOT_TOOLS_H

#include <ruby.h>

#include <string.h>

/* Keeps objects in these static variables from being collected. The last address is NULL. */
static inline void
fb_hold(VALUE *const addresses[])
{
    for (; *addresses; addresses++) rb_gc_register_address(*addresses);
}

/* The method that the owner itself has: `method`, or one that it calls by `super`. nil: none. */
static inline VALUE
fb_method_of(VALUE method, VALUE owner)
{
    while (!NIL_P(method) && rb_funcall(method, rb_intern("owner"), 0) != owner) {
        method = rb_funcall(method, rb_intern("super_method"), 0);
    }
    return method;
}

/* Calls `define`, such as rb_define_method. Ruby would warn that the method is defined a second time. */
static inline void
fb_redefine(void (*define)(VALUE, const char *, VALUE (*)(ANYARGS), int), VALUE owner, const char *name,
            VALUE (*function)(ANYARGS), int arity)
{
    VALUE verbose = ruby_verbose;
    ruby_verbose = Qfalse;
    define(owner, name, function, arity);
    ruby_verbose = verbose;
}

/* Replaces a singleton method, and returns the Method that was there. No module is prepended instead, because an alias
 * of a method that calls `super` would call itself without end. A module that others have prepended stays in front. */
static inline VALUE
fb_replace_method(VALUE object, const char *name, VALUE (*function)(ANYARGS), int arity)
{
    VALUE inherited = rb_obj_method(object, ID2SYM(rb_intern(name)));
    VALUE own = fb_method_of(inherited, rb_singleton_class(object)), before = NIL_P(own) ? inherited : own;
    fb_redefine(rb_define_singleton_method, object, name, function, arity);
    return before;
}

static inline int
fb_ends_with(VALUE name, const char *ending)
{
    long length = RSTRING_LEN(name), ending_length = (long)strlen(ending);
    return length >= ending_length && memcmp(RSTRING_PTR(name) + length - ending_length, ending, ending_length) == 0;
}

#endif
