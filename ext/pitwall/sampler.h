/* A sampling session: everything between start and stop. One at a time in a process. */
#ifndef PITWALL_SAMPLER_H
#define PITWALL_SAMPLER_H

#include <pthread.h>
#include "session/collector.h"
#include "output/intern.h"
#include "output/writer.h"
#include "output/ring.h"
#include "session/threads.h"
#include "sampling/ticker.h"
#include "tools/quiet_thread.h"

/* Cumulative counters; names as in the STAT chunk. */
enum {
    PW_TICKS, PW_CAPTURES, PW_MISSED, PW_DROPPED, PW_REFUSED, PW_TRUNCATED, PW_HANDLER_NS, PW_NAMING_NS, PW_RESETS,
    PW_TIMERS_REFUSED, PW_SIGNAL_LOST, PW_GC_COUNT, PW_GC_MARKING_NS, PW_GC_SWEEPING_NS, PW_DEFERRED, PW_TORN_READS, PW_LABELS_LEFT_OUT, PW_BURSTS, PW_GC_UNTOLD,
    PW_QUERIES_LEFT_OUT, PW_QUERIES_FAILED,
    PW_COUNTERS
};

#define PW_SLOTS (1u << 14) /* threads alive at once */
#define PW_ENDED 256u       /* so many ended threads wait for the drain, which keeps what it has of them to a flush: it is woken, and flushes */

typedef struct {
    int64_t interval_ns, flush_ns, unit_ns, origin;
    int signo;
    uint32_t generation;
    const pw_ticker *ticker;
    uint32_t collecting; /* bit i: pw_collectors[i] */
    int64_t pause_ns;    /* between two visits of the drain, where a collector fills the ring fast; 0: by the interval */
    _Atomic uint32_t flushes_wanted, flushes_done;
    _Atomic(const char *) ends_by; /* why the process is about to end: the next flush writes it as the recording's end */
    _Atomic uint32_t ended; /* threads that did */

    pthread_mutex_t lock; /* tables, rows, list of threads; never taken in a handler */
    pthread_cond_t wake;
    pthread_t drain_thread;
    bool draining, stopping;

    pw_ring ring;
    pw_intern tables;
    pw_writer writer;
    pw_thread *threads;
    uint32_t next_thread_id;
    int64_t started_process_cpu, drain_cpu;
    _Atomic int64_t helper_cpu; /* of the ticker's thread */

    /* FRAM rows named by the resolver, not yet written */
    pw_buffer frame_ids, frame_kinds, frame_names, frame_paths, frame_lines;
    uint32_t named_frames;
} pw_session;

extern pw_session pw_current;

uint32_t pw_session_generation(void); /* 0 when no session takes samples */
/* Are samples taken, or is only recorded what other collectors see? */
static inline bool pw_samples(void) { return pw_current.ticker != &pw_no_ticker; }
pw_ring *pw_session_ring(void);
void pw_count(int counter, int64_t n);
int64_t pw_counter(int counter);

/* Handlers announce themselves, so that stop can wait for them. False: no session, do nothing. */
bool pw_enter_handler(void);
void pw_leave_handler(void);

/* Registers a thread (the calling one when `caller`), or finds it. NULL when there is no room. Takes the lock.
 * `tid` is 0 when nothing ticks for it yet. */
pw_thread *pw_register_thread(VALUE thread, pid_t tid, bool caller);
/* The calling thread ends. */
void pw_thread_ended(pw_thread *t);
/* The calling native thread begins another one: `t` has ended, nobody knows when. */
void pw_thread_replaced(pw_thread *t);
/* Ruby 3.1 does not tell of a thread that ends by an exception, and keeps its native thread for the next one: looks that
 * find no Ruby frame tell. In that thread's handler, or by the outside reader. False: the ring is full, try again. */
bool pw_thread_vanished(pw_thread *t);
/* After so many. */
uint32_t pw_looks_at_nothing(const pw_thread *t);
/* Lets the calling native thread lead to `t`, until it ends. */
void pw_enter_thread(pw_thread *t);
void pw_enter_known_thread(VALUE thread); /* where it is registered */
/* Does the calling thread, which has a GVL, run in the main Ractor? Jobs may be run in any. */
bool pw_in_main_ractor(void);
/* By the word a timer carries. */
pw_thread *pw_thread_at(uint32_t slot, uint32_t id);

/* The next moment of the common sampling grid after `now`, and the last one before or at it. */
int64_t pw_next_tick(int64_t now);
int64_t pw_last_tick(int64_t now);

void Init_pitwall_sampler(VALUE native);

/* Has the drain write all there is, and waits for it: the process is about to end without another word. For any thread. */
void pw_flush_before_end(void);

/* Runs it while no other thread begins or ends the recording; waits for one that does. It may run Ruby code. Needs the GVL. */
void pw_change_alone(VALUE (*what)(VALUE));
/* Raises an exception of the program's once the recording has ended. */
void pw_raise_after(VALUE exception);

/* Before exec or exit!: ends the recording, so that all in it has names, and says whether it did: then it is to begin again should the
 * process live on. A collector that is to see the ending itself has the recording go on; all so far is named and written, and at exit! the
 * end as well. Needs the GVL. */
bool pw_complete(const char *reason);
/* endings.c */
void pw_endings_init(VALUE native);

/* drain.c */
bool pw_rows_init(void); /* false: no memory */
void pw_rows_free(void);
int pw_start_drain(void);
void pw_stop_drain(void);                /* joins the thread; the ring is empty afterwards */
void pw_final_flush(const char *reason); /* after pw_stop_drain, with everything resolved */

/* naming.c */
void pw_resolve_init(void);
void pw_resolve_trigger(void);
bool pw_resolve_wanted(void);    /* by the drain, which could not */
void pw_resolve_if_wanted(void); /* at a tick: triggers what the drain could not (see pw_may_trigger) */
void pw_resolve_all(void);
void pw_name_thread(VALUE thread); /* lets other threads run */
VALUE pw_frame_name(VALUE frame, VALUE owner); /* as the recording will have it; nil where there is none */

/* thread_events.c, gc.c */
void pw_thread_events_init(void);
void pw_thread_events_start(void);
extern bool pw_threads_move; /* all threads, not other Ractors' only, may change native threads (RUBY_MN_THREADS) */
void pw_thread_events_stop(void);
void pw_thread_events_in_child(void); /* before it is stopped there */
void pw_thread_remember(pw_thread *t); /* so that events about it are recognised; needs the GVL */
/* Is it known in the running session who has the GVL? */
bool pw_thread_states(void);
/* Needs the GVL. Before a session begins: whether it will be known. On 3.1 only if the session asks for the GVL's watch (gvl_watch.h). */
/* The ticker of a mode; NULL: there is no such mode. */
const pw_ticker *pw_ticker_named(VALUE mode);
bool pw_thread_states_wanted(bool by_watch);
void pw_gc_init(VALUE native);
void pw_gc_start(void);
void pw_gc_stop(void);
/* In a handler: is a collection running? Then the tick is noted (for the collecting thread) or deferred. */
bool pw_gc_takes_tick(pw_thread *t, int64_t wall);
/* Does Ruby still tell of collections? By anybody, now and then; and while any Ractor's garbage is marked. */
void pw_gc_check(void);
void pw_gc_marks(void);
void pw_gc_ask_again(void); /* a Ractor is freed: at the next safepoint asks Ruby to go on telling */
/* From outside, by the holder of the reader: none runs, and none will begin its work before the reader is let go. */
bool pw_gc_rests(void);

#endif
