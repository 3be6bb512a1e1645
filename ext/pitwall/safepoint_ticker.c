#include "capture.h"
#include "sampler.h"
#include <errno.h>

/* No signals: a helper thread keeps the time and asks Ruby for a call at its next safepoint. The sample then stands at
 * that safepoint, not where the time went: it is weighted by the time since the thread's last sample, and labelled. */

static pw_job job;
static pthread_t helper;
static _Atomic bool running;
static _Atomic int64_t asked;  /* when Ruby was last asked */
static pw_thread *last_thread; /* who was sampled last */

static void *
keep_time(void *unused)
{
    while (atomic_load_explicit(&running, memory_order_relaxed)) {
        int64_t at = pw_next_tick(pw_now_ns());
        struct timespec until = {at / 1000000000, at % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        if (!atomic_load_explicit(&running, memory_order_relaxed)) break;
        pw_count(PW_TICKS, 1);
        pw_job_trigger(&job);
        atomic_store(&asked, pw_last_tick(pw_now_ns())); /* after it: who runs has its call before it sees this */
    }
    return NULL;
}

static bool
due(pw_thread *t, int64_t wall)
{
    return pw_last_tick(wall) - pw_last_tick(atomic_load(&t->last_wall)) >= pw_current.interval_ns && !t->owes;
}

static void
take(pw_thread *t, int64_t wall, int64_t cpu)
{
    int64_t before = atomic_load(&t->last_wall), burnt = cpu - atomic_load(&t->last_cpu);
    bool waited = !pw_thread_states() && wall - before > 2 * pw_current.interval_ns && burnt < (wall - before) / 2;
    if (waited && last_thread == t && burnt < pw_current.interval_ns) cpu -= burnt; /* it ran before or after: the next sample's */
    /* Without thread events nobody saw where it waited while others ran. */
    if (waited && last_thread != t) pw_capture_nothing(t, PW_OFF_CPU, wall - burnt, atomic_load(&t->last_cpu));
    int64_t missed = (pw_last_tick(wall) - pw_last_tick(before)) / pw_current.interval_ns - 1;
    pw_capture(t, 0, pw_thread_states() ? PW_RUNNING : PW_UNKNOWN, 1, wall, cpu);
    last_thread = t;
    if (missed > 0) pw_count(PW_MISSED, missed);
    pw_count(PW_CAPTURES, 1);
}

static void
at_safepoint(void *unused)
{
    if (!pw_session_generation() || pw_current.ticker != &pw_safepoint_ticker) return;
    int64_t wall = pw_now_ns();
    pw_resolve_if_wanted();
    pw_thread *t = pw_self();
    if (!t || t->thread != rb_thread_current()) t = pw_register_thread(rb_thread_current(), pw_gettid(), true);
    if (!t || t->finished || !due(t, wall)) return;
    take(t, wall, pw_cpu_to_charge(t, false, wall));
    pw_count(PW_HANDLER_NS, pw_now_ns() - wall);
}

/* A tick that passed since the thread's last sample, and that it had no call for: another thread had, which ran. Where no thread events
 * tell of that, this time would go to the sample that comes next, under the next label. Up to the tick only, as if each had been
 * seen: to the very moment would favour waits over short work. What it burnt before is the next sample's. */
static void
label_ends(pw_thread *t)
{
    int64_t until = atomic_load(&asked);
    if (pw_thread_states() || t->finished || !due(t, until)) return;
    pw_capture_nothing(t, PW_OFF_CPU, until, atomic_load(&t->last_cpu));
}

static int
start(void)
{
    if (!job.func && !pw_job_init(&job, at_safepoint)) return ENOMEM;
    last_thread = NULL;
    atomic_store(&asked, 0);
    pw_job_trigger(&job); /* from here first: up to 3.2 the table's place is then never seen empty (see vm_compat.h) */
    atomic_store(&running, true);
    int error = pw_start_quiet_thread(&helper, keep_time);
    if (error) atomic_store(&running, false);
    return error;
}

static void
stop(void)
{
    if (!atomic_exchange(&running, false)) return;
    pthread_join(helper, NULL); /* at most one interval */
}

static void stop_in_child(void) { atomic_store(&running, false); }
static void nothing(pw_thread *t) { (void)t; }
static void no_check(void) {}

const pw_ticker pw_safepoint_ticker = {"safepoint", start, stop, stop_in_child, nothing, nothing, nothing, nothing, no_check, due, take, false, label_ends};
