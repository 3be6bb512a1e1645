/* Shadow stacks: what is called in each execution context (a fiber's or a thread's), and whose time passes.
 *
 * Time goes to the node on top of the running shadow stack, from one event to the next. Totals are sums over
 * subtrees, so no entry needs the time of its call. */
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
    const VALUE *own; /* its control frame */
    pw_call_node *node;
    VALUE a, b;       /* its key, also where that is filtered out */
} pw_shadow_entry;

typedef struct pw_shadow {
    const VALUE *ec;
    VALUE thread;     /* only compared */
    pw_call_tree *tree;
    pw_shadow_entry *entries;   /* the first is no call: the node is the root */
    uint32_t count, room;
    uint64_t paused;  /* when another began to run; 0: never ran */
    struct pw_shadow *next, *next_of_tree;
} pw_shadow;

/* Changed by threads that have the GVL, in hooks and by start and stop. */
typedef struct {
    /* Read at every event. */
    const VALUE *ec;  /* NULL: find out */
    pw_shadow *stack; /* of `ec` */
    uint64_t last;    /* up to which time has been given away */
    uint64_t gap;     /* a longer pause makes the CPU clock be read */
    const VALUE *just_called;
    pw_tick_clock clock;

    bool running, armed, calibrating, paused;
    bool busy;        /* in the hook, where Ruby may run */
    bool in_gc, sweeping;
    VALUE own_thread; /* in it Pitwall itself calls methods; 0: none */
    pw_shadow *own_stack;
    bool internal;    /* collections and objects are told */
    bool cpu, objects, bytes;
    int gc;
    bool gc_was_off;
    uint64_t gc_memory, gc_over; /* bytes; how often the bound was met */
    _Atomic bool gc_due;
    uint64_t since_look;
    int statm;
    double tick_ns;
    double cpu_read_ns; /* what reading the CPU clock costs of CPU time */
    pw_probe probes[PW_CALL_KINDS];
    pw_shadow *slots[PW_SHADOW_SLOTS];
    ID start;
    VALUE native;
} pw_trace_state;

extern PW_HIDDEN pw_trace_state pw_trace;

#if PW_LAYOUT_RUBY

/* The CPU ns of the calling thread, whichever native threads carried it. */
int64_t pw_trace_thread_cpu(void);
/* Is this tree the calling thread's? Jobs run in any. */
bool pw_trace_is_callers(const pw_call_tree *tree);
/* A long pause: finds out what of it was computed. The tick up to which time has been given away. */
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
        if (!larger) return; /* entries are found by their frames: one that is missing is its caller's */
        s->entries = larger;
        s->room *= 2;
    }
    s->entries[s->count++] = (pw_shadow_entry){own, node, a, b};
}

/* Entries that are gone when a frame lies at `own`. */
static inline void
pw_shadow_trim(pw_shadow *s, const VALUE *own)
{
    while (s->entries[s->count - 1].own < own) s->count--;
}

/* The stack of an execution context; NULL: there is none. */
pw_shadow *pw_shadow_find(const VALUE *ec);
void pw_shadow_free(pw_shadow *s);
/* A call's node, where it is not among those seen last. The clock stands still meanwhile. */
pw_call_node *pw_shadow_find_node(pw_shadow *s, pw_call_node *from, VALUE a, VALUE b, uint8_t kind,
                                  const pw_call_site *site);
/* For those who come at any time: the last stack that ran gets its time, and is left if that was another thread's. */
void pw_trace_settle(uint64_t now);
/* The calling thread's or fiber's stack was not the last one that ran. NULL: nothing is traced here. */
pw_shadow *pw_shadow_switch(const pw_trace_arg *arg, uint64_t now);

#endif

#endif
