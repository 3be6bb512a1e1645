#include "collectors/allocations/bursts.h"
#include "collectors/allocations/charges.h"
#include "collectors/allocations/places.h"
#include "collectors/allocations/state.h"
#include "session/counters.h"
#include "session/session.h"
#include "tools/quiet_thread.h"

/* A hook costs most of what counting costs. In bursts it is there for a small part of the time: a helper thread
 * keeps the time, and a job adds and removes it at Ruby's safepoints. A burst begins a fixed time after the helper
 * asked for it, which is chosen by chance, and is over by the clock, also where the job comes late (a collection, a
 * core lent to others) or too late: one that began at the next safepoint would count what comes after those too
 * often. So what a C function allocates later than the delay after its beginning is seen too seldom. What is seen
 * of a program's phases depends on the time in bursts, not on how many there are. Our own work is jobs as well, and
 * would be met too often: its objects are counted, not sampled. */
enum { BURST_NS = 100000, BURST_DELAY_NS = 100000, MOST_OF_TIME = 50 };

pw_burst_state pw_burst;

static struct {
    pw_job job;
    pthread_t thread;
    pw_raw_hook hook;
    bool hooked;
    _Atomic bool running;
    _Atomic int64_t asked; /* when; 0: not, or hooked already */
    int64_t pause_ns;
    uint64_t own_before;   /* objects when work of our own began */
} state;

static void
run_burst_job(void *unused)
{
    /* until 3.4 hooks are each Ractor's own; jobs are run in any */
    if (!pw_alloc.active || !pw_alloc.bursting || !pw_in_main_ractor()) return;
    int64_t asked = atomic_exchange(&state.asked, 0), now = pw_now_ns();
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

/* Not here and now: hooks are being called. */
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

/* Pauses vary by half, so that no rhythm of the program is met. */
static void *
keep_bursts(void *unused)
{
    uint64_t random = (uint64_t)pw_now_ns() | 1;
    while (atomic_load(&state.running)) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        pause_until(pw_now_ns() + state.pause_ns / 2 + (int64_t)(random % (uint64_t)state.pause_ns));
        if (!atomic_load(&state.running)) break;
        atomic_store(&state.asked, pw_now_ns());
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
    if (!state.job.func && !pw_job_init(&state.job, run_burst_job)) return false;
    pw_job_trigger(&state.job); /* from here first: see safepoint_ticker.c */
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
