/* The C function of a method, and the place in Ruby's memory that holds the function's address. Writing another
 * address there makes every call of the method run another function. The method stays the same object: its owner, its
 * name, its aliases and the caches of its callers do not change. */
#ifndef PITWALL_C_METHODS_H
#define PITWALL_C_METHODS_H

#include <ruby/ruby.h>
#include <stdbool.h>

typedef struct {
    void **place;  /* NULL: the method is not written in C, or this Ruby's layout is not known */
    int argc;      /* as given to rb_define_method */
} pw_c_method;

/* The method that an UnboundMethod or Method names. needs GVL */
pw_c_method pw_c_method_of(VALUE method, ID name);
/* The iseq of a method that `def` has made; 0: another kind of method, or not known. Each run of one `def` makes a
 * method with the same iseq. needs GVL */
VALUE pw_code_of_method(VALUE method, ID name);

#endif
