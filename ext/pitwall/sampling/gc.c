/* Garbage collection as frames. During a collection the Ruby stack cannot change. But the stack cannot be read safely
 * either, because compaction moves the objects on it. So a tick inside a collection is noted, and the stack is taken
 * when the collection step ends. */
#include "sampling/gc.h"
#include "sampling/capture.h"
#include "sampling/gc_log.h"
#include "vm/other_gc.h"
#include "vm/reader_lock.h"

static struct {
    VALUE tracepoint;
    _Atomic bool hooked;
    _Atomic bool collecting;
    pw_thread *_Atomic collector;
    int phase; /* 0 marking, 1 sweeping */
    int64_t phase_began, pause_began;
    /* the sample that was overdue when the collection began; wall 0: none. cpu: not set by the outside ticker */
    struct { int64_t wall, cpu; } overdue;
    _Atomic bool kept_away; /* the outside reader wanted to look during the step */
    _Atomic size_t known_runs; /* rb_gc_count at the last reported collection */
    pw_job listening;
    _Atomic bool asked, answering; /* the job was triggered; it runs */
} state = {.tracepoint = Qfalse};

/* Were collections not reported? When a Ractor is freed, Ruby 3.3 and 3.4 replace the process's set of wanted events
 * by the Ractor's set, which is empty. Then Ruby reports no collection, not even the end of a running one, until a hook
 * is added or removed. Collections of other Ractors are never reported. rb_gc_count shows both. */
static bool
unreported(void)
{
    if (atomic_load_explicit(&state.answering, memory_order_relaxed)) return false;
    if (atomic_load_explicit(&state.asked, memory_order_relaxed)) return true;
    return atomic_load_explicit(&state.hooked, memory_order_relaxed) &&
           rb_gc_count() != atomic_load_explicit(&state.known_runs, memory_order_relaxed);
}

void
pw_gc_ask_again(void)
{
    atomic_store(&state.asked, true);
    if (pw_may_trigger()) pw_job_trigger(&state.listening);
}

static void check(void) { if (unreported() && !rb_during_gc()) pw_gc_ask_again(); }
static void marking(void) { if (unreported()) pw_gc_ask_again(); }

/* Does a reported step of a collection run? */
static bool
in_step(void)
{
    return atomic_load_explicit(&state.collecting, memory_order_acquire) && rb_during_gc();
}

static const VALUE leaves[2] = {PW_FRAME_MARKING, PW_FRAME_SWEEPING};

/* Takes the native stack of a tick within a collection. False: the tick has to be noted. */
static bool
takes_native(pw_thread *t, int64_t wall)
{
    uint8_t now = (uint8_t)atomic_load_explicit(&t->own.state, memory_order_relaxed);
    if (t->gc.ticks[0] || t->gc.ticks[1]) return false; /* in the order of their times */
    if (!pw_capture_in_collection(t, leaves[state.phase], now, wall, pw_cpu_to_charge(t, false, wall))) return false;
    pw_count(PW_CAPTURES, 1);
    return true;
}

bool
pw_gc_takes_tick(pw_thread *t, int64_t wall)
{
    check();
    if (!in_step()) {
        if (!rb_during_gc()) return false;
        pw_count(PW_DEFERRED, 1); /* Ruby did not report this collection */
        return true;
    }
    if (atomic_load_explicit(&state.collector, memory_order_relaxed) == t) {
        if (t->native && takes_native(t, wall)) return true;
        t->gc.ticks[state.phase]++;
        t->gc.wall[state.phase] = wall;
        t->gc.cpu[state.phase] = pw_cpu_to_charge(t, false, wall);
    }
    else pw_count(PW_DEFERRED, 1); /* another thread's tick: the time goes to that thread's next row */
    return true;
}

bool
pw_gc_rests(void)
{
    check();
    if (!in_step()) return !rb_during_gc();
    atomic_store_explicit(&state.kept_away, true, memory_order_relaxed);
    return false;
}

/* The thread's CPU time at `wall`, which is `now` or a tick just past. The collection has kept the CPU since `wall`.
 * With the outside ticker nothing notes when a thread leaves the CPU, so the CPU clock must be read. */
static int64_t
cpu_at(pw_thread *t, int64_t wall, int64_t now)
{
    if (!pw_current.ticker->from_outside) return pw_cpu_to_charge(t, false, wall);
    int64_t charged = atomic_load_explicit(&t->sample.last_cpu, memory_order_relaxed),
                      cpu = pw_thread_cpu(t) - (now - wall);
    t->sample.cpu_due = 0;
    return cpu > charged ? cpu : charged;
}

static void
end_phase(int64_t now)
{
    pw_thread *t = atomic_load_explicit(&state.collector, memory_order_relaxed);
    if (t && !pw_interrupts(pw_current.ticker)) { /* no tick arrives here: count the passed ticks of the grid */
        int64_t last = pw_last_tick(now), ticks = (last - pw_last_tick(state.phase_began)) / pw_current.interval_ns;
        if (ticks > 0) {
            t->gc.ticks[state.phase] += (uint32_t)ticks;
            t->gc.wall[state.phase] = last;
            t->gc.cpu[state.phase] = cpu_at(t, last, now);
        }
    }
    pw_count(state.phase == 0 ? PW_GC_MARKING_NS : PW_GC_SWEEPING_NS, now - state.phase_began);
    pw_gc_log_time(state.phase == 1, now - state.phase_began);
    state.phase_began = now;
}

static void
begin(pw_thread *t, int64_t now)
{
    state.overdue.wall = 0;
    /* ticks of a collection whose end was not reported: that time is in the next row */
    if (t) t->gc.ticks[0] = t->gc.ticks[1] = 0;
    if (t && t->native) {
        t->own.busy = 1;
        pw_capture_collection_begins(t);
        t->own.busy = 0;
    }
    if (!t || pw_interrupts(pw_current.ticker) || !pw_current.ticker->overdue(t, now)) return;
    state.overdue.wall = now;
    if (!pw_current.ticker->from_outside) state.overdue.cpu = pw_cpu_to_charge(t, false, now);
}

/* Most steps end before the outside reader looks. Then the reader takes the interrupted stack itself. */
static void
take_overdue(pw_thread *t, int64_t now)
{
    bool outside = pw_current.ticker->from_outside;
    if (outside && !t->gc.ticks[0] && !t->gc.ticks[1] &&
        !atomic_load_explicit(&state.kept_away, memory_order_relaxed)) {
        return;
    }
    pw_current.ticker->take(t, state.overdue.wall, outside ? cpu_at(t, state.overdue.wall, now) : state.overdue.cpu);
}

static void
emit(pw_thread *t, int64_t now)
{
    t->own.busy = 1;
    if (state.overdue.wall) take_overdue(t, now);
    state.overdue.wall = 0;
    for (int i = 0; i < 2; i++) {
        if (!t->gc.ticks[i]) continue;
        uint16_t captures = t->gc.ticks[i] > UINT16_MAX ? UINT16_MAX : (uint16_t)t->gc.ticks[i];
        if (pw_capture(t, leaves[i], (uint8_t)atomic_load(&t->own.state), captures, t->gc.wall[i], t->gc.cpu[i])) {
            pw_count(PW_CAPTURES, 1);
        }
        t->gc.ticks[i] = 0;
        t->seen.in_sight = false; /* the drain's last stack has a frame of this collection, which is over */
    }
    t->own.busy = 0;
}

static uint32_t id_of(const pw_thread *t) { return t ? t->id : 0; }

static void
on_event(VALUE self, void *data)
{
    rb_event_flag_t event = rb_tracearg_event_flag(rb_tracearg_from_tracepoint(self));
    if (!pw_session_generation()) return;
    switch (event) {
      case RUBY_INTERNAL_EVENT_GC_ENTER:
        state.pause_began = state.phase_began = pw_now_ns();
        atomic_store(&state.collector, pw_self());
        atomic_store(&state.kept_away, false);
        atomic_store(&state.collecting, true);
        /* From here to the end of this step no outside look runs or begins. So all stacks that were read are in the
         * ring before marking, and no object is moved or freed during a look. */
        if (pw_current.ticker->samples) pw_reader_pass();
        begin(pw_self(), state.phase_began);
        break;
      case RUBY_INTERNAL_EVENT_GC_START:
        pw_count(PW_GC_COUNT, 1);
        atomic_fetch_add(&state.known_runs, 1);
        pw_gc_log_begin(state.phase_began, id_of(atomic_load_explicit(&state.collector, memory_order_relaxed)));
        state.phase = 0;
        break;
      case RUBY_INTERNAL_EVENT_GC_END_MARK:
        end_phase(pw_now_ns());
        state.phase = 1;
        break;
      case RUBY_INTERNAL_EVENT_GC_END_SWEEP:
        end_phase(pw_now_ns());
        pw_gc_log_swept();
        state.phase = 0;
        break;
      case RUBY_INTERNAL_EVENT_GC_EXIT: {
        if (!atomic_load(&state.collecting)) break;
        end_phase(pw_now_ns());
        pw_thread *t = atomic_exchange(&state.collector, NULL);
        pw_gc_log_pause(state.pause_began, state.phase_began, id_of(t));
        if (t && t->native) pw_capture_collection_ends(t);
        if (t && (state.overdue.wall || t->gc.ticks[0] || t->gc.ticks[1])) emit(t, state.phase_began);
        atomic_store_explicit(&state.collecting, false, memory_order_release);
        break;
      }
    }
}

static void nothing(VALUE unused, const void *arg) {}

static void
count_unreported(void)
{
    if (!atomic_load(&state.hooked)) return;
    size_t runs = rb_gc_count();
    pw_count(PW_GC_UNREPORTED, (int64_t)(runs - atomic_exchange(&state.known_runs, runs)));
}

/* A job for the main Ractor. Adding or removing any hook makes Ruby compute the set of wanted events again. */
static void
listen_again(void *unused)
{
    if (!pw_in_main_ractor()) return; /* Ruby runs jobs in any Ractor; the next check triggers another job */
    atomic_store(&state.asked, false);
    count_unreported();
    /* Adding a hook allocates. Under GC.stress each allocation is a collection, and this one may be unreported, too. If
     * it asked for this job again, the job would run for ever. */
    atomic_store(&state.answering, true);
    rb_event_hook_func_t hook = (rb_event_hook_func_t)(void (*)(void))nothing;
    rb_add_event_hook2(hook, RUBY_INTERNAL_EVENT_GC_START, Qnil,
                       RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG);
    rb_remove_event_hook(hook);
    count_unreported();
    atomic_store(&state.answering, false);
    if (!atomic_load(&state.collecting) || rb_during_gc()) return;
    /* The end of the collection was not reported. The noted ticks are taken now if this thread collected. Another
     * collecting thread may have ended since. */
    pw_thread *t = atomic_exchange(&state.collector, NULL);
    if (t && t == pw_self() && (state.overdue.wall || t->gc.ticks[0] || t->gc.ticks[1])) emit(t, state.phase_began);
    state.overdue.wall = 0;
    atomic_store_explicit(&state.collecting, false, memory_order_release);
}

/* other_gc -> nil, or a String: the collector that runs instead of Ruby's own */
static VALUE native_other_gc(VALUE self) { return pw_other_gc() ? rb_str_new_cstr(pw_other_gc()) : Qnil; }

static void
init(VALUE native)
{
    pw_other_gc_init();
    rb_define_singleton_method(native, "other_gc", native_other_gc, 0);
    if (!pw_other_gc()) pw_gc_log_init();
    if (!pw_job_init(&state.listening, listen_again)) {
        rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
    }
    rb_gc_register_mark_object(state.tracepoint = rb_tracepoint_new(
        0, RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT | RUBY_INTERNAL_EVENT_GC_START |
               RUBY_INTERNAL_EVENT_GC_END_MARK | RUBY_INTERNAL_EVENT_GC_END_SWEEP,
        on_event, NULL));
}

static void
start(void)
{
    if (pw_other_gc()) return;
    atomic_store(&state.collecting, false);
    atomic_store(&state.answering, false);
    atomic_store(&state.collector, NULL);
    state.phase = rb_gc_latest_gc_info(ID2SYM(rb_intern("state"))) == ID2SYM(rb_intern("sweeping"));
    pw_gc_log_start();
    atomic_store(&state.known_runs, rb_gc_count());
    rb_tracepoint_enable(state.tracepoint);
    atomic_store(&state.hooked, true);
}

static void
stop(void)
{
    if (atomic_exchange(&state.hooked, false)) {
        pw_count(PW_GC_UNREPORTED, (int64_t)(rb_gc_count() - atomic_load(&state.known_runs)));
    }
    if (RTEST(rb_tracepoint_enabled_p(state.tracepoint))) rb_tracepoint_disable(state.tracepoint);
    atomic_store(&state.collecting, false);
}

const pw_module pw_gc = {.init = init, .begin = start, .end = stop, .check = check, .marking = marking,
                         .leave_gc = stop};
