/* The threads being profiled: who they are, what state they are in, what was last seen of them. */
#ifndef PITWALL_THREADS_H
#define PITWALL_THREADS_H

#include "session/session.h"
#include "tools/clock.h"
#include "tools/hidden.h"
#include "vm/stack_walk.h"
#include "vm/vm_compat.h"
#include <signal.h>
#include <stdatomic.h>

#define PW_SLOTS (1u << 14) /* threads alive at once */
#define PW_MAX_DEPTH 4096 /* deeper stacks are cut at the root and counted */

/* A wait that outlasts the interval is followed by such waits: taking their stack when they begin and switching the
 * timer off costs some 4 us a wait, and spares the program the signal (an interrupted select needs the GVL to go on
 * waiting). */
#define PW_QUIET_WAITS 4

/* The drain remembers so many of a thread's last stacks, for calls during which others were made (by a signal's
 * handler). */
#define PW_KEPT_STACKS 8

/* Avoids false sharing: the field begins a cache line of its own. */
#define PW_OWN_LINE _Alignas(64)

/* The states of doc/record-format.md. */
enum { PW_RUNNING, PW_WAITING, PW_BLOCKED, PW_UNKNOWN, PW_OFF_CPU };

/* Whether a thread in that state, which thread events told, has no GVL. */
static inline bool pw_off_gvl(int state) { return state == PW_WAITING || state == PW_BLOCKED; }

typedef struct { VALUE frame; uint32_t line, node; } pw_path_entry;

/* Divided by who writes. Readers are anybody, by atomics, unless a field says otherwise. */
typedef struct pw_thread {
    /* Set when the thread is registered, and not changed. */
    uint32_t id;         /* in the recording */
    uint32_t generation; /* of the session it belongs to */
    uint32_t slot;
    VALUE thread;        /* Ruby's Thread, marked while registered */
    int64_t started;     /* monotonic ns */

    /* Written by the native thread that carries it or begins to: an M:N thread changes native threads. */
    struct {
        /* the native thread that it is on, by whose CPU clock it is charged; 0: none (M:N, between two) */
        _Atomic pid_t tid;
        _Atomic pid_t native; /* the one it was on last, for the recording; 0: none so far */
        _Atomic bool migrates;
        /* native threads whose pw_tls leads here: it is freed when they have left, or the session ends */
        _Atomic uint32_t entered;
        /* CPU ns on the native threads before, and the CPU clock of `tid` when it began there. They change with
         * `tid`: holds reader lock */
        int64_t cpu_before, cpu_base;
    } carrier;

    /* Written by the thread itself: by its handler, and by its thread-event hooks with `busy` set against the
     * handler. Where samples come from outside it writes only the first six. */
    struct {
        PW_OWN_LINE _Atomic int state;
        _Atomic uint32_t changes; /* how often it released the GVL or got it */
        _Atomic int64_t suspended_at, resumed_at; /* when it last did */
        _Atomic int64_t ready_at; /* when it last began to wait for the GVL */
        _Atomic uint32_t label;   /* of the running fiber's work (labels.h), 0: nothing */
        volatile sig_atomic_t busy;
        /* ticks passed unseen while it was off the GVL: its stack is due (see attribute_wait) */
        volatile bool wait_due;
        _Atomic bool held;        /* its stack was taken since it released the GVL, and cannot have changed */
        _Atomic bool waits;       /* it has the GVL, and waits in C code that must not get a signal (c_waits.c) */
        _Atomic bool parked;      /* its timer is off because of `held` */
        bool stays;               /* on its native thread, whose mask of signals is then its own (held_signal.c) */
        /* for so many more waits the stack is taken beforehand, so that no signal disturbs them */
        uint8_t quiet;
    } own;

    /* Written by whoever takes its stack or charges it: one at a time (`being_taken`), the thread itself, a helper
     * or the drain. */
    struct {
        PW_OWN_LINE _Atomic int64_t last_wall, last_cpu; /* clocks at its last record */
        int64_t read_wall, read_cpu; /* the last reading of its CPU clock */
        /* samples without a reading since; how far the clock may be trusted (see read_cpu) */
        uint8_t unread, trust;
        bool cpu_stale;              /* it left the CPU since */
        _Atomic int64_t cpu_due;     /* CPU ns of code that was not sampled since: the next running sample's */
        uint32_t empty;              /* looks in a row that found no Ruby frame */
        uint32_t sent;               /* frames of the stack that the drain got last */
        uint32_t serial;             /* how many stacks the drain got */
        uint32_t label;              /* of its last sample */
        bool unchanged;              /* its last sample found the stack of the one before */
        bool any;                    /* it was sampled at all */
        bool finished;               /* END is in the ring */
        _Atomic bool being_taken;
    } sample;

    /* Written by the thread while it collects garbage, or by its handler then: [0] marking, [1] sweeping. */
    struct { uint32_t ticks[2]; int64_t wall[2], cpu[2]; } gc;

    /* Written by the ticker: the outside reader, or the safepoint ticker's look at others. holds reader lock The
     * signal ticker has other uses for three of them while the thread rests, in handlers of whichever thread
     * watches: `place` is that in its list of resting threads, `cpu` the CPU clock at the last glance (-1: none
     * yet), `unchanged_until` when that was. */
    struct {
        bool in_sight;           /* the drain has the stack that was seen */
        bool unchanged;          /* it was seen again unchanged */
        uint8_t state;
        uint32_t changes;        /* its `own.changes` when it was seen */
        uint32_t place;          /* in the ticker's list, from 1 */
        uint32_t spared;         /* ticks, since it rests */
        int64_t cpu;             /* its CPU ns when it was seen */
        int64_t unchanged_until; /* until when the stack is known to be the same */
        /* by the drain: took its stack at so many `own.changes`, while it waited (waiting.c) */
        _Atomic uint32_t looked_at_change;
    } seen;

    timer_t timer; /* the signal ticker's, created by whoever registers the thread */
    _Atomic bool has_timer;

    /* Written with `sample.being_taken`. */
    struct {
        pw_walk walk; /* its last own walk; `agreed` is 0 while the drain's last stack is by rb_profile_frames */
        /* Without own walks: the last stack and room for the next, leaf first; one frame of room on either side for
         * frames of ours. */
        int previous_count;
        VALUE *frames, *previous_frames;
        int *lines, *previous_lines;
    } stack;

    /* Written by the drain, and by naming (`named`, `announced`, `name_id`). holds session lock */
    struct {
        pw_path_entry *path;
        uint32_t depth;
        uint32_t stack_serial, stack_nodes[PW_KEPT_STACKS]; /* the last stacks, by `sample.serial` */
        int64_t row_wall, row_cpu; /* in units: clocks at the last row written */
        uint64_t cpu_due_units;    /* without thread events the drain finds out what `cpu_due` is */
        uint32_t row_label;        /* at its last record */
        uint32_t last_row;         /* index + 1 of its last row not yet written, 0 when written */
        bool named, announced;
        pid_t announced_native;
        uint32_t name_id;
    } drain;
    struct pw_thread *next; /* in the session's list. holds session lock */
} pw_thread;

/* Native thread → thread being profiled. `ended` keeps late events of a finished thread from registering it anew.
 * Another native thread may carry `thread` meanwhile (M:N), and it may have ended there, or the outside reader may
 * have seen it vanish: so it counts only while `slot` has it. Until another takes its place it is `entered`, and
 * not freed. */
typedef struct {
    pw_thread *thread;
    uint32_t generation, slot, id, ended;
    VALUE ended_thread;
    volatile sig_atomic_t changing; /* which thread it leads to: a handler keeps away */
    /* the signal that the native thread has blocked while it waits; 0: none (signal_ticker.c) */
    volatile sig_atomic_t held_back;
    volatile sig_atomic_t returning; /* one that was held back comes now */
    volatile sig_atomic_t waited; /* one that C code was spared while it waited comes now */
    /* a look that finds no Ruby frame must not end `thread`: somebody down the stack uses it */
    volatile sig_atomic_t pinned;
} pw_self_slot;

/* initial-exec: reading it in a handler must never allocate. */
extern PW_HIDDEN __thread pw_self_slot pw_tls __attribute__((tls_model("initial-exec")));

/* The calling native thread runs `t` from here on; NULL: nobody that is known. The one before may be freed then.
 * async-signal-safe */
void pw_now_running(pw_thread *t);
/* NULL when the calling thread is not recorded in the running session. async-signal-safe */
pw_thread *pw_self(void);

/* By the word that a timer carries; NULL: it is gone. async-signal-safe */
pw_thread *pw_thread_at(uint32_t slot, uint32_t id);
/* The living thread of the session. holds session lock */
pw_thread *pw_thread_find(VALUE thread);
/* A new one in the session's list. NULL: there is no room, which is counted. `tid`: 0 where nothing ticks for it
 * yet. holds session lock */
pw_thread *pw_thread_add(VALUE thread, pid_t tid);
/* pw_thread_at finds it no longer, or again. async-signal-safe */
void pw_thread_hide(pw_thread *t);
void pw_thread_show(pw_thread *t);
void pw_thread_free(pw_thread *t);
/* Forgets all of the session. `frees`: false in a forked child. */
void pw_threads_forget(bool frees);
/* What timers and thread-specific storage carry: a slot and the id that must be found there. */
static inline uint64_t pw_thread_word(const pw_thread *t) { return (uint64_t)t->slot << 32 | t->id; }
/* CPU ns of the calling thread. async-signal-safe */
int64_t pw_thread_cpu(pw_thread *t);
/* It is no longer on that native thread (M:N), and keeps the CPU time it had there. Once, whoever says so first. */
void pw_thread_leave(pw_thread *t, pid_t tid);
/* It is on the calling native thread, `here`, and on none before. */
void pw_thread_arrive(pw_thread *t, pid_t here);
/* Its CPU ns so far, for another thread; -1: its native thread has ended. holds reader lock */
int64_t pw_thread_cpu_now(const pw_thread *t);
pid_t pw_gettid(void);

/* Is it known in the running session who has the GVL? On 3.1 only where the session has the GVL's watch
 * (gvl_watch.h). */
extern PW_HIDDEN bool pw_gvl_watched;
static inline bool pw_thread_states(void) { return PW_THREAD_EVENTS || pw_gvl_watched; }
/* All threads, not only those of other Ractors, may change native threads (RUBY_MN_THREADS). */
extern bool pw_threads_move;

#endif
