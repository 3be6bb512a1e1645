/* The session: what lasts from start to stop. A process has one at most. */
#ifndef PITWALL_SESSION_H
#define PITWALL_SESSION_H

#include "session/counters.h"
#include "session/ticker.h"
#include "tools/clock.h"
#include "tools/hidden.h"
#include <pthread.h>
#include <ruby/ruby.h>

typedef struct {
    /* Set before the first sample, and not changed until stop. */
    uint32_t generation; /* counts sessions; 0: nothing is recorded */
    int64_t interval_ns, unit_ns, flush_ns;
    int64_t origin;      /* monotonic ns at the beginning */
    int signo;
    const pw_ticker *ticker;
    int64_t started_process_cpu;

    pthread_mutex_t lock;     /* tables, rows, list of threads; never taken in a handler */
    struct pw_thread *threads; /* holds session lock */
    uint32_t next_thread_id;   /* holds session lock */

    _Atomic int64_t helper_cpu; /* CPU ns of the ticker's thread, by that thread */
} pw_session;

extern PW_HIDDEN pw_session pw_current;

/* The generation that takes samples, or 0. async-signal-safe */
extern PW_HIDDEN _Atomic uint32_t pw_live_generation;
static inline uint32_t
pw_session_generation(void)
{
    return atomic_load_explicit(&pw_live_generation, memory_order_acquire);
}

/* A new generation's number, never 0. needs GVL */
uint32_t pw_next_generation(void);
/* Prepares an empty session, and takes it apart. */
void pw_session_init(void);
/* `frees`: false in a forked child, where another thread may have held the lock. */
void pw_session_clear(bool frees);

/* Are samples taken, or only the records of collectors? */
static inline bool pw_samples(void) { return !pw_current.ticker || pw_current.ticker->samples; }

/* Handlers announce themselves, so that stop can wait for them. False: no session, do nothing. async-signal-safe */
bool pw_enter_handler(void);
void pw_leave_handler(void);
/* After the generation was set to 0: waits until no handler runs. */
void pw_wait_for_handlers(void);
/* In a forked child: the handlers that ran did not come along. */
void pw_forget_handlers(void);

/* All threads tick on one grid that begins with the session. A due tick is asked of the grid, never of the last
 * tick, so a late tick does not shift the ticks after it. The last tick of the grid at or before `now`.
 * async-signal-safe */
static inline int64_t
pw_last_tick(int64_t now)
{
    int64_t since = now - pw_current.origin;
    return since < 0 ? pw_current.origin - pw_current.interval_ns : now - since % pw_current.interval_ns;
}

/* The first tick of the grid after `now`. async-signal-safe */
static inline int64_t pw_next_tick(int64_t now) { return pw_last_tick(now) + pw_current.interval_ns; }

/* Does the calling thread, which has a GVL, run in the main Ractor? Jobs may run in any Ractor. needs GVL */
bool pw_in_main_ractor(void);
/* The calling thread's Ractor is the main one from here on: only the main Ractor starts. needs GVL */
void pw_remember_main_ractor(void);

#endif
