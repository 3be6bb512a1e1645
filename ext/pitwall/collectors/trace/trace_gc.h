/* Collections and objects in traced code, and a bound of memory where collection is off. */
#ifndef PITWALL_TRACE_GC_H
#define PITWALL_TRACE_GC_H

#include "vm/raw_hook.h"

/* The hook of collections and of new objects. */
void pw_trace_on_internal(VALUE unused, const pw_trace_arg *arg);
void pw_trace_gc_init(void);

#endif
