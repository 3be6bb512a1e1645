/* The trace collector. A hook sees every call and return of methods, blocks and C functions. Each execution context
 * (a fiber's or a thread's) has a shadow stack, whose top node gets the time. */
#ifndef PITWALL_TRACER_H
#define PITWALL_TRACER_H

#include "session/modules.h"

extern const pw_module pw_tracer;

#endif
