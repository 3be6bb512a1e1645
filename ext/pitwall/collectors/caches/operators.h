/* Facts about methods, asked of Ruby without running code of the program. needs GVL */
#ifndef PITWALL_OPERATORS_H
#define PITWALL_OPERATORS_H

#include <ruby/ruby.h>
#include <stdbool.h>

/* May raise. */
void pw_operators_init(void);
/* Does the VM run this method without a call as long as it is not redefined? Integer#+ for example. */
bool pw_is_basic_operator(VALUE module, ID name);
/* 0 none, 1 public, 2 protected, 3 private */
int pw_visibility_of(VALUE module, ID name);
/* The object that a singleton class belongs to; Qundef for other classes. */
VALUE pw_object_of_singleton(VALUE klass);

#endif
