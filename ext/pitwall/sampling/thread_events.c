/* Events of threads: begin, end, GVL released, GVL got.
 *
 * Ruby's thread begin and end events exist in every version, but fire only in the Ractor that added the hook. The
 * internal events of 3.2 report GVL states in every Ractor. The events of 3.3 also carry the thread. M:N
 * scheduling, where a thread moves between native threads, needs that. On 3.1 gvl_watch.c calls the hook of the
 * internal events. */
#include "sampling/thread_events.h"
#include "output/naming.h"
#include "sampling/capture.h"
#include "sampling/held_signal.h"
#include "sampling/outside_ticker.h"
#include "sampling/registry.h"
#include "vm/gvl_watch.h"
#include <stdlib.h>

static bool started;

static void
on_begin_or_end(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass)
{
    if (!pw_session_generation()) return;
    /* ticks may arrive below while there is no Ruby frame yet, or no frame any more */
    pw_tls.pinned = 1;
    atomic_signal_fence(memory_order_seq_cst);
    VALUE thread = rb_thread_current();
    pw_thread *t = pw_self();
    if (event == RUBY_EVENT_THREAD_END) {
        if (!t) pw_enter_known_thread(thread); /* older than the recording, and no signal has come yet */
        if (pw_self()) pw_name_thread(thread);
        t = pw_self(); /* another thread may have stopped the recording meanwhile */
        if (t) pw_thread_ended(t);
    }
    else if (!t || t->thread != thread || t->sample.finished) { /* else registered when it got the GVL */
        if (t && !PW_THREAD_IN_EVENT) pw_thread_replaced(t); /* a cached native thread with a new Ruby thread */
        pw_tls.ended = 0;
        pw_register_thread(thread, pw_gettid(), true);
    }
    /* This event comes only in the main Ractor. Threads of the main Ractor keep their native threads. */
    if (event == RUBY_EVENT_THREAD_BEGIN && pw_self()) pw_self()->own.stays = !pw_threads_move;
    pw_tls.pinned = 0;
}

#if PW_THREAD_EVENTS || PW_GVL_WATCH
static void *hook; /* NULL: not installed */
/* A forked child inherits Ruby's lock of these hooks. Threads that do not exist in the child may hold the lock for
 * reading, so removing a hook could wait for ever. So in a child the hook stays, and does nothing without a
 * recording. */
static bool inherited;

/* The thread's wait is over: charges the unchanged stack up to the last tick of the grid in the wait, as if each tick
 * had taken a sample. (Charging up to the present moment would favour waits over short bursts of work.) */
static void
charge_wait(pw_thread *t)
{
    int64_t now = pw_now_ns(), until = pw_last_tick(now);
    int64_t wall = atomic_load_explicit(&t->sample.last_wall, memory_order_relaxed);
    if (until <= wall) return;
    int64_t before = atomic_load_explicit(&t->sample.last_cpu, memory_order_relaxed),
                     cpu = pw_cpu_to_charge(t, true, now);
    if (cpu > before + (until - wall)) cpu = before + (until - wall);
    if (cpu < before) cpu = before;
    int64_t ready = atomic_load_explicit(&t->own.ready_at, memory_order_relaxed);
    int64_t blocked_until = ready > wall ? pw_last_tick(ready) : wall;
    if (blocked_until > until) blocked_until = until;
    if (blocked_until > wall) pw_charge(t, PW_REC_CHARGE, PW_BLOCKED, blocked_until, cpu);
    if (until > blocked_until) pw_charge(t, PW_REC_CHARGE, PW_WAITING, until, cpu);
}

/* Ticks may have passed without a sample of the running thread: on 3.3 and 3.4 most new threads run no jobs during
 * their first time slice. Charges that time to the code that ran, not to the wait that begins here. */
static void
settle_run(pw_thread *t)
{
    int64_t last = pw_last_tick(t->own.suspended_at);
    if (t->own.wait_due || atomic_load(&t->own.state) != PW_RUNNING ||
        last <= atomic_load_explicit(&t->sample.last_wall, memory_order_relaxed)) {
        return;
    }
    if (pw_capture(t, 0, PW_RUNNING, 1, last, pw_cpu_to_charge(t, false, t->own.suspended_at))) {
        pw_count(PW_CAPTURES, 1);
    }
}

/* Does the thread stay on its native thread? Only then may the native thread's signal mask be changed during a wait. */
static bool
stays_here(const pw_thread *t)
{
    return t->own.stays && !atomic_load_explicit(&t->carrier.migrates, memory_order_relaxed);
}

/* Takes the stack of a thread that is about to wait, with no time. charge_wait charges the time after the wait. False:
 * the stack was not taken.
 *
 * A thread with a deep stack may wait thousands of times a second. So after a stack that took longer than LONG_NS, no
 * stack is taken until PAUSE times that duration has passed. Taking stacks then costs at most a quarter of the time. */
static bool
take_before_wait(pw_thread *t)
{
    enum { LONG_NS = 20000, PAUSE = 4 };
    if (t->own.suspended_at < t->own.takes_again_at) return false;
    int64_t wall = atomic_load_explicit(&t->sample.last_wall, memory_order_relaxed);
    int64_t cpu = atomic_load_explicit(&t->sample.last_cpu, memory_order_relaxed);
    bool taken = pw_capture(t, 0, PW_BLOCKED, 0, wall, cpu);
    int64_t took = pw_now_ns() - t->own.suspended_at;
    if (took > LONG_NS) t->own.takes_again_at = t->own.suspended_at + PAUSE * took;
    if (taken) atomic_store_explicit(&t->own.held, true, memory_order_relaxed);
    return taken;
}

/* As take_before_wait, and switches the ticks off. */
static bool
hold(pw_thread *t)
{
    if (!take_before_wait(t) && stays_here(t)) return false;
    /* The thread may move to another native thread. Its ticks would then interrupt other threads. So the ticks stop,
     * even if the stack was not taken. */
    pw_current.ticker->thread_left(t);
    return true;
}

/* Where no tick reaches a waiting thread (safepoint mode, M:N threads), the stack is taken after the wait. The
 * interrupt check at the end of the waiting call runs this job. */
static pw_job wait_job;

/* Takes the stack of a thread that has the GVL again. The stack has not changed since the wait began. */
static void
take_wait(pw_thread *t)
{
    int64_t now = pw_now_ns(), before = atomic_load(&t->sample.last_wall), until = pw_last_tick(now);
    int64_t blocked_until = pw_last_tick(atomic_load(&t->own.ready_at)), cpu = pw_cpu_to_charge(t, true, now);
    if (blocked_until > until) blocked_until = until;
    if (blocked_until > before && pw_capture(t, 0, PW_BLOCKED, 1, blocked_until, cpu)) {
        if (until > blocked_until) pw_charge(t, PW_REC_CHARGE, PW_WAITING, until, cpu);
    }
    else if (until > before) pw_capture(t, 0, PW_WAITING, 1, until, cpu);
    pw_count(PW_CAPTURES, 1);
}

static void
attribute_wait(void *unused)
{
    pw_thread *t = pw_session_generation() ? pw_self() : NULL;
    if (!t || !t->own.wait_due || t->sample.finished) return;
    t->own.busy = 1;
    take_wait(t);
    t->own.wait_due = false;
    t->own.busy = 0;
}

# if PW_THREAD_IN_EVENT
/* The calling native thread now carries `t`. Only M:N threads change native threads. The timer changes with the thread.
 * `carrier.tid` is the native thread whose CPU clock counts for `t`, until that native thread carries another thread or
 * `t` is carried elsewhere. */
static void
carry(pw_thread *t)
{
    pw_thread *before = pw_self();
    pid_t here = pw_gettid();
    if (before == t && t->carrier.tid == here) return;
    if (!before && t->carrier.tid == here) { /* registered by another thread, and never on another native thread */
        pw_enter_thread(t);
        pw_walk_find_root(&t->stack.walk);
        return;
    }
    if (before && before != t) {
        atomic_store(&before->carrier.migrates, true);
        pw_thread_leave(before, here);
    }
    atomic_store(&t->carrier.migrates, true);
    pw_thread_leave(t, t->carrier.tid);
    pw_current.ticker->thread_end(t);
    pw_thread_arrive(t, here);
    pw_enter_thread(t);
    pw_current.ticker->thread_begin(t);
}

# endif

/* The thread of an event. On RESUMED this thread also runs here. */
static pw_thread *
subject(rb_event_flag_t event, const rb_internal_thread_event_data_t *data)
{
    bool resumed = event == RUBY_INTERNAL_THREAD_EVENT_RESUMED;
    pw_thread *t = pw_self();
# if PW_THREAD_IN_EVENT
    if (t && t->thread == data->thread) {
        /* the thread may have been on another native thread meanwhile */
        if (resumed && atomic_load(&t->carrier.migrates)) carry(t);
        return t;
    }
    pw_thread *other = pw_thread_of_event(data->thread);
    if (other) {
        if (resumed) carry(other);
        return other;
    }
    if (!resumed || (pw_tls.ended == pw_session_generation() && pw_tls.ended_thread == data->thread)) return NULL;
    if (t) { /* a second thread on this native thread */
        pw_thread *fresh = pw_register_thread(data->thread, 0, false);
        if (fresh) carry(fresh);
        return fresh;
    }
    return pw_register_thread(data->thread, pw_gettid(), true);
# else
    /* Without thread events, ends of threads of other Ractors are not reported, so such threads are not registered. */
    bool fresh = !t && resumed && pw_tls.ended != pw_session_generation() && (PW_THREAD_EVENTS || pw_in_main_ractor());
    if (fresh) t = pw_register_thread(rb_thread_current(), pw_gettid(), true);
    return t;
# endif
}

/* Only the thread itself counts, so no locked instruction is needed. */
static void
count_change(pw_thread *t)
{
    atomic_store_explicit(&t->own.changes, atomic_load_explicit(&t->own.changes, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* Did the drain take the stack during the wait that is over? */
static bool
was_looked_at(const pw_thread *t)
{
    uint32_t changes = atomic_load_explicit(&t->own.changes, memory_order_relaxed);
    return changes && atomic_load_explicit(&t->seen.looked_at_change, memory_order_acquire) == changes;
}

/* With the outside ticker the thread only notes its state. */
static void
note(pw_thread *t, rb_event_flag_t event)
{
    switch (event) {
      case RUBY_INTERNAL_THREAD_EVENT_SUSPENDED:
        atomic_store_explicit(&t->own.suspended_at, pw_now_ns(), memory_order_relaxed);
        atomic_store_explicit(&t->own.state, PW_BLOCKED, memory_order_relaxed);
        count_change(t);
        break;
      case RUBY_INTERNAL_THREAD_EVENT_RESUMED:
        atomic_store_explicit(&t->own.resumed_at, pw_now_ns(), memory_order_relaxed);
        atomic_store_explicit(&t->own.state, PW_RUNNING, memory_order_relaxed);
        count_change(t);
        pw_reader_awake();
        break;
    }
}

static void
on_thread_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    if (event == RUBY_INTERNAL_THREAD_EVENT_RESUMED || event == RUBY_INTERNAL_THREAD_EVENT_EXITED) {
        pw_signal_let_through();
    }
    if (!pw_session_generation() || !pw_thread_states()) return;
    if (event == RUBY_INTERNAL_THREAD_EVENT_EXITED) {
        pw_thread *t = pw_self();
        if (t) pw_thread_ended(t); /* a thread of another Ractor, which got no end event */
        return;
    }
    pw_thread *t = subject(event, data);
    if (event == RUBY_INTERNAL_THREAD_EVENT_RESUMED) pw_modules_here();
    if (!t || !pw_samples()) return;
    if (event == RUBY_INTERNAL_THREAD_EVENT_READY) { /* the waking thread may call: only these may be written */
        atomic_store_explicit(&t->own.ready_at, pw_now_ns(), memory_order_relaxed);
        atomic_store_explicit(&t->own.state, PW_WAITING, memory_order_relaxed);
        return;
    }
    if (pw_current.ticker->from_outside) {
        note(t, event);
        return;
    }
    t->own.busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    switch (event) {
      case RUBY_INTERNAL_THREAD_EVENT_SUSPENDED:
        t->own.suspended_at = pw_now_ns();
        t->sample.cpu_stale = true;
        if (!pw_interrupts(pw_current.ticker) || atomic_load(&t->carrier.migrates)) settle_run(t);
        count_change(t);
        atomic_store_explicit(&t->own.state, PW_BLOCKED, memory_order_relaxed);
        if ((t->own.quiet || !stays_here(t)) && hold(t)) break;
        if (t->native) take_before_wait(t); /* a look from outside would find no native frames */
        if (pw_interrupts(pw_current.ticker) && stays_here(t) && pw_self() == t) pw_signal_hold_back();
        break;
      case RUBY_INTERNAL_THREAD_EVENT_RESUMED:
        if (atomic_load_explicit(&t->own.held, memory_order_relaxed) || was_looked_at(t)) {
            charge_wait(t);
            atomic_store_explicit(&t->own.held, false, memory_order_relaxed);
        }
        else if (t->own.suspended_at && pw_last_tick(pw_now_ns()) > pw_last_tick(t->own.suspended_at)) {
            if (pw_interrupts(pw_current.ticker) && stays_here(t)) take_wait(t);
            else {
                t->own.wait_due = true;
                pw_job_trigger(&wait_job);
            }
        }
        count_change(t);
        if (t->own.suspended_at && pw_now_ns() - t->own.suspended_at >= pw_current.interval_ns) {
            t->own.quiet = PW_QUIET_WAITS;
        }
        else if (t->own.quiet) t->own.quiet--;
        atomic_store_explicit(&t->own.state, PW_RUNNING, memory_order_relaxed);
        pw_current.ticker->thread_resumed(t);
        break;
    }
    atomic_signal_fence(memory_order_seq_cst);
    t->own.busy = 0;
}
#endif

static void
init(VALUE native)
{
    const char *mn = getenv("RUBY_MN_THREADS");
    pw_threads_move = mn && atoi(mn) > 0;
#if PW_THREAD_EVENTS || PW_GVL_WATCH
    if (!pw_job_init(&wait_job, attribute_wait)) {
        rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
    }
#endif
}

static void
begin(void)
{
    if (started) return;
    started = true;
    rb_add_event_hook((rb_event_hook_func_t)on_begin_or_end, RUBY_EVENT_THREAD_BEGIN | RUBY_EVENT_THREAD_END, Qnil);
#if PW_THREAD_EVENTS
    if (!hook) hook = rb_internal_thread_add_event_hook(
        on_thread_event,
        RUBY_INTERNAL_THREAD_EVENT_SUSPENDED | RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
            RUBY_INTERNAL_THREAD_EVENT_EXITED,
        NULL);
#elif PW_GVL_WATCH
    if (pw_gvl_watched) pw_gvl_watch_tell(hook = on_thread_event);
#endif
}

static void
end(void)
{
    if (!started) return;
    started = false;
    rb_remove_event_hook((rb_event_hook_func_t)on_begin_or_end);
#if PW_THREAD_EVENTS || PW_GVL_WATCH
    /* threads that wait with the signal blocked need the hook after their wait */
    if (inherited || pw_signal_held_back()) return;
    if (!hook) return;
# if PW_THREAD_EVENTS
    rb_internal_thread_remove_event_hook(hook);
# else
    pw_gvl_watch_tell(NULL);
# endif
    hook = NULL;
#endif
}

static void
in_child(void)
{
#if PW_THREAD_EVENTS
    inherited = hook != NULL;
#endif
}

const pw_module pw_thread_events = {.init = init, .begin = begin, .end = end, .in_child = in_child};
