/* The hook of calls and returns.
 *
 * Each entry of a shadow stack holds the address of its control frame. Calls push frames at lower addresses. So the
 * frame of an event shows which entries have ended, including entries that ended without an event (tail calls,
 * abandoned contexts). A C function's frame does not exist yet when its call is reported. The frame will lie below
 * its caller's frame. Filtered calls have entries as well, with their caller's node. Without these entries, a return
 * could be matched to the wrong call. */
#include "collectors/trace/tracer.h"
#include "collectors/trace/shadow.h"
#include "collectors/trace/trace_gc.h"
#include "collectors/trace/trace_writer.h"
#include "output/drain.h"
#include "output/frame_names.h"
#include "session/session.h"
#include "tools/quietly.h"
#include "tools/settings.h"
#include "vm/stack_walk.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLLECTIONS (RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_END_MARK | RUBY_INTERNAL_EVENT_GC_END_SWEEP | RUBY_INTERNAL_EVENT_GC_EXIT)

enum { GAP_NS = 20000 };

static const char *
cannot(const char *why)
{
    static char text[160];
    snprintf(text, sizeof text, "cannot trace: %s", why);
    return text;
}

#if PW_LAYOUT_RUBY

/* ---- events ---- */

static inline void
enter(pw_shadow *s, const pw_trace_arg *arg, const VALUE *own, VALUE a, VALUE b, uint8_t kind)
{
    pw_call_node *from = pw_shadow_top(s), *node = pw_call_child(from, a, b);
    if (__builtin_expect(!node, 0)) {
        pw_call_site site = {arg->ec, arg->cfp, 0};
        node = pw_shadow_find_node(s, from, a, b, kind, &site);
        if (!node) node = from; /* no room: the call is counted as lost */
        else if (node == from) from->hidden++;
        else node->calls++;
    }
    else if (node == from) from->hidden++;
    else node->calls++;
    pw_shadow_push(s, own, node, a, b);
}

static inline void
enter_ruby(pw_shadow *s, const pw_trace_arg *arg, uint8_t kind)
{
    const VALUE *own = arg->cfp;
    VALUE iseq = own[PW_CFP_ISEQ];
    pw_shadow_trim(s, own);
    if (s->entries[s->count - 1].own == own) {
        /* Ruby reports a block that is a method twice. Otherwise the frame has replaced another frame. */
        if (kind == PW_CALL_BLOCK && pw_trace.just_called == own && s->entries[s->count - 1].a == iseq) {
            pw_trace.just_called = NULL;
            return;
        }
        s->count--;
    }
    enter(s, arg, own, iseq, 0, kind);
}

static inline void
leave_ruby(pw_shadow *s, const VALUE *own)
{
    pw_shadow_trim(s, own);
    const pw_shadow_entry *e = &s->entries[s->count - 1];
    if (e->own == own) s->count--;
}

static inline bool
is_of(const pw_shadow_entry *e, const pw_trace_arg *arg)
{
    if (e->b != PW_CALL_MET) return e->a == arg->klass && e->b == arg->id;
    const VALUE *words = (const VALUE *)e->a;
    return words[PW_ME_OWNER] == arg->klass && words[PW_ME_CALLED_ID] == arg->called_id;
}

/* Ruby reports the return after it pops the frame. While an exception unwinds, Ruby reports it before. */
static inline void
leave_c(pw_shadow *s, const pw_trace_arg *arg)
{
    const VALUE *own = arg->cfp - PW_CFP_WORDS;
    pw_shadow_trim(s, own);
    const pw_shadow_entry *e = &s->entries[s->count - 1];
    if (e->own == own) {
        if (is_of(e, arg)) {
            s->count--;
            return;
        }
        e--;
        if (e->own == arg->cfp && e->b && is_of(e, arg)) s->count -= 2;
        return;
    }
    if (e->own == arg->cfp && e->b && is_of(e, arg)) s->count--;
}

/* From 3.4 on, Array#each and similar methods are written in Ruby, but reported as C functions. Ruby reports such a
 * call from within the method's own frame. */
static bool
tells_of_itself(const pw_trace_arg *arg)
{
    const VALUE *words = arg->cfp[PW_CFP_ISEQ] ? (const VALUE *)pw_walk_owner(arg->ec, arg->cfp) : NULL;
    return words && words[PW_ME_OWNER] == arg->klass && words[PW_ME_CALLED_ID] == arg->called_id;
}

static void
end_thread(pw_shadow *s)
{
    pw_call_tree *tree = s->tree;
    if (pw_trace.own_stack && pw_trace.own_stack->tree == tree) pw_trace.own_stack = NULL;
    for (pw_shadow *one = tree->stacks, *next; one; one = next) {
        next = one->next_of_tree;
        pw_shadow_free(one);
    }
    tree->stacks = tree->active = NULL;
    pw_trace.ec = NULL;
    pw_trace.stack = NULL;
    __atomic_store_n(&tree->ended, true, __ATOMIC_RELEASE);
}

static void
on_event(VALUE unused, const pw_trace_arg *arg)
{
    uint64_t now = pw_ticks(&pw_trace.clock);
    pw_shadow *s = pw_trace.stack;
    if (__builtin_expect(arg->ec != pw_trace.ec, 0)) {
        if (!(s = pw_shadow_switch(arg, now))) return;
    }
    else pw_trace_charge(s, pw_shadow_top(s), now);
    switch (arg->event) {
      case RUBY_EVENT_CALL:
        enter_ruby(s, arg, PW_CALL_RUBY);
        pw_trace.just_called = arg->cfp;
        break;
      case RUBY_EVENT_CLASS: enter_ruby(s, arg, PW_CALL_RUBY); break;
      case RUBY_EVENT_B_CALL:
        enter_ruby(s, arg, PW_CALL_BLOCK);
        pw_trace.just_called = NULL;
        break;
      case RUBY_EVENT_C_CALL: {
        const VALUE *own = arg->cfp - PW_CFP_WORDS;
        pw_shadow_trim(s, arg->cfp);
        if (PW_TOLD_AS_C && s->entries[s->count - 1].own != arg->cfp && tells_of_itself(arg)) own = arg->cfp;
        enter(s, arg, own, arg->klass, arg->id, PW_CALL_C);
        break;
      }
      case RUBY_EVENT_RETURN:
      case RUBY_EVENT_END:
      case RUBY_EVENT_B_RETURN: leave_ruby(s, arg->cfp); break;
      case RUBY_EVENT_C_RETURN: leave_c(s, arg); break;
      case RUBY_EVENT_THREAD_END: end_thread(s); break;
    }
}

/* ---- hooks ---- */

static void
add_hooks(rb_event_flag_t calls)
{
    bool objects = pw_trace.objects || pw_trace.bytes || pw_trace.gc != PW_GC_AS_IS;
    pw_add_raw_hook(on_event, calls);
    pw_add_raw_hook(pw_trace_on_internal, COLLECTIONS | (objects ? RUBY_INTERNAL_EVENT_NEWOBJ : 0));
    pw_trace.internal = true;
}

static void
remove_hooks(void)
{
    pw_remove_raw_hook(on_event);
    pw_remove_raw_hook(pw_trace_on_internal);
    pw_trace.internal = false;
}

static void
forget(bool frees)
{
    for (int i = 0; i < PW_SHADOW_SLOTS; i++) {
        for (pw_shadow *s = pw_trace.slots[i], *next; s; s = next) {
            next = s->next;
            if (frees) free(s->entries), free(s);
        }
        pw_trace.slots[i] = NULL;
    }
    pw_trace.ec = NULL;
    pw_trace.stack = NULL;
    pw_calls_free(frees);
}

/* ---- start and stop ---- */

static VALUE
read_settings(VALUE settings)
{
    VALUE gc = pw_setting(settings, "gc");
    pw_trace.cpu = pw_setting_is_on(settings, "cpu", true);
    pw_trace.objects = pw_setting_is_on(settings, "objects", true);
    pw_trace.bytes = pw_setting_is_on(settings, "bytes", false);
    pw_trace.gc = NIL_P(gc) ? PW_GC_AS_IS : strcmp(StringValueCStr(gc),
        "off") == 0 ? PW_GC_OFF : strcmp(StringValueCStr(gc), "defer") == 0 ? PW_GC_DEFER : PW_GC_AS_IS;
    pw_trace.gc_memory = pw_setting_number(settings, "gc_memory", (uint64_t)1 << 30);
    pw_call_rules_now = pw_trace_filters_read(settings);
    return Qnil;
}

static double
cost_of_reading_cpu(void)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 20; i++) {
        int64_t a = pw_own_cpu_ns(), b = pw_own_cpu_ns();
        if (b - a < least) least = b - a;
    }
    return (double)least;
}

static void
begin_calibrating(void)
{
    pw_trace.calibrating = pw_trace.running = pw_trace.armed = true;
    pw_trace.last = pw_ticks(&pw_trace.clock);
    add_hooks(PW_TRACE_CALLS | PW_TRACE_RETURNS);
}

static void
end_calibrating(void)
{
    remove_hooks();
    pw_trace.calibrating = pw_trace.running = pw_trace.armed = false;
}

static const char *
start(VALUE settings)
{
    if (pw_walk_refusal()) return cannot(pw_walk_refusal());
    VALUE module;
    if (!pw_attempt(read_settings, settings, NULL) || !pw_attempt(pw_trace_lesson, Qnil, &module)) {
        return "cannot trace: the settings could not be read, or the lesson not be given";
    }
    if (!pw_trace_is_proven(module)) {
        return "cannot trace: this Ruby tells of calls in another way than expected (or a TracePoint's block started this)";
    }
    pw_call_rules rules = pw_call_rules_now;
    pw_call_rules_now = (pw_call_rules){.max_nodes = 10000};
    pw_tick_clock_start(&pw_trace.clock);
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL); /* long enough to measure a tick to a few parts per million */
    pw_trace.tick_ns = pw_tick_clock_tick_ns(&pw_trace.clock);
    pw_trace.gap = UINT64_MAX;
    pw_trace.busy = pw_trace.paused = pw_trace.in_gc = pw_trace.sweeping = false;
    pw_trace.gc_over = pw_trace.since_look = 0;
    atomic_store(&pw_trace.gc_due, false);
    pw_trace.cpu_read_ns = cost_of_reading_cpu();
    static const pw_traced traced = {begin_calibrating, end_calibrating};
    bool calibrated = pw_trace_calibrate(module, &pw_trace.clock, &traced, pw_trace.probes);
    forget(true);
    pw_call_rules_now = rules;
    if (!calibrated) return "cannot trace: the cost of the probes could not be measured";
    pw_trace.gap = (uint64_t)(GAP_NS / pw_trace.tick_ns);
    pw_trace.gc_was_off = false;
    if (pw_trace.gc != PW_GC_AS_IS) {
        pw_trace.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        pw_trace.gc_was_off = RTEST(rb_gc_disable());
    }
    pw_trace.running = true;
    add_hooks(PW_TRACE_CALLS | PW_TRACE_RETURNS | RUBY_EVENT_THREAD_END);
    RB_GC_GUARD(module);
    return NULL;
}

static void
close_tree(pw_call_tree *tree, void *now)
{
    pw_trace_number(tree); /* while names can still be looked up */
    pw_shadow *s = tree->active;
    if (s && s != pw_trace.stack && s->paused && s->count > 1) pw_shadow_top(s)->wait += *(uint64_t *)now - s->paused;
}

static void
stop(void)
{
    if (!pw_trace.running) return;
    remove_hooks();
    uint64_t now = pw_ticks(&pw_trace.clock);
    if (pw_trace.armed) {
        if (pw_trace.stack) pw_trace_settle(now);
        pthread_mutex_lock(&pw_current.lock);
        pw_drain_keep_tables();
        pw_call_trees_each(close_tree, &now);
        pthread_mutex_unlock(&pw_current.lock);
    }
    pw_trace.running = pw_trace.armed = false;
    pw_trace.ec = NULL;
    pw_trace.stack = pw_trace.own_stack = NULL;
    if (pw_trace.gc != PW_GC_AS_IS && !pw_trace.gc_was_off) rb_gc_enable();
    if (pw_trace.statm >= 0) close(pw_trace.statm);
    pw_trace.statm = -1;
}

static void
write_calls(bool last)
{
    (void)last;
    static const char *const gc[] = {"as-is", "off", "defer"};
    pw_trace_facts facts = {&pw_trace.clock, pw_trace.probes, pw_trace.cpu, pw_trace.objects, pw_trace.bytes,
                            gc[pw_trace.gc], pw_trace.gc_over};
    pw_trace_write(&facts);
}

static void
mark_key(const pw_call_key *key)
{
    if (key->a && !RB_SPECIAL_CONST_P(key->a)) rb_gc_mark(key->a);
    if (key->owner) rb_gc_mark(key->owner);
}

static void mark(void) { pw_call_keys_each(mark_key); }

static void
leave_gc(void)
{
    if (!pw_trace.internal) return;
    pw_remove_raw_hook(pw_trace_on_internal);
    pw_trace.internal = pw_trace.in_gc = false;
}

static void
begin_own(void)
{
    if (!pw_trace.armed || pw_trace.own_thread) return;
    pw_trace.own_thread = rb_thread_current();
    if (pw_trace.stack) pw_trace_settle(pw_ticks(&pw_trace.clock));
    if ((pw_trace.own_stack = pw_trace.stack)) {
        pw_trace.stack->tree->ran = pw_trace.last - pw_trace.stack->tree->cpu_tick;
        pw_trace.stack->paused = pw_trace.last;
    }
    pw_trace.ec = NULL;
    pw_trace.stack = NULL;
}

static void
end_own(void)
{
    if (!pw_trace.own_thread) return;
    pw_trace.own_thread = 0;
    if (!pw_trace.armed || pw_trace.stack) return; /* another stack has run meanwhile, or the recording has stopped */
    if ((pw_trace.stack = pw_trace.own_stack)) pw_trace.ec = pw_trace.stack->ec;
    pw_trace.last = pw_ticks(&pw_trace.clock);
}

#else /* unknown layout */

static void begin_own(void) {}
static void end_own(void) {}

static const char *start(VALUE settings) { return cannot(pw_walk_refusal()); }
static void stop(void) {}
static void write_calls(bool last) {}
static void mark(void) {}
static void forget(bool frees) {}
static void leave_gc(void) {}

#endif

/* Finds class and name of a C function that has no method entry. */
static bool
find_called(VALUE frame, VALUE *klass, ID *name)
{
    const pw_call_key *key = pw_call_key_of_frame(frame);
    if (!key) return false;
    *klass = key->a;
    *name = (ID)key->b;
    return true;
}

static void
init(VALUE native)
{
    pw_trace.native = native;
    pw_trace.start = rb_intern("start");
    pw_trace_filters_init(native);
    pw_frame_names_of_calls(find_called);
    pw_trace_gc_init();
}

const pw_module pw_tracer = {
    .name = "trace", .init = init, .start = start, .stop = stop, .forget = forget, .write = write_calls, .mark = mark,
    .leave_gc = leave_gc, .own_begin = begin_own, .own_end = end_own};
