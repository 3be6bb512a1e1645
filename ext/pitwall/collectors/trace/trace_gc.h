/* Counts collections and objects in traced code. Limits memory while garbage collection is off. */
#ifndef PITWALL_TRACE_GC_H
#define PITWALL_TRACE_GC_H

#include "vm/raw_hook.h"

/* The hook for collections and new objects. */
void pw_trace_on_internal(VALUE unused, const pw_trace_arg *arg);
void pw_trace_gc_init(void);

#endif
