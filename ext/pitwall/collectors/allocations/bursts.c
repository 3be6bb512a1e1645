#include "collectors/allocations/bursts.h"
#include "collectors/allocations/charges.h"
#include "collectors/allocations/places.h"
#include "collectors/allocations/state.h"
#include "session/counters.h"
#include "session/session.h"
#include "tools/in_a_row.h"
#include "tools/quiet_thread.h"

/* Most of the cost of counting is the cost of the hook. So in bursts the hook is installed for a small part of the
 * time. A helper thread keeps the time. A postponed job adds and removes the hook at Ruby's safepoints.
 *
 * The helper thread requests a burst at a random time. The burst begins a fixed delay after the request, and ends by
 * the clock. The job may run late (a collection, a core used by other processes), or after the burst's end. A burst
 * that began at the next safepoint would count the allocations after safepoints too often. With the delay, the
 * allocations that a C function makes later than the delay after its beginning are seen too seldom.
 *
 * How well a program's phases are seen depends on the total time in bursts, not on the number of bursts. Pitwall's
 * own work runs in jobs as well, and sampling would see it too often. So Pitwall's objects are counted, not sampled. */
enum { BURST_NS = 100000, BURST_DELAY_NS = 100000, MOST_OF_TIME = 50 };

pw_burst_state pw_burst;

static struct {
    pw_job job;
    pthread_t thread;
    pw_raw_hook hook;
    bool hooked;
    _Atomic bool running;
    _Atomic int64_t asked; /* time of the request, ns; 0: no request, or the job has taken it */
    _Atomic int64_t since; /* time of the first request since the job last took one, ns */
    _Atomic int64_t late_ns; /* delay until the job took the last request; 0: none was taken since the helper looked */
    int64_t pause_ns;
    uint64_t own_before;   /* Ruby's count of objects when Pitwall's own work began */
} state;

static void
run_burst_job(void *unused)
{
    /* Up to 3.4 each Ractor has its own hooks, but a job may run in any Ractor. */
    if (!pw_alloc.active || !pw_alloc.bursting || !pw_in_main_ractor()) return;
    int64_t asked = atomic_exchange(&state.asked, 0), now = pw_now_ns();
    if (asked) atomic_store(&state.late_ns, now - atomic_load(&state.since));
    if (asked && now < asked + BURST_DELAY_NS + BURST_NS && (!state.hooked || now > pw_burst.until)) {
        pw_places_forget_walks();
        pw_burst.from = asked + BURST_DELAY_NS;
        pw_burst.until = pw_burst.from + BURST_NS;
        if (!state.hooked) pw_add_raw_hook(state.hook, RUBY_INTERNAL_EVENT_NEWOBJ);
        state.hooked = true;
        pw_count(PW_BURSTS, 1);
    }
    else if (state.hooked && pw_burst.until == 0) {
        state.hooked = pw_remove_raw_hook(state.hook) == 0;
    }
    pw_alloc.counted = pw_alloc_total() - pw_alloc.counted_before;
}

/* Ends the burst. The job removes the hook later, because Ruby is calling hooks now. */
void
pw_burst_end(void)
{
    pw_burst.until = 0;
    pw_job_trigger(&state.job);
}

static void
pause_until(int64_t at)
{
    struct timespec until = {at / 1000000000, at % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Returns the time to add to the next pause, ns. A request can make a function of Ruby start over: the comment on
 * let_it_get_on in safepoint_ticker.c has an example. A request is late if the job takes it after more than half a
 * pause. After several late requests in a row, REST times the delay of the last one is added. */
static int64_t
longer_pause(uint8_t *late_in_a_row)
{
    enum { REST = 4 };
    int64_t late_ns = atomic_exchange(&state.late_ns, 0);
    if (atomic_load(&state.asked)) late_ns = pw_now_ns() - atomic_load(&state.since); /* not taken yet */
    return pw_in_a_row(late_in_a_row, late_ns > state.pause_ns / 2) ? REST * late_ns : 0;
}

/* Pauses vary by up to half of their mean, so that bursts do not follow a rhythm of the program. */
static void *
keep_bursts(void *unused)
{
    uint64_t random = (uint64_t)pw_now_ns() | 1;
    uint8_t late_in_a_row = 0;
    while (atomic_load(&state.running)) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        int64_t pause = state.pause_ns / 2 + (int64_t)(random % (uint64_t)state.pause_ns);
        pause_until(pw_now_ns() + pause + longer_pause(&late_in_a_row));
        if (!atomic_load(&state.running)) break;
        int64_t now = pw_now_ns();
        if (!atomic_exchange(&state.asked, now)) atomic_store(&state.since, now);
        pw_job_trigger(&state.job);
    }
    return NULL;
}

bool
pw_bursts_start(pw_raw_hook hook)
{
    state.hook = hook;
    uint32_t of_time = pw_alloc.one_in < MOST_OF_TIME ? pw_alloc.one_in : MOST_OF_TIME;
    state.pause_ns = (int64_t)BURST_NS * (of_time > 1 ? of_time - 1 : 1);
    pw_alloc.one_in = pw_alloc.one_in > of_time ? (pw_alloc.one_in + of_time / 2) / of_time : 1;
    pw_alloc.gap = pw_alloc.one_in > 1 ? pw_alloc_next_gap() : 0;
    state.hooked = false;
    pw_burst.from = pw_burst.until = 0;
    atomic_store(&state.asked, 0);
    atomic_store(&state.late_ns, 0);
    if (!state.job.func && !pw_job_init(&state.job, run_burst_job)) return false;
    pw_job_trigger(&state.job); /* the first trigger comes from this thread: see safepoint_ticker.c */
    atomic_store(&state.running, true);
    if (pw_start_quiet_thread(&state.thread, keep_bursts) == 0) return true;
    atomic_store(&state.running, false);
    return false;
}

void
pw_bursts_stop(bool in_child)
{
    if (atomic_exchange(&state.running, false) && !in_child) pthread_join(state.thread, NULL);
}

void pw_bursts_own_begin(void) { state.own_before = pw_alloc_total(); }
void pw_bursts_own_end(void) { pw_charges_count(pw_site_at(PW_SITE_PITWALL), pw_alloc_total() - state.own_before); }
