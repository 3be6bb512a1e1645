/* Garbage collection as frames. The Ruby stack cannot change while it runs, but cannot be read safely either (compaction
 * moves what it names), so a tick inside a collection is noted, and the stack is taken when the collection step ends. */
#include "capture.h"
#include "gc_log.h"
#include "sampler.h"
#include "tracer.h"

static VALUE tracepoint = Qfalse;
static _Atomic bool hooked;
static _Atomic bool collecting;
static pw_thread *_Atomic collector;
static int phase; /* 0 marking, 1 sweeping */
static int64_t phase_began, pause_began;
static struct { int64_t wall, cpu; } overdue; /* the sample that the collection kept from being taken; wall 0: none */

bool
pw_gc_takes_tick(pw_thread *t, int64_t wall)
{
    if (!atomic_load_explicit(&hooked, memory_order_relaxed) && rb_during_gc()) {
        pw_count(PW_DEFERRED, 1);
        return true;
    }
    if (!atomic_load_explicit(&collecting, memory_order_acquire)) return false;
    if (atomic_load_explicit(&collector, memory_order_relaxed) == t) {
        t->gc_ticks[phase]++;
        t->gc_wall[phase] = wall;
        t->gc_cpu[phase] = pw_cpu_to_charge(t, false, wall);
    }
    else pw_count(PW_DEFERRED, 1); /* another thread's: its time goes to its next row */
    return true;
}

static void
end_phase(int64_t now)
{
    pw_thread *t = atomic_load_explicit(&collector, memory_order_relaxed);
    if (t && !pw_interrupts(pw_current.ticker)) { /* nobody ticks in here: count the grid's ticks that passed */
        int64_t last = pw_last_tick(now), ticks = (last - pw_last_tick(phase_began)) / pw_current.interval_ns;
        if (ticks > 0) {
            t->gc_ticks[phase] += (uint32_t)ticks;
            t->gc_wall[phase] = last;
            t->gc_cpu[phase] = pw_cpu_to_charge(t, false, last);
        }
    }
    pw_count(phase == 0 ? PW_GC_MARKING_NS : PW_GC_SWEEPING_NS, now - phase_began);
    pw_gc_log_time(phase == 1, now - phase_began);
    phase_began = now;
}

static void
begin(pw_thread *t, int64_t now)
{
    overdue.wall = 0;
    if (t && !pw_interrupts(pw_current.ticker) && pw_current.ticker->overdue(t, now)) {
        overdue.wall = now;
        overdue.cpu = pw_cpu_to_charge(t, false, now);
    }
}

static void
emit(pw_thread *t)
{
    static const VALUE leaf[2] = {PW_FRAME_MARKING, PW_FRAME_SWEEPING};
    t->busy = 1;
    if (overdue.wall) pw_current.ticker->take(t, overdue.wall, overdue.cpu);
    overdue.wall = 0;
    for (int i = 0; i < 2; i++) {
        if (!t->gc_ticks[i]) continue;
        uint16_t captures = t->gc_ticks[i] > UINT16_MAX ? UINT16_MAX : (uint16_t)t->gc_ticks[i];
        if (pw_capture(t, leaf[i], (uint8_t)atomic_load(&t->state), captures, t->gc_wall[i], t->gc_cpu[i])) {
            pw_count(PW_CAPTURES, 1);
        }
        t->gc_ticks[i] = 0;
    }
    t->busy = 0;
}

static uint32_t id_of(const pw_thread *t) { return t ? t->id : 0; }

static void
on_event(VALUE self, void *data)
{
    rb_event_flag_t event = rb_tracearg_event_flag(rb_tracearg_from_tracepoint(self));
    if (!pw_session_generation()) return;
    switch (event) {
      case RUBY_INTERNAL_EVENT_GC_ENTER:
        pause_began = phase_began = pw_now_ns();
        begin(pw_self(), phase_began);
        atomic_store(&collector, pw_self());
        atomic_store_explicit(&collecting, true, memory_order_release);
        break;
      case RUBY_INTERNAL_EVENT_GC_START:
        pw_count(PW_GC_COUNT, 1);
        pw_gc_log_begin(phase_began, id_of(atomic_load_explicit(&collector, memory_order_relaxed)));
        phase = 0;
        break;
      case RUBY_INTERNAL_EVENT_GC_END_MARK:
        end_phase(pw_now_ns());
        phase = 1;
        break;
      case RUBY_INTERNAL_EVENT_GC_END_SWEEP:
        end_phase(pw_now_ns());
        pw_gc_log_swept();
        phase = 0;
        break;
      case RUBY_INTERNAL_EVENT_GC_EXIT: {
        if (!atomic_load(&collecting)) break;
        end_phase(pw_now_ns());
        pw_thread *t = atomic_exchange(&collector, NULL);
        pw_gc_log_pause(pause_began, phase_began, id_of(t));
        atomic_store_explicit(&collecting, false, memory_order_release);
        if (t && (overdue.wall || t->gc_ticks[0] || t->gc_ticks[1])) emit(t);
        break;
      }
    }
}

/* 3.1 follows a null pointer when it tells of a collection that begins in a Ractor's thread before its first frame. */
static VALUE
native_stop_gc_frames(VALUE self)
{
    pw_allocations_before_ractor();
    pw_gc_stop();
    return Qnil;
}

void
pw_gc_init(VALUE native)
{
    pw_gc_log_init();
    rb_define_singleton_method(native, "stop_gc_frames", native_stop_gc_frames, 0);
    rb_gc_register_mark_object(tracepoint = rb_tracepoint_new(
        0, RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT | RUBY_INTERNAL_EVENT_GC_START |
               RUBY_INTERNAL_EVENT_GC_END_MARK | RUBY_INTERNAL_EVENT_GC_END_SWEEP,
        on_event, NULL));
}

void
pw_gc_start(void)
{
    atomic_store(&collecting, false);
    atomic_store(&collector, NULL);
    phase = rb_gc_latest_gc_info(ID2SYM(rb_intern("state"))) == ID2SYM(rb_intern("sweeping"));
    pw_gc_log_start();
    rb_tracepoint_enable(tracepoint);
    atomic_store(&hooked, true);
}

void
pw_gc_stop(void)
{
    pw_tracer_stop_internal();
    atomic_store(&hooked, false);
    if (RTEST(rb_tracepoint_enabled_p(tracepoint))) rb_tracepoint_disable(tracepoint);
    atomic_store(&collecting, false);
}
