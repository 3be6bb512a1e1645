/* Exact calls: a hook sees every call and return of methods, blocks and C functions, and a shadow stack an execution context
 * (a fiber's or a thread's) says whose time passes. */
#ifndef PITWALL_TRACER_H
#define PITWALL_TRACER_H

#include "session/collector.h"

extern const pw_collector pw_tracer;

void pw_tracer_init(VALUE native);
/* Collections are no longer told apart from what runs them, nor objects counted. */
void pw_tracer_stop_internal(void);

#endif
