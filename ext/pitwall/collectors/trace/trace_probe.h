/* The tracer's hooks receive Ruby's raw event. This file checks the event's layout and measures the hooks' cost. */
#ifndef PITWALL_TRACE_PROBE_H
#define PITWALL_TRACE_PROBE_H

#include "collectors/trace/calls.h"
#include "tools/tick_clock.h"
#include "vm/raw_hook.h"
#include "vm/vm_compat.h"

#define PW_TRACE_CALLS (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL | RUBY_EVENT_CLASS | RUBY_EVENT_C_CALL)
#define PW_TRACE_RETURNS (RUBY_EVENT_RETURN | RUBY_EVENT_B_RETURN | RUBY_EVENT_END | RUBY_EVENT_C_RETURN)

/* Cost of tracing one call, in ticks. inside: the part in the call's own time; outside: the part in its caller's. */
typedef struct { double inside, outside, error; } pw_probe;

/* Creates a module whose methods make known calls. Allocates. `unused` is for rb_protect. */
VALUE pw_trace_lesson(VALUE unused);

/* Does a raw event agree with Ruby's public functions, for all kinds of calls? */
bool pw_trace_is_proven(VALUE lesson);

/* Functions that start and stop tracing during calibration. */
typedef struct { void (*begin)(void), (*end)(void); } pw_traced;

/* Measures the tracing cost of a call and its return for each kind of call: the minimum of several turns, measured by
 * the tracer itself. The untraced cost of the call stays with the callee. False: the cost could not be measured. */
bool pw_trace_calibrate(VALUE lesson, const pw_tick_clock *clock, const pw_traced *traced, pw_probe *probes);

#endif
