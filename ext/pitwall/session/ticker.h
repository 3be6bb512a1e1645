/* When to sample. A ticker decides that a thread's stack is due and gets it taken: in that thread, by pw_capture;
 * from outside by the helper itself, with pw_capture_outside.
 *
 * signal_ticker.c: a POSIX timer a thread, whose signal interrupts the thread wherever it is. safepoint_ticker.c: a
 * helper thread asks Ruby to call us at its next safepoint; no signal, but safepoint-biased. outside_ticker.c: a
 * helper thread reads the stacks of the others while they run on. tickers.c: never, for recordings of something
 * else; and the list of tickers. */
#ifndef PITWALL_TICKER_H
#define PITWALL_TICKER_H

#include <stdbool.h>
#include <stdint.h>

struct pw_thread;

typedef struct {
    const char *name;
    int (*start)(void);                          /* 0 or an errno */
    void (*stop)(void);                          /* no capture begins after it returns */
    void (*stop_in_child)(void);                 /* after fork: no timers and no helper came along */
    void (*thread_begin)(struct pw_thread *);    /* any thread may call it for any other */
    void (*thread_end)(struct pw_thread *);      /* in the ending thread, or at stop */
    void (*thread_resumed)(struct pw_thread *);  /* in the thread: it has the GVL again after its stack was held */
    void (*thread_left)(struct pw_thread *);     /* no ticks until it resumes: it waits with its stack taken,
        or (M:N) its
                                                  * native thread carries another one; then the caller has the
                                                  * reader's lock, else is the thread itself */
    void (*check)(void);                         /* from the drain, now and then */
    /* Where ticks do not interrupt (else NULL): is the thread's sample overdue, and takes it as of a moment just
     * past. What ran since the last safepoint is so told from the collection that follows it. In the thread, which
     * has the GVL. */
    bool (*overdue)(struct pw_thread *, int64_t wall);
    void (*take)(struct pw_thread *, int64_t wall, int64_t cpu);
    /* takes stacks at all; then a helper may look at stacks from outside, and collections wait for the look */
    bool samples;
    /* Only its helper takes samples, and in collections the collecting thread: threads only note what becomes of
     * them. */
    bool from_outside;
    /* The stacks of waiting threads are looked at once a wait: it must be known who waits, on 3.1 by gvl_watch.c. */
    bool looks_at_waiting;
    /* Where a thread may find out late about a tick (else NULL), in the thread: what passed up to now was under the
     * label that it still has. */
    void (*label_ends)(struct pw_thread *);
} pw_ticker;

/* Ticks reach a thread anywhere, also inside a collection. */
static inline bool pw_interrupts(const pw_ticker *ticker) { return !ticker->take; }

#endif
