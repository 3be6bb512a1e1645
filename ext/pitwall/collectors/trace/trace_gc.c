#include "collectors/trace/trace_gc.h"
#include "collectors/trace/shadow.h"
#include "output/intern.h"
#include "session/session.h"
#include <stdio.h>
#include <unistd.h>

static pw_job job; /* collects garbage when memory reaches the limit */

#if PW_LAYOUT_RUBY

enum { OBJECTS_A_LOOK = 1024 };

static bool
over_memory(void)
{
    char text[128];
    unsigned long pages = 0;
    ssize_t n = pw_trace.statm < 0 ? -1 : pread(pw_trace.statm, text, sizeof text - 1, 0);
    if (n <= 0) return false;
    text[n] = '\0';
    return sscanf(text, "%*u %lu", &pages) == 1 && pages * (uint64_t)sysconf(_SC_PAGESIZE) > pw_trace.gc_memory;
}

static void
on_object(const pw_trace_arg *arg)
{
    if (pw_trace.busy || !pw_trace.armed) return;
    /* From 4.0 on, Ruby also reports the objects of other Ractors, which run at the same time. */
    if (arg->ec != pw_trace.ec && !pw_in_main_ractor()) return;
    pw_shadow *s = arg->ec == pw_trace.ec ? pw_trace.stack : pw_shadow_find(arg->ec);
    if (s) {
        pw_call_node *node = pw_shadow_top(s);
        node->objects++;
        if (pw_trace.bytes) node->bytes += pw_slot_bytes(arg->data);
    }
    if (pw_trace.gc != PW_GC_AS_IS && ++pw_trace.since_look >= OBJECTS_A_LOOK) {
        pw_trace.since_look = 0;
        if (!atomic_load(&pw_trace.gc_due) && over_memory()) {
            atomic_store(&pw_trace.gc_due, true);
            pw_job_trigger(&job);
        }
    }
}

static void
charge_collection(uint64_t now)
{
    pw_shadow *s = pw_trace.stack;
    VALUE frame = pw_trace.sweeping ? PW_FRAME_SWEEPING : PW_FRAME_MARKING;
    pw_call_node *from = pw_shadow_top(s), *node = pw_call_child(from, frame, 0);
    if (!node) {
        uint64_t last = pw_trace.last;
        node = pw_shadow_find_node(s, from, frame, 0, PW_CALL_OTHER, NULL);
        pw_trace.last = last;
    }
    pw_trace_charge(s, node ? node : from, now);
}

static void
on_collection(const pw_trace_arg *arg)
{
    if (pw_trace.busy || !pw_trace.armed || arg->ec != pw_trace.ec || pw_trace.paused) return;
    uint64_t now = pw_ticks(&pw_trace.clock);
    if (arg->event == RUBY_INTERNAL_EVENT_GC_ENTER) {
        pw_trace_charge(pw_trace.stack, pw_shadow_top(pw_trace.stack), now);
        pw_trace.in_gc = true;
        return;
    }
    if (pw_trace.in_gc) charge_collection(now);
    if (arg->event == RUBY_INTERNAL_EVENT_GC_END_MARK) pw_trace.sweeping = true;
    if (arg->event == RUBY_INTERNAL_EVENT_GC_END_SWEEP) pw_trace.sweeping = false;
    if (arg->event == RUBY_INTERNAL_EVENT_GC_EXIT) pw_trace.in_gc = false;
}

/* One hook serves objects and collections, because Ruby visits every hook at every event. Ruby does not allow one hook
 * for internal events and calls together. */
void
pw_trace_on_internal(VALUE unused, const pw_trace_arg *arg)
{
    if (arg->event == RUBY_INTERNAL_EVENT_NEWOBJ) on_object(arg);
    else on_collection(arg);
}

/* Runs when memory reaches the limit while garbage collection is off. */
static void
collect_garbage(void *unused)
{
    if (!pw_trace.armed || !atomic_load(&pw_trace.gc_due)) return;
    pw_trace.gc_over++;
    if (pw_trace.gc == PW_GC_OFF) {
        rb_gc_enable(); /* Ruby collects when it wants from now on; gc_due stays set */
        return;
    }
    uint64_t began = pw_ticks(&pw_trace.clock);
    if (pw_trace.stack) pw_trace_settle(began);
    pw_trace.paused = true;
    rb_gc_enable();
    rb_gc_start();
    rb_gc_disable();
    pw_trace.paused = false;
    atomic_store(&pw_trace.gc_due, false);
    pw_trace.last = pw_ticks(&pw_trace.clock);
    /* The thread's CPU clock advanced during the collection. Start from a new reading, so that the collection's CPU
     * time is not charged. */
    if (pw_trace.stack) {
        pw_trace.stack->tree->cpu_read = pw_trace_thread_cpu(), pw_trace.stack->tree->cpu_tick = pw_trace.last;
    }
}

#else

static void collect_garbage(void *unused) {}

#endif

void
pw_trace_gc_init(void)
{
    if (!pw_job_init(&job, collect_garbage)) rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
}
