/* When to sample. A ticker decides that a thread's sample is due. Then either the thread takes its own stack
 * (pw_capture), or a helper thread takes the stack from outside (pw_capture_outside).
 *
 * signal_ticker.c: one POSIX timer per thread. The timer's signal interrupts the thread anywhere.
 * safepoint_ticker.c: a helper thread asks Ruby to call us at the next safepoint. No signal, but safepoint-biased.
 * outside_ticker.c: a helper thread reads the stacks of other threads while those threads run.
 * tickers.c: the list of tickers, and a ticker that never ticks, for recordings of collectors only. */
#ifndef PITWALL_TICKER_H
#define PITWALL_TICKER_H

#include <stdbool.h>
#include <stdint.h>

struct pw_thread;

typedef struct {
    const char *name;
    int (*start)(void);                          /* 0 or an errno */
    void (*stop)(void);                          /* no capture begins after stop returns */
    void (*stop_in_child)(void);                 /* after fork: a child has neither timers nor helper */
    void (*thread_begin)(struct pw_thread *);    /* any thread may call it for any other */
    void (*thread_end)(struct pw_thread *);      /* in the ending thread, or at stop */
    void (*thread_resumed)(struct pw_thread *);  /* in the thread, which has the GVL again after its stack was held */
    /* No ticks until the thread resumes. Either the thread waits and its stack was taken: then the thread itself
     * calls. Or (M:N) its native thread carries another thread: then the caller has the reader's lock. */
    void (*thread_left)(struct pw_thread *);
    void (*check)(void);                         /* called by the drain now and then */
    /* `overdue`: is the thread's sample overdue? `take`: takes the sample as of the moment `wall`, which is just
     * past. So code that ran since the last safepoint is separated from the collection that follows. Both are called
     * in the thread, which has the GVL. NULL where ticks interrupt. */
    bool (*overdue)(struct pw_thread *, int64_t wall);
    void (*take)(struct pw_thread *, int64_t wall, int64_t cpu);
    /* The ticker takes stacks. Then a helper may read stacks from outside, and collections wait for the helper. */
    bool samples;
    /* Only the helper takes samples; during a collection the collecting thread does. Threads only note their own
     * state changes. */
    bool from_outside;
    /* The stack of a waiting thread is read once a wait. Needs to know which threads wait (on 3.1 by gvl_watch.c). */
    bool looks_at_waiting;
    /* The thread's label is about to change: charges the time up to now to the old label. Called in the thread. NULL
     * where a thread never learns of a tick late. */
    void (*label_ends)(struct pw_thread *);
} pw_ticker;

/* Do ticks interrupt a thread anywhere, even inside a collection? */
static inline bool pw_interrupts(const pw_ticker *ticker) { return !ticker->take; }

#endif
