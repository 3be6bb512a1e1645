#include "sampling/safepoint_ticker.h"
#include "output/naming.h"
#include "sampling/capture.h"
#include "sampling/gc.h"
#include "sampling/registry.h"
#include "sampling/waiting.h"
#include "session/counters.h"
#include "tools/in_a_row.h"
#include "tools/quiet_thread.h"
#include "vm/reader_lock.h"
#include "vm/walk_tests.h"
#include <errno.h>
#include <string.h>

/* No signals: a helper thread asks Ruby at each tick for a call at the next safepoint. So the sample's stack is the
 * stack at that safepoint, not at the tick. The sample is weighted by the time since the thread's last sample, and
 * labelled.
 *
 * A waiting thread reaches no safepoint, so its stack is read from outside. Where thread events show which threads
 * wait, the drain reads the stack, as in signal mode. Elsewhere the thread that has the GVL reads the stack at its own
 * safepoint: the stacks of other threads cannot change then. A thread whose CPU clock has not moved still has the same
 * stack. */

static struct {
    pw_job job;
    pthread_t helper;
    _Atomic bool running;
    _Atomic int64_t asked_at; /* the last tick at which Ruby was asked for a call */
    pw_thread *last_thread; /* the thread sampled last; `last_at`: the time of that sample */
    int64_t last_at;
    bool reads_others;      /* stacks of other threads may be read from outside */
    _Atomic int64_t rests_until; /* Ruby is asked for no call before this time */
    struct {
        int64_t at;         /* its end */
        int64_t gc_ns;      /* the time that collections have taken until then */
        uint8_t held_up;    /* how many calls in a row held the program up (in_a_row.h) */
    } last_call;
} ticker;

/* Called when a call ends that began at `wall`. If the program does no work between the calls, Ruby is not asked for
 * calls for a while. A program may do no work for two reasons:
 * - A call takes longer than half of the interval, because the stack is deep.
 * - The program only collects garbage. IO.select is an example: when Ruby was asked for a call, IO.select starts over,
 *   and allocates objects before it looks at the files. With GC.stress each of these objects causes a collection. If
 *   the collections take longer than the interval, IO.select starts over for ever. */
static void
let_it_get_on(int64_t wall)
{
    enum { REST = 4 };
    int64_t now = pw_now_ns(), gc_ns = pw_counter(PW_GC_MARKING_NS) + pw_counter(PW_GC_SWEEPING_NS);
    int64_t rested_until = atomic_load(&ticker.rests_until);
    int64_t came_after = wall - (ticker.last_call.at > rested_until ? ticker.last_call.at : rested_until);
    bool collects = came_after > pw_current.interval_ns && gc_ns - ticker.last_call.gc_ns > came_after / 4 * 3;
    bool slow = (now - wall) * 2 > pw_current.interval_ns;
    ticker.last_call.at = now;
    ticker.last_call.gc_ns = gc_ns;
    if (!pw_in_a_row(&ticker.last_call.held_up, collects || slow)) return;
    atomic_store(&ticker.rests_until, now + REST * (collects ? came_after : now - wall));
}

static void *
keep_time(void *unused)
{
    pw_ask_for_short_slices();
    while (atomic_load_explicit(&ticker.running, memory_order_relaxed)) {
        int64_t at = pw_next_tick(pw_now_ns());
        struct timespec until = {at / 1000000000, at % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        if (!atomic_load_explicit(&ticker.running, memory_order_relaxed)) break;
        pw_count(PW_TICKS, 1);
        if (at < atomic_load(&ticker.rests_until)) continue;
        pw_job_trigger(&ticker.job);
        /* set after the trigger, so that a running thread gets its call before it sees this value */
        atomic_store(&ticker.asked_at, pw_last_tick(pw_now_ns()));
    }
    return NULL;
}

static bool
due(pw_thread *t, int64_t wall)
{
    return pw_last_tick(wall) - pw_last_tick(atomic_load(&t->sample.last_wall)) >= pw_current.interval_ns &&
           !t->own.wait_due;
}

/* Charges the stack last read for the time in which it is known to be unchanged. */
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
    if (!ticker.reads_others || pw_thread_states()) return;
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
    /* Without thread events the place of a wait is unknown while other threads ran, unless one of them read the stack.
     * After the last of them ran, the thread waited here. */
    int64_t unseen_until = ticker.last_at > wall - burnt ? wall - burnt : ticker.last_at;
    if (waited && ticker.last_thread != t && unseen_until > before) off_cpu(t, seen, unseen_until);
    else if (waited && burnt < pw_current.interval_ns) cpu -= burnt; /* CPU time outside the wait: the next sample's */
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
    let_it_get_on(wall);
    pw_count(PW_HANDLER_NS, pw_now_ns() - wall);
}

/* Handles a tick since the thread's last sample for which the thread got no call, because another thread ran. Without
 * thread events that time would go to the next sample, under the next label. So the time up to the tick is charged now.
 * Charging up to the present moment would favour waits over short work. The thread's CPU time goes to the next
 * sample. */
static void
label_ends(pw_thread *t)
{
    int64_t until = atomic_load(&ticker.asked_at);
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
    ticker.reads_others = !pw_outside_refusal();
    atomic_store(&ticker.asked_at, 0);
    atomic_store(&ticker.rests_until, 0);
    memset(&ticker.last_call, 0, sizeof(ticker.last_call));
    /* the first trigger is made here, so that up to 3.2 no thread sees the job's table entry empty (see vm_compat.h) */
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
    pthread_join(ticker.helper, NULL); /* takes at most one interval */
    look_at_others(pw_self(), pw_now_ns());
    pthread_mutex_lock(&pw_current.lock);
    pw_look_at_waiting(0);
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (!t->sample.finished) settle(t);
    }
    pthread_mutex_unlock(&pw_current.lock);
}

/* Handles a thread that has been waiting since before the recording. */
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
    pw_reader_lock(); /* no other thread reads the stack now */
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
