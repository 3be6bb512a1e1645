/* Shadow stacks: the open calls of each execution context (a fiber's or a thread's).
 *
 * The time between two events is charged to the top node of the running shadow stack. Totals are sums over subtrees,
 * so an entry does not store the time of its call. */
#ifndef PITWALL_SHADOW_H
#define PITWALL_SHADOW_H

#include "collectors/trace/calls.h"
#include "collectors/trace/trace_filters.h"
#include "collectors/trace/trace_probe.h"
#include "tools/buffer.h"
#include "tools/hidden.h"

enum { PW_SHADOW_SLOTS = 1 << 12 };
enum { PW_GC_AS_IS, PW_GC_OFF, PW_GC_DEFER };

typedef struct {
    const VALUE *own; /* the call's control frame */
    pw_call_node *node;
    VALUE a, b;       /* the call's key, also if the call is filtered out */
} pw_shadow_entry;

typedef struct pw_shadow {
    const VALUE *ec;
    VALUE thread;     /* only compared */
    pw_call_tree *tree;
    pw_shadow_entry *entries;   /* the first entry is no call: its node is the root */
    uint32_t count, room;
    uint64_t paused;  /* tick at which another stack began to run; 0: this one never ran */
    struct pw_shadow *next, *next_of_tree;
} pw_shadow;

/* Written by threads with the GVL: in hooks, at start and at stop. */
typedef struct {
    /* Read at every event. */
    const VALUE *ec;  /* the running execution context; NULL: must be looked up */
    pw_shadow *stack; /* of `ec` */
    uint64_t last;    /* tick up to which time has been charged */
    uint64_t gap;     /* ticks; the CPU clock is read after a longer interval between events */
    const VALUE *just_called;
    pw_tick_clock clock;

    bool running, armed, calibrating, paused;
    bool busy;        /* in the hook, where Ruby may run */
    bool in_gc, sweeping;
    VALUE own_thread; /* thread in which Pitwall itself calls methods; 0: none */
    pw_shadow *own_stack;
    bool internal;    /* the hook for collections and objects is installed */
    bool cpu, objects, bytes;
    int gc;
    bool gc_was_off;
    uint64_t gc_memory, gc_over; /* memory limit, bytes; how often memory reached it */
    _Atomic bool gc_due;
    uint64_t since_look;
    int statm;
    double tick_ns;
    double cpu_read_ns; /* CPU time of one reading of the CPU clock, ns */
    pw_probe probes[PW_CALL_KINDS];
    pw_shadow *slots[PW_SHADOW_SLOTS];
    ID start;
    VALUE native;
} pw_trace_state;

extern PW_HIDDEN pw_trace_state pw_trace;

#if PW_LAYOUT_RUBY

/* CPU time of the calling Ruby thread in ns, summed over the native threads that ran it. */
int64_t pw_trace_thread_cpu(void);
/* Is this tree the calling thread's? Needed because a job may run in any thread. */
bool pw_trace_is_callers(const pw_call_tree *tree);
/* After a long interval: finds the CPU time in it. Returns the tick up to which time has been charged. */
uint64_t pw_trace_read_cpu(pw_call_tree *tree, pw_call_node *node, uint64_t pause);

static inline pw_call_node *pw_shadow_top(const pw_shadow *s) { return s->entries[s->count - 1].node; }

static inline void
pw_trace_charge(pw_shadow *s, pw_call_node *node, uint64_t now)
{
    uint64_t pause = now - pw_trace.last;
    node->wall += pause;
    if (__builtin_expect(pause > pw_trace.gap, 0)) now = pw_trace_read_cpu(s->tree, node, pause);
    pw_trace.last = now;
}

static inline void
pw_shadow_push(pw_shadow *s, const VALUE *own, pw_call_node *node, VALUE a, VALUE b)
{
    if (s->count == s->room) {
        pw_shadow_entry *larger = pw_noted(realloc(s->entries, s->room * 2 * sizeof(pw_shadow_entry)));
        if (!larger) return; /* no memory: the call counts as its caller's; entries are found by frame */
        s->entries = larger;
        s->room *= 2;
    }
    s->entries[s->count++] = (pw_shadow_entry){own, node, a, b};
}

/* Removes the entries of frames that have ended, given that a live frame lies at `own`. */
static inline void
pw_shadow_trim(pw_shadow *s, const VALUE *own)
{
    while (s->entries[s->count - 1].own < own) s->count--;
}

/* The shadow stack of an execution context; NULL: none. */
pw_shadow *pw_shadow_find(const VALUE *ec);
void pw_shadow_free(pw_shadow *s);
/* The node of a call that is not in the eight seen last. Time spent in this function is not charged. */
pw_call_node *pw_shadow_find_node(pw_shadow *s, pw_call_node *from, VALUE a, VALUE b, uint8_t kind,
                                  const pw_call_site *site);
/* Charges time up to `now` to the last stack that ran. Leaves that stack if it is another thread's. */
void pw_trace_settle(uint64_t now);
/* Switches to the calling thread's or fiber's stack. NULL: nothing is traced in this context. */
pw_shadow *pw_shadow_switch(const pw_trace_arg *arg, uint64_t now);

#endif

#endif
