/* The threads being profiled: who they are, what state they are in, what was last seen of them. */
#ifndef PITWALL_THREADS_H
#define PITWALL_THREADS_H

#include "vm_compat.h"
#include "clock.h"
#include "stack_walk.h"
#include <signal.h>
#include <stdatomic.h>

#define PW_MAX_DEPTH 4096 /* deeper stacks are cut at the root and counted */

/* A wait that outlasts the interval is followed by such waits: taking their stack when they begin and switching the timer
 * off costs some 4 us a wait, and spares the program the signal (an interrupted select needs the GVL to go on waiting). */
#define PW_QUIET_WAITS 4

/* The states of doc/record-format.md. */
enum { PW_RUNNING, PW_WAITING, PW_BLOCKED, PW_UNKNOWN, PW_OFF_CPU };

typedef struct { VALUE frame; uint32_t line, node; } pw_path_entry;

typedef struct pw_thread {
    uint32_t id;         /* in the recording */
    uint32_t generation; /* of the session it belongs to */
    uint32_t slot;
    pid_t tid;
    VALUE thread;        /* Ruby's Thread, marked while registered */
    int64_t started;     /* monotonic ns */

    /* Written by the thread itself: its handler, and its thread-event hooks with `busy` set against the handler. */
    volatile sig_atomic_t busy;
    _Atomic int state;
    int64_t suspended_at;        /* when it last released the GVL */
    _Atomic int64_t ready_at;    /* when it last began to wait for the GVL */
    volatile bool owes;          /* ticks passed unseen while it was off the GVL: its stack is due (see pay) */
    _Atomic bool held;           /* its stack was taken since it released the GVL, and cannot have changed */
    _Atomic bool parked;         /* its timer is off because of `held` */
    uint8_t quiet;               /* for so many more waits the stack is taken beforehand, so that no signal disturbs them */
    _Atomic int64_t last_wall, last_cpu; /* clocks at its last record */
    /* The last reading of its CPU clock: how many samples went without one since, and may go. */
    int64_t read_wall, read_cpu;
    uint8_t unread, trust;
    bool cpu_stale;              /* it left the CPU since */
    int64_t cpu_due;             /* CPU time that belongs to code not sampled since: the next running sample's */
    uint32_t empty;              /* looks in a row that found no Ruby frame */
    bool sampled;
    bool finished;               /* END is in the ring */
    uint32_t gc_ticks[2];        /* ticks that hit it while it was collecting garbage: marking, sweeping */
    int64_t gc_wall[2], gc_cpu[2];

    /* An M:N thread's CPU time is that of the native threads that carried it. */
    int64_t cpu_carried, cpu_base;
    _Atomic bool migrates;

    timer_t timer;
    _Atomic bool has_timer;

    pw_walk walk; /* its last own walk; `agreed` is 0 while the drain was last told by rb_profile_frames */
    /* Without own walks: the last stack and room for the next, leaf first; one frame of room on either side for frames of our own. */
    int previous_count;
    VALUE *frames, *previous_frames;
    int *lines, *previous_lines;

    /* The drain's. */
    pw_path_entry *path;
    uint32_t depth;
    int64_t row_wall, row_cpu;   /* in units: clocks at the last row written */
    uint64_t cpu_due_units;      /* without thread events, `cpu_due` is found by the drain */
    uint32_t last_row;           /* index + 1 of its last row not yet written, 0 when written */
    bool named, announced;
    uint32_t name_id;
    struct pw_thread *next;
} pw_thread;

/* Native thread → thread being profiled. `ended` keeps late events of a finished thread from registering it anew. */
typedef struct {
    pw_thread *thread;
    uint32_t generation, ended;
    volatile sig_atomic_t pinned; /* a look that finds no Ruby frame must not end `thread`: somebody down the stack uses it */
} pw_self_slot;

/* initial-exec: reading it in a handler must never allocate. */
extern __thread pw_self_slot pw_tls __attribute__((tls_model("initial-exec")));

pw_thread *pw_self(void); /* NULL when the calling thread is not profiled in the running session */

pw_thread *pw_thread_new(VALUE thread, pid_t tid, uint32_t id, uint32_t generation);
void pw_thread_free(pw_thread *t);
/* What timers and thread-specific storage carry: a slot and the id that must be found there. */
static inline uint64_t pw_thread_word(const pw_thread *t) { return (uint64_t)t->slot << 32 | t->id; }
int64_t pw_thread_cpu(pw_thread *t); /* of the calling thread */
pid_t pw_gettid(void);

#endif
