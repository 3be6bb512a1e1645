/* Hooks that Ruby hands its raw event: the proof that it looks as expected, and what they cost. */
#ifndef PITWALL_TRACE_PROBE_H
#define PITWALL_TRACE_PROBE_H

#include "collectors/trace/calls.h"
#include "tools/tick_clock.h"
#include "vm/raw_hook.h"
#include "vm/vm_compat.h"

#define PW_TRACE_CALLS (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL | RUBY_EVENT_CLASS | RUBY_EVENT_C_CALL)
#define PW_TRACE_RETURNS (RUBY_EVENT_RETURN | RUBY_EVENT_B_RETURN | RUBY_EVENT_END | RUBY_EVENT_C_RETURN)

/* What a call's probe costs, in ticks: what of it the call's own time contains, and what its caller's. */
typedef struct { double inside, outside, error; } pw_probe;

/* A module that calls in known ways. Allocates; `unused` is for rb_protect. */
VALUE pw_trace_lesson(VALUE unused);

/* Is what a raw event holds what Ruby's public functions say of it, for calls of all kinds? */
bool pw_trace_is_proven(VALUE lesson);

/* How to trace for a while. */
typedef struct { void (*begin)(void), (*end)(void); } pw_traced;

/* What a pair of call and return costs: the least of several turns, each measured as the tracer itself measures.
 * The call's own cost without a tracer stays with the one called. By kind of call; false: it could not be found
 * out. */
bool pw_trace_calibrate(VALUE lesson, const pw_tick_clock *clock, const pw_traced *traced, pw_probe *probes);

#endif
