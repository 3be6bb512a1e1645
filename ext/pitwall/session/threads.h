/* The profiled threads: their identity, their state, and the last sample of each. */
#ifndef PITWALL_THREADS_H
#define PITWALL_THREADS_H

#include "session/session.h"
#include "tools/clock.h"
#include "tools/hidden.h"
#include "vm/stack_walk.h"
#include "vm/vm_compat.h"
#include <signal.h>
#include <stdatomic.h>

#define PW_SLOTS (1u << 14) /* most threads alive at once */
#define PW_MAX_DEPTH 4096 /* frames of a stack; deeper stacks lose frames at the root, and are counted */

/* After a wait longer than the interval, the next PW_QUIET_WAITS waits are expected to be long too. For such waits the
 * stack is taken when the wait begins, and the timer is switched off. That costs about 4 us a wait and avoids the
 * signal: an interrupted select needs the GVL to go on waiting. */
#define PW_QUIET_WAITS 4

/* How many of a thread's last stacks the drain remembers. A call needs an older stack when other calls were made
 * during it (by a signal handler). */
#define PW_KEPT_STACKS 8

/* Avoids false sharing: the field begins a cache line of its own. */
#define PW_OWN_LINE _Alignas(64)

/* The states of doc/record-format.md. */
enum { PW_RUNNING, PW_WAITING, PW_BLOCKED, PW_UNKNOWN, PW_OFF_CPU };

/* Is a thread in this state without the GVL? For states reported by thread events. */
static inline bool pw_off_gvl(int state) { return state == PW_WAITING || state == PW_BLOCKED; }

typedef struct { VALUE frame; uint32_t line, node; } pw_path_entry;

/* Grouped by writer. Any thread may read, through atomics, unless a field says otherwise. */
typedef struct pw_thread {
    /* Set when the thread is registered. Constant afterwards. */
    uint32_t id;         /* in the recording */
    uint32_t generation; /* of the session that the thread belongs to */
    uint32_t slot;
    VALUE thread;        /* Ruby's Thread, marked while registered */
    int64_t started;     /* monotonic ns */

    /* Written by the native thread that carries the thread or begins to. An M:N thread changes native threads. */
    struct {
        /* the current native thread, whose CPU clock is charged; 0: none (M:N, between two) */
        _Atomic pid_t tid;
        _Atomic pid_t native; /* the last native thread, for the recording; 0: none so far */
        _Atomic bool migrates;
        /* how many native threads have a pw_tls that points here; freed at 0, or at the end of the session */
        _Atomic uint32_t entered;
        /* CPU ns on earlier native threads; the CPU clock of `tid` when the thread began there. Both change together
         * with `tid`: holds reader lock */
        int64_t cpu_before, cpu_base;
    } carrier;

    /* Written by the thread itself: by its handler, and by its thread-event hooks, which set `busy` to keep the handler
     * out. Where samples come from outside, the thread writes only the first six fields. */
    struct {
        PW_OWN_LINE _Atomic int state;
        _Atomic uint32_t changes; /* how often the thread released or got the GVL */
        _Atomic int64_t suspended_at, resumed_at; /* when the thread last released or got the GVL */
        _Atomic int64_t ready_at; /* when the thread last began to wait for the GVL */
        _Atomic uint32_t label;   /* the running fiber's label (labels.h); 0: none */
        volatile sig_atomic_t busy;
        /* ticks were skipped while the thread was off the GVL: its stack is due (attribute_wait in thread_events.c) */
        volatile bool wait_due;
        _Atomic bool held;        /* the stack was taken since the GVL was released; it cannot have changed */
        _Atomic bool waits;       /* waits, with the GVL, in C code that no signal may interrupt (c_waits.c) */
        _Atomic bool parked;      /* the timer is off because of `held` */
        /* stays on one native thread, so that native thread's signal mask is the thread's own (held_signal.c) */
        bool stays;
        /* how many more waits take the stack at their beginning, so that no signal interrupts them */
        uint8_t quiet;
        int64_t takes_again_at; /* monotonic ns. Before this time no stack is taken before a wait (thread_events.c) */
        uint8_t slow; /* how many ticks in a row took longer than half of the interval (signal_ticker.c, in_a_row.h) */
    } own;

    /* Written by the native thread that takes the stack or charges time: the thread itself, a helper or the drain.
     * `being_taken` admits one at a time. */
    struct {
        PW_OWN_LINE _Atomic int64_t last_wall, last_cpu; /* clocks at the last record */
        int64_t read_wall, read_cpu; /* the last reading of the CPU clock */
        /* samples since that reading; how far the CPU clock may be estimated from wall time (see read_cpu) */
        uint8_t unread, trust;
        bool cpu_stale;              /* the thread left the CPU since that reading */
        _Atomic int64_t cpu_due;     /* CPU ns not charged yet; the next running sample gets them */
        uint32_t empty;              /* consecutive looks that found no Ruby frame */
        uint32_t sent;               /* number of frames of the last stack sent to the drain */
        uint32_t serial;             /* how many stacks were sent to the drain */
        uint32_t label;              /* of the last sample */
        bool unchanged;              /* the last sample had the same stack as the sample before */
        bool any;                    /* the thread was sampled at least once */
        bool finished;               /* the END record is in the ring */
        _Atomic bool being_taken;
    } sample;

    /* Written during garbage collection, by the collecting thread or its handler: [0] marking, [1] sweeping. */
    struct { uint32_t ticks[2]; int64_t wall[2], cpu[2]; } gc;

    /* Written by the ticker: by the outside reader, or by the safepoint ticker when it reads other threads.
     * holds reader lock
     *
     * The signal ticker uses three of the fields differently while the thread rests, in the handler of the thread
     * that watches: `place` is the place in its list of resting threads, `cpu` is the CPU clock at the last check
     * (-1: none yet), `unchanged_until` is the time of that check. */
    struct {
        bool in_sight;           /* the drain has the stack that was read */
        bool unchanged;          /* a later reading found the same stack */
        uint8_t state;
        uint32_t changes;        /* `own.changes` at the reading */
        uint32_t place;          /* in the ticker's list, from 1 */
        uint32_t spared;         /* ticks skipped since the thread rests */
        int64_t cpu;             /* CPU ns of the thread at the reading */
        int64_t unchanged_until; /* until when the stack is known to be the same */
        /* written by the drain: `own.changes` when the drain last took the stack of the waiting thread (waiting.c) */
        _Atomic uint32_t looked_at_change;
    } seen;

    timer_t timer; /* the signal ticker's, created by whoever registers the thread */
    _Atomic bool has_timer;

    /* Written with `sample.being_taken`. */
    struct {
        pw_walk walk; /* the last own walk; `agreed` is 0 while the drain's last stack is by rb_profile_frames */
        /* Used without own walks: the last stack and room for the next, leaf first. Room for one frame of Pitwall's
         * own on either side. */
        int previous_count;
        VALUE *frames, *previous_frames;
        int *lines, *previous_lines;
    } stack;
    struct pw_native_room *native; /* NULL: no native frames (native_room.h). Constant while the thread is recorded */

    /* Written by the drain, and by naming (`named`, `announced`, `name_id`). holds session lock */
    struct {
        pw_path_entry *path;
        uint32_t depth;
        uint32_t stack_serial, stack_nodes[PW_KEPT_STACKS]; /* nodes of the last stacks, by `sample.serial` */
        int64_t row_wall, row_cpu; /* clocks at the last row, in units */
        uint64_t cpu_due_units;    /* like `cpu_due`, computed by the drain where there are no thread events */
        uint32_t row_label;        /* at the last record */
        uint32_t last_row;         /* index + 1 of the last row not yet written; 0: all written */
        bool named, announced;
        pid_t announced_native;
        uint32_t name_id;
    } drain;
    struct pw_thread *next; /* in the session's list. holds session lock */
} pw_thread;

/* From a native thread to the profiled thread. `ended` keeps late events of a finished thread from registering that
 * thread again. `thread` is valid only while `slot` still has it: another native thread may carry `thread` now (M:N),
 * `thread` may have ended there, or the outside reader may have seen `thread` vanish. `thread` counts as `entered`, and
 * so is not freed, until another thread replaces it here. */
typedef struct {
    pw_thread *thread;
    uint32_t generation, slot, id, ended;
    VALUE ended_thread;
    volatile sig_atomic_t changing; /* `thread` is being replaced: a handler must not use it */
    /* the signal that is blocked while the native thread waits; 0: none (signal_ticker.c) */
    volatile sig_atomic_t held_back;
    volatile sig_atomic_t returning; /* a signal that was held back arrives now */
    volatile sig_atomic_t waited; /* a signal that was blocked during a wait of C code arrives now */
    /* a look that finds no Ruby frame must not end `thread`: a caller on this stack uses it */
    volatile sig_atomic_t pinned;
} pw_self_slot;

/* initial-exec: reading pw_tls in a handler must never allocate. */
extern PW_HIDDEN __thread pw_self_slot pw_tls __attribute__((tls_model("initial-exec")));

/* The calling native thread runs `t` from now on; NULL: no known thread. The thread before may be freed afterwards.
 * async-signal-safe */
void pw_now_running(pw_thread *t);
/* NULL when the calling thread is not recorded in the running session. async-signal-safe */
pw_thread *pw_self(void);

/* Finds a thread by the two halves of pw_thread_word. NULL: the thread is gone. async-signal-safe */
pw_thread *pw_thread_at(uint32_t slot, uint32_t id);
/* Finds a living thread of the session by Ruby's Thread. holds session lock */
pw_thread *pw_thread_find(VALUE thread);
/* Adds a thread to the session's list. NULL: there is no room, which is counted. `tid`: 0 where nothing ticks for the
 * thread yet. holds session lock */
pw_thread *pw_thread_add(VALUE thread, pid_t tid);
/* After pw_thread_hide, pw_thread_at does not find the thread; after pw_thread_show it does. async-signal-safe */
void pw_thread_hide(pw_thread *t);
void pw_thread_show(pw_thread *t);
void pw_thread_free(pw_thread *t);
/* Removes all threads of the session. `frees`: false in a forked child. */
void pw_threads_forget(bool frees);
/* The word in timers and thread-specific storage: a slot, and the id that must be found in that slot. */
static inline uint64_t pw_thread_word(const pw_thread *t) { return (uint64_t)t->slot << 32 | t->id; }
/* CPU ns of the calling thread. async-signal-safe */
int64_t pw_thread_cpu(pw_thread *t);
/* The thread leaves native thread `tid` (M:N). The CPU time spent there is kept. Only the first call for a `tid` has an
 * effect. */
void pw_thread_leave(pw_thread *t, pid_t tid);
/* The thread arrives on the calling native thread, `here`. It was on no native thread before. */
void pw_thread_arrive(pw_thread *t, pid_t here);
/* A thread's CPU ns so far, callable from any thread. -1: its native thread has ended. holds reader lock */
int64_t pw_thread_cpu_now(const pw_thread *t);
pid_t pw_gettid(void);

/* Does the running session know which thread has the GVL? On 3.1 only where the session uses gvl_watch.h. */
extern PW_HIDDEN bool pw_gvl_watched;
static inline bool pw_thread_states(void) { return PW_THREAD_EVENTS || pw_gvl_watched; }
/* All threads, not only those of other Ractors, may change native threads (RUBY_MN_THREADS). */
extern bool pw_threads_move;

#endif
