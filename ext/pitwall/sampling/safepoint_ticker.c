#include "sampling/safepoint_ticker.h"
#include "output/naming.h"
#include "sampling/capture.h"
#include "sampling/gc.h"
#include "sampling/registry.h"
#include "sampling/waiting.h"
#include "tools/quiet_thread.h"
#include "vm/reader_lock.h"
#include "vm/walk_tests.h"
#include <errno.h>

/* No signals: a helper thread keeps the time and asks Ruby for a call at its next safepoint. The sample then stands
 * at that safepoint, not where the time went: it is weighted by the time since the thread's last sample, and
 * labelled.
 *
 * A thread that waits reaches no safepoint. Its stack is read from outside: by the drain, as in signal mode, where
 * thread events tell who waits. Elsewhere by the thread that has the GVL, at its own safepoint: the stacks of the
 * others stand then. One whose CPU clock has not moved since has the stack that it had. */

static struct {
    pw_job job;
    pthread_t helper;
    _Atomic bool running;
    _Atomic int64_t asked;  /* when Ruby was last asked */
    pw_thread *last_thread; /* who was sampled last, and when */
    int64_t last_at;
    bool sees;              /* stacks of other threads may be read */
} ticker;

static void *
keep_time(void *unused)
{
    while (atomic_load_explicit(&ticker.running, memory_order_relaxed)) {
        int64_t at = pw_next_tick(pw_now_ns());
        struct timespec until = {at / 1000000000, at % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        if (!atomic_load_explicit(&ticker.running, memory_order_relaxed)) break;
        pw_count(PW_TICKS, 1);
        pw_job_trigger(&ticker.job);
        /* after it: who runs has its call before it sees this */
        atomic_store(&ticker.asked, pw_last_tick(pw_now_ns()));
    }
    return NULL;
}

static bool
due(pw_thread *t, int64_t wall)
{
    return pw_last_tick(wall) - pw_last_tick(atomic_load(&t->sample.last_wall)) >= pw_current.interval_ns &&
           !t->own.wait_due;
}

/* Charges the stack last seen for the time it is known to have stood since. */
static void
settle(pw_thread *t)
{
    int64_t until = t->seen.unchanged_until;
    t->seen.unchanged_until = 0;
    if (until <= atomic_load(&t->sample.last_wall)) return;
    pw_charge_under(t, PW_REC_CHARGE, PW_UNKNOWN, until, atomic_load(&t->sample.last_cpu), t->sample.label);
}

static void
off_cpu(pw_thread *t, bool seen, int64_t until)
{
    int64_t charged = atomic_load(&t->sample.last_cpu);
    if (seen) pw_charge_under(t, PW_REC_CHARGE, PW_UNKNOWN, until, charged, t->sample.label);
    else pw_capture_nothing(t, PW_OFF_CPU, until, charged);
}

/* `t` does not have the GVL. needs GVL, holds session lock */
static void
look(pw_thread *t, int64_t wall)
{
    pw_reader_lock();
    int64_t cpu = pw_thread_cpu_now(t);
    if (cpu >= 0 && t->seen.in_sight && cpu == t->seen.cpu) t->seen.unchanged_until = wall;
    else if (cpu >= 0 && pw_gc_rests()) {
        settle(t);
        t->seen.in_sight = pw_capture_outside(t, PW_UNKNOWN, wall, cpu);
        t->seen.cpu = cpu;
        if (t->seen.in_sight) pw_count(PW_CAPTURES, 1);
        else if (t->sample.empty >= pw_looks_at_nothing(t)) pw_thread_vanished(t);
    }
    pw_reader_unlock();
}

static void
look_at_others(const pw_thread *self, int64_t wall)
{
    if (!ticker.sees || pw_thread_states()) return;
    pthread_mutex_lock(&pw_current.lock);
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (t != self && !t->sample.finished && due(t, wall)) look(t, pw_last_tick(wall));
    }
    pthread_mutex_unlock(&pw_current.lock);
}

static void
take(pw_thread *t, int64_t wall, int64_t cpu)
{
    settle(t);
    bool seen = t->seen.in_sight;
    t->seen.in_sight = false;
    int64_t before = atomic_load(&t->sample.last_wall), burnt = cpu - atomic_load(&t->sample.last_cpu);
    bool waited = !pw_thread_states() && wall - before > 2 * pw_current.interval_ns && burnt < (wall - before) / 2;
    /* Without thread events nobody saw where it waited while others ran, unless one of them looked. Since the last
     * of them ran it has waited here. */
    int64_t unseen_until = ticker.last_at > wall - burnt ? wall - burnt : ticker.last_at;
    if (waited && ticker.last_thread != t && unseen_until > before) off_cpu(t, seen, unseen_until);
    else if (waited && burnt < pw_current.interval_ns) cpu -= burnt; /* it ran before or after: the next sample's */
    int64_t missed = (pw_last_tick(wall) - pw_last_tick(before)) / pw_current.interval_ns - 1;
    pw_capture(t, 0, pw_thread_states() ? PW_RUNNING : PW_UNKNOWN, 1, wall, cpu);
    ticker.last_thread = t;
    ticker.last_at = wall;
    if (missed > 0) pw_count(PW_MISSED, missed);
    pw_count(PW_CAPTURES, 1);
}

static void
at_safepoint(void *unused)
{
    if (!pw_session_generation() || pw_current.ticker != &pw_safepoint_ticker) return;
    int64_t wall = pw_now_ns();
    pw_naming_trigger_if_wanted();
    pw_thread *t = pw_self();
    if (!t || t->thread != rb_thread_current()) t = pw_register_thread(rb_thread_current(), pw_gettid(), true);
    if (!t || t->sample.finished) return;
    if (due(t, wall)) take(t, wall, pw_cpu_to_charge(t, false, wall));
    look_at_others(t, wall);
    pw_count(PW_HANDLER_NS, pw_now_ns() - wall);
}

/* A tick that passed since the thread's last sample, and that it had no call for: another thread had, which ran.
 * Where no thread events tell of that, this time would go to the sample that comes next, under the next label. Up
 * to the tick only, as if each had been seen: to the very moment would favour waits over short work. What it burnt
 * before is the next sample's. */
static void
label_ends(pw_thread *t)
{
    int64_t until = atomic_load(&ticker.asked);
    if (pw_thread_states() || t->sample.finished) return;
    settle(t);
    bool seen = t->seen.in_sight;
    t->seen.in_sight = false;
    if (!due(t, until)) return;
    off_cpu(t, seen, until);
}

static int
start(void)
{
    if (!ticker.job.func && !pw_job_init(&ticker.job, at_safepoint)) return ENOMEM;
    ticker.last_thread = NULL;
    ticker.last_at = 0;
    ticker.sees = !pw_outside_refusal();
    atomic_store(&ticker.asked, 0);
    /* from here first: up to 3.2 the table's place is then never seen empty (see vm_compat.h) */
    pw_job_trigger(&ticker.job);
    atomic_store(&ticker.running, true);
    int error = pw_start_quiet_thread(&ticker.helper, keep_time);
    if (error) atomic_store(&ticker.running, false);
    return error;
}

static void
stop(void)
{
    if (!atomic_exchange(&ticker.running, false)) return;
    pthread_join(ticker.helper, NULL); /* at most one interval */
    look_at_others(pw_self(), pw_now_ns());
    pthread_mutex_lock(&pw_current.lock);
    pw_look_at_waiting(0);
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (!t->sample.finished) settle(t);
    }
    pthread_mutex_unlock(&pw_current.lock);
}

/* It waits since before the recording. */
static void
thread_begin(pw_thread *t)
{
    if (pw_threads_move || !pw_off_gvl(atomic_load(&t->own.state))) return;
    atomic_store(&t->own.suspended_at, pw_now_ns());
    atomic_store(&t->own.changes, 1);
}

static void
thread_end(pw_thread *t)
{
    pw_reader_lock(); /* no look at it is under way */
    if (!t->sample.finished) settle(t);
    pw_reader_unlock();
}

static void
check(void)
{
    enum { LONG_NS = 50000000 };
    pw_look_at_waiting(LONG_NS);
}

static void stop_in_child(void) { atomic_store(&ticker.running, false); }
static void nothing(pw_thread *t) { (void)t; }

const pw_ticker pw_safepoint_ticker = {
    .name = "safepoint", .start = start, .stop = stop, .stop_in_child = stop_in_child, .thread_begin = thread_begin,
            .thread_end = thread_end,
    .thread_resumed = nothing, .thread_left = nothing, .check = check, .overdue = due, .take = take, .samples = true,
                      .looks_at_waiting = true,
    .label_ends = label_ends};
