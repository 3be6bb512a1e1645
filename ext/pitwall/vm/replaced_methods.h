/* C methods that run functions of Pitwall in place of their own, for as long as a collector watches them. */
#ifndef PITWALL_REPLACED_METHODS_H
#define PITWALL_REPLACED_METHODS_H

#include <ruby/ruby.h>
#include <stdbool.h>

typedef struct {
    void **place; /* where Ruby has the function's address; NULL: the method is not replaced */
    void *own;    /* the method's own function. It stays: code that a JIT has compiled calls Pitwall's function later */
    void *instead;
} pw_replaced_method;

/* The methods of one collector. */
typedef struct {
    pw_replaced_method *list;
    int count;
    VALUE kept; /* an Array of the Method objects. Ruby frees what `place` is in when the program redefines a method to
                 * which nothing refers. 0 before the first begin */
} pw_replaced_methods;

/* Forgets which methods were found. May raise. needs GVL */
void pw_replaced_clear(pw_replaced_methods *methods);
/* Finds the function of a Method object (nil: there is no such method). `argc`: as given to rb_define_method. False:
 * the method is not written in C, takes other arguments, or is in the list already. May raise. needs GVL */
bool pw_replaced_find(pw_replaced_methods *methods, int at, VALUE method, ID name, int argc, void *instead);
/* From here on the methods that were found run the other functions, also where a JIT has compiled a call. May raise.
 * needs GVL */
void pw_replaced_begin(const pw_replaced_methods *methods);
/* Puts the methods' own functions back, and clears. A function that somebody else has put there since stays. */
void pw_replaced_end(pw_replaced_methods *methods);

#endif
