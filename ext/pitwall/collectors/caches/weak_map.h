/* An ObjectSpace::WeakMap whose functions are called without a method call, so that no TracePoint of the program sees
 * the calls. A WeakMap belongs to the main Ractor. */
#ifndef PITWALL_WEAK_MAP_H
#define PITWALL_WEAK_MAP_H

#include <ruby/ruby.h>

/* May raise. needs GVL */
VALUE pw_weak_map_new(void);
/* The number of the key; -1: none. needs GVL */
long pw_weak_map_get(VALUE map, VALUE key);
/* number: 0 or more; what is above 2^24 - 1 counts as that. needs GVL */
void pw_weak_map_set(VALUE map, VALUE key, long number);

#endif
