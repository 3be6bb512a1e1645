/* Exact calls: a hook sees every call and return of methods, blocks and C functions, and a shadow stack an
 * execution context (a fiber's or a thread's) says whose time passes. */
#ifndef PITWALL_TRACER_H
#define PITWALL_TRACER_H

#include "session/modules.h"

extern const pw_module pw_tracer;

#endif
