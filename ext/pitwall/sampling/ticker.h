/* When to sample. A ticker decides that a thread's stack is due and gets it taken: in that thread, by pw_capture; from outside by
 * the helper itself, with pw_capture_outside.
 *
 * signal_ticker.c: a POSIX timer a thread, whose signal interrupts the thread wherever it is.
 * safepoint_ticker.c: a helper thread asks Ruby to call us at its next safepoint; no signal, but safepoint-biased.
 * outside_ticker.c: a helper thread reads the stacks of the others while they run on.
 * no_ticker.c: never, for recordings of something else. */
#ifndef PITWALL_TICKER_H
#define PITWALL_TICKER_H

#include "vm/reader_lock.h"
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
    void (*thread_left)(struct pw_thread *);     /* no ticks until it resumes: it waits with its stack taken, or (M:N) its
                                                  * native thread carries another one; then the caller has the
                                                 * reader's lock, else is the thread itself */
    void (*check)(void);                         /* from the drain, now and then */
    /* Where ticks do not interrupt (else NULL): is the thread's sample overdue, and takes it as of a moment just past. What
     * ran since the last safepoint is so told from the collection that follows it. In the thread, which has the GVL. */
    bool (*overdue)(struct pw_thread *, int64_t wall);
    void (*take)(struct pw_thread *, int64_t wall, int64_t cpu);
    /* Nobody takes samples but its helper, and in collections the thread they run in: threads only note what becomes of them. */
    bool from_outside;
    /* Where a thread may find out late about a tick (else NULL), in the thread: what passed up to now was under the label that it still has. */
    void (*label_ends)(struct pw_thread *);
} pw_ticker;

/* Ticks reach a thread anywhere, also inside a collection. */
static inline bool pw_interrupts(const pw_ticker *ticker) { return !ticker->take; }

extern const pw_ticker pw_signal_ticker, pw_safepoint_ticker, pw_outside_ticker, pw_no_ticker;

/* By a thread that has got the GVL: the reader may have nothing to do until then. */
void pw_reader_awake(void);
/* Whether a helper may look at stacks from outside, which collections must then wait for. */
static inline bool pw_looks_from_outside(const pw_ticker *ticker) { return ticker != &pw_no_ticker; }

/* Whether the stacks of waiting threads are looked at once a wait: it must be known who waits, on 3.1 by gvl_watch.c. */
static inline bool pw_looks_at_waiting(const pw_ticker *ticker) { return ticker == &pw_signal_ticker || ticker == &pw_safepoint_ticker; }

bool pw_signal_taken(int signo); /* by a handler of the program */

/* The calling thread lets go of the GVL: its ticks wait until it is back, so that none interrupts the call it waits in. */
void pw_signal_hold_back(void);
/* It is back: whether a recording is under way or not. */
void pw_signal_let_through(void);
/* C code is about to wait in the calling thread. The signal that stays blocked meanwhile; 0: none, and _ends is not to be called. */
int pw_signal_wait_begins(void);
void pw_signal_wait_ends(void);
/* Whether a thread somewhere still has the signal blocked. */
bool pw_signal_held_back(void);
void pw_signal_in_child(void);
/* Needs the GVL. Before the first thread is seen: learns whether waiting threads' stacks may be read from outside. */
void pw_signal_prepare(void);
/* Takes the stacks of threads that have waited for so long, once a wait; where thread events tell who waits. Holds the session's lock. */
void pw_signal_look_at_waiting(int64_t for_ns);

#endif
