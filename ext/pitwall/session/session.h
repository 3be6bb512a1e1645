/* The session: the state of one recording, from start to stop. A process has at most one session. */
#ifndef PITWALL_SESSION_H
#define PITWALL_SESSION_H

#include "session/counters.h"
#include "session/ticker.h"
#include "tools/clock.h"
#include "tools/hidden.h"
#include <pthread.h>
#include <ruby/ruby.h>

typedef struct {
    /* Set before the first sample. Constant until stop. */
    uint32_t generation; /* the number of the session; 0: no recording */
    int64_t interval_ns, unit_ns, flush_ns;
    int64_t origin;      /* monotonic ns at the start */
    int signo;
    bool native;         /* native frames are taken, too */
    const pw_ticker *ticker;
    int64_t started_process_cpu;

    pthread_mutex_t lock;     /* guards tables, rows and the list of threads; never taken in a handler */
    struct pw_thread *threads; /* holds session lock */
    uint32_t next_thread_id;   /* holds session lock */

    bool before_exec; /* the recording stops because the process calls exec. needs GVL */

    _Atomic int64_t helper_cpu; /* CPU ns of the ticker's helper thread, written by that helper */
} pw_session;

extern PW_HIDDEN pw_session pw_current;

/* The generation that may take samples now, or 0. async-signal-safe */
extern PW_HIDDEN _Atomic uint32_t pw_live_generation;
static inline uint32_t
pw_session_generation(void)
{
    return atomic_load_explicit(&pw_live_generation, memory_order_acquire);
}

/* Returns a new generation's number, never 0. needs GVL */
uint32_t pw_next_generation(void);
/* Prepares an empty session. */
void pw_session_init(void);
/* Clears the session. `frees`: false in a forked child, where another thread may have held the lock at the fork. */
void pw_session_clear(bool frees);

/* Does the session take samples? False: it takes only the records of collectors. */
static inline bool pw_samples(void) { return !pw_current.ticker || pw_current.ticker->samples; }

/* A handler calls these first and last, so that stop can wait for running handlers. False: there is no session, and
 * the handler must return at once, without pw_leave_handler. async-signal-safe */
bool pw_enter_handler(void);
void pw_leave_handler(void);
/* Waits until no handler runs. Called after the generation was set to 0. */
void pw_wait_for_handlers(void);
/* In a forked child: sets the number of running handlers to 0, because their threads do not exist in the child. */
void pw_forget_handlers(void);

/* The last tick of the grid at or before `now`. All threads tick on one grid, which begins with the session. The next
 * tick is computed from the grid, not from the previous tick, so a late tick does not delay later ticks.
 * async-signal-safe */
static inline int64_t
pw_last_tick(int64_t now)
{
    int64_t since = now - pw_current.origin;
    return since < 0 ? pw_current.origin - pw_current.interval_ns : now - since % pw_current.interval_ns;
}

/* The first tick of the grid after `now`. async-signal-safe */
static inline int64_t pw_next_tick(int64_t now) { return pw_last_tick(now) + pw_current.interval_ns; }

/* Does the calling thread run in the main Ractor? Postponed jobs may run in any Ractor. needs GVL */
bool pw_in_main_ractor(void);
/* Remembers the calling thread's Ractor as the main one: only the main Ractor starts a recording. needs GVL */
void pw_remember_main_ractor(void);

#endif
