/* Hooks to which Ruby passes its raw event (rb_trace_arg_t). Each user first proves that the event is as expected. */
#ifndef PITWALL_RAW_HOOK_H
#define PITWALL_RAW_HOOK_H

#include "vm/vm_layout.h"
#include <ruby/debug.h>
#include <ruby/ruby.h>

typedef void (*pw_raw_hook)(VALUE, const pw_trace_arg *);

/* With RAW_ARG, Ruby calls a hook with the arguments of pw_raw_hook. */
static inline rb_event_hook_func_t pw_ruby_hook(pw_raw_hook hook) { return (rb_event_hook_func_t)(void (*)(void))hook; }

static inline void
pw_add_raw_hook(pw_raw_hook hook, rb_event_flag_t events)
{
    rb_add_event_hook2(pw_ruby_hook(hook), events, Qnil, RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG);
}

/* Returns how many hooks were removed. */
static inline int pw_remove_raw_hook(pw_raw_hook hook) { return rb_remove_event_hook(pw_ruby_hook(hook)); }

#endif
