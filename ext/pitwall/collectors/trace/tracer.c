/* Time goes to the node on top of the running shadow stack, from one event to the next; totals are sums over subtrees, so no
 * entry needs the time of its call.
 *
 * Each entry knows where its control frame lies. Calls push frames at lower addresses, so an event tells by its own frame which
 * entries are gone: also those that left without an event (tail calls, contexts that were abandoned). A C function's frame is
 * not there yet when its call is told; it will lie below its caller's. Filtered calls have entries as well, with their
 * caller's node: else a return could be taken for another's. */
#include "collectors/trace/tracer.h"
#include "collectors/trace/calls.h"
#include "vm/stack_walk.h"
#include "collectors/trace/trace_filters.h"
#include "collectors/trace/trace_writer.h"
#include "output/drain.h"
#include "output/frame_names.h"
#include "output/intern.h"
#include "output/naming.h"
#include "sampling/registry.h"
#include "tools/buffer.h"
#include "tools/settings.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COLLECTIONS (RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_END_MARK | RUBY_INTERNAL_EVENT_GC_END_SWEEP | RUBY_INTERNAL_EVENT_GC_EXIT)

enum { GAP_NS = 20000, STACK_SLOTS = 1 << 12, OBJECTS_A_LOOK = 1024 };
enum { GC_AS_IS, GC_OFF, GC_DEFER };

typedef struct {
    const VALUE *own; /* its control frame */
    pw_call_node *node;
    VALUE a, b;       /* its key, also where that is filtered out */
} entry;

typedef struct pw_shadow {
    const VALUE *ec;
    VALUE thread;     /* only compared */
    pw_call_tree *tree;
    entry *entries;   /* the first is no call: the node is the root */
    uint32_t count, room;
    uint64_t paused;  /* when another began to run; 0: never ran */
    struct pw_shadow *next, *next_of_tree;
} shadow;

static struct {
    /* Read at every event. */
    const VALUE *ec;  /* NULL: find out */
    shadow *stack;    /* of `ec` */
    uint64_t last;    /* up to which time has been given away */
    uint64_t gap;     /* a longer pause makes the CPU clock be read */
    const VALUE *just_called;
    pw_tick_clock clock;

    bool running, armed, calibrating, paused;
    bool busy;        /* in the hook, where Ruby may run */
    bool in_gc, sweeping;
    VALUE own_thread; /* in it Pitwall itself calls methods; 0: none */
    shadow *own_stack;
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
    shadow *slots[STACK_SLOTS];
    ID start;
    VALUE native;
} T = {.statm = -1};

static pw_job gc_job;

static const char *
cannot(const char *why)
{
    static char text[160];
    snprintf(text, sizeof text, "cannot trace: %s", why);
    return text;
}

#if PW_LAYOUT_RUBY

/* ---- time ---- */

/* Of the thread, whichever native threads carried it. */
static int64_t
thread_cpu(void)
{
    pw_thread *t = pw_self();
    return t ? pw_thread_cpu(t) : pw_own_cpu_ns();
}

/* Is this tree the calling thread's? Jobs run in any. */
static bool
is_callers(const pw_call_tree *tree)
{
    const pw_thread *t = T.calibrating ? NULL : pw_self();
    return T.calibrating || (t && t->id == tree->thread_id);
}

static __attribute__((noinline)) uint64_t
read_cpu(pw_call_tree *tree, pw_call_node *node, uint64_t pause)
{
    pw_naming_trigger_if_wanted(); /* where nothing ticks, names are asked for here */
    if (!T.cpu || !is_callers(tree)) return T.last + pause; /* it has ended */
    int64_t cpu = thread_cpu();
    double ran = (double)(int64_t)(T.last - tree->cpu_tick) * T.tick_ns;
    double in_pause = (double)(cpu - tree->cpu_read) - T.cpu_read_ns - ran;
    node->off += (int64_t)pause - (int64_t)(in_pause / T.tick_ns);
    tree->cpu_read = cpu;
    return tree->cpu_tick = pw_ticks(&T.clock);
}

static inline void
charge(shadow *s, pw_call_node *node, uint64_t now)
{
    uint64_t pause = now - T.last;
    node->wall += pause;
    if (__builtin_expect(pause > T.gap, 0)) now = read_cpu(s->tree, node, pause);
    T.last = now;
}

static inline pw_call_node *top(const shadow *s) { return s->entries[s->count - 1].node; }

/* Another thread runs: how much of the pause this one computed will be known when it comes back. */
static void
leave(shadow *s, pw_call_node *node, uint64_t now)
{
    s->tree->ran = T.last - s->tree->cpu_tick;
    node->wall += now - T.last;
    node->off += (int64_t)(now - T.last);
    s->paused = T.last = now;
}

/* ---- stacks ---- */

static shadow **
slot_of(const VALUE *ec)
{
    return &T.slots[(uintptr_t)ec * 0x9e3779b97f4a7c15u >> 52];
}

static shadow *
find_stack(const VALUE *ec)
{
    shadow *s = *slot_of(ec);
    while (s && s->ec != ec) s = s->next;
    return s;
}

static void
push(shadow *s, const VALUE *own, pw_call_node *node, VALUE a, VALUE b)
{
    if (s->count == s->room) {
        entry *larger = pw_noted(realloc(s->entries, s->room * 2 * sizeof(entry)));
        if (!larger) return; /* entries are found by their frames: one that is missing is its caller's */
        s->entries = larger;
        s->room *= 2;
    }
    s->entries[s->count++] = (entry){own, node, a, b};
}

static void
leave_tree(shadow *s)
{
    for (shadow **at = &s->tree->stacks; *at; at = &(*at)->next_of_tree) {
        if (*at != s) continue;
        *at = s->next_of_tree;
        break;
    }
    if (s->tree->active == s) s->tree->active = NULL;
}

static void
join_tree(shadow *s, pw_call_tree *tree)
{
    s->thread = rb_thread_current();
    s->tree = tree;
    s->next_of_tree = tree->stacks;
    tree->stacks = s;
    s->paused = 0;
    s->count = 0;
    push(s, (const VALUE *)UINTPTR_MAX, &tree->root, 0, 0);
}

static void
free_stack(shadow *s)
{
    for (shadow **at = slot_of(s->ec); *at; at = &(*at)->next) {
        if (*at != s) continue;
        *at = s->next;
        break;
    }
    free(s->entries);
    free(s);
}

/* A call's node, where it is not among those seen last. The clock stands still meanwhile. */
static __attribute__((noinline)) pw_call_node *
find_node(shadow *s, pw_call_node *from, VALUE a, VALUE b, uint8_t kind, const pw_call_site *site)
{
    bool was_busy = T.busy;
    T.busy = true;
    pw_call_node *node = pw_call_child_slow(s->tree, from, a, b, kind, site);
    T.busy = was_busy;
    T.stack = s; /* another thread may have run while Ruby looked for a name */
    T.ec = s->ec;
    T.last = pw_ticks(&T.clock);
    return node;
}

static void
met(const VALUE *cfp, const pw_frame_seen *seen, void *data)
{
    shadow *s = data;
    bool ruby = cfp[PW_CFP_ISEQ] && seen->frame == cfp[PW_CFP_ISEQ];
    if (!ruby && !pw_frame_is_call_of_c((const VALUE *)cfp[PW_CFP_EP])) return; /* a block in C goes by its method's name */
    VALUE b = ruby ? 0 : PW_CALL_MET;
    pw_call_site site = {s->ec, cfp, seen->owner};
    pw_call_node *from = top(s), *node = pw_call_child(from, seen->frame, b);
    if (!node) node = find_node(s, from, seen->frame, b, ruby ? PW_CALL_RUBY : PW_CALL_C, &site);
    push(s, cfp, node ? node : from, seen->frame, b);
}

static void
tree_with(pw_call_tree *tree, void *data)
{
    struct { uint32_t id; pw_call_tree *found; } *wanted = data;
    if (tree->thread_id == wanted->id && !tree->ended) wanted->found = tree;
}

static pw_call_tree *
tree_of(uint32_t thread_id)
{
    struct { uint32_t id; pw_call_tree *found; } wanted = {thread_id, NULL};
    pw_call_trees_each(tree_with, &wanted);
    return wanted.found ? wanted.found : pw_noted(pw_call_tree_new(thread_id));
}

/* The calling thread's number in the recording; 0: it has none any more, or there was no room. */
static uint32_t
own_id(void)
{
    if (T.calibrating) return 1;
    pw_thread *t = pw_self();
    VALUE thread = rb_thread_current();
    if (t && t->thread == thread) return t->id;
    if (pw_tls.ended == pw_session_generation() && pw_tls.ended_thread == thread) return 0;
    t = pw_register_thread(thread, pw_gettid(), true);
    return t ? t->id : 0;
}

/* Entries that are gone when a frame lies at `own`. */
static inline void
trim(shadow *s, const VALUE *own)
{
    while (s->entries[s->count - 1].own < own) s->count--;
}

/* For those who come at any time: the last that ran gets its time, and is left if that was another thread's. */
static void
settle(uint64_t now)
{
    if (is_callers(T.stack->tree)) charge(T.stack, top(T.stack), now);
    else {
        leave(T.stack, top(T.stack), now);
        T.ec = NULL;
        T.stack = NULL;
    }
}

/* The calling thread's or fiber's stack was not the last one that ran. */
static __attribute__((noinline)) shadow *
switch_to(const pw_trace_arg *arg, uint64_t now)
{
    if (T.paused || !T.running || (T.own_thread && T.own_thread == rb_thread_current())) return NULL;
    if (!T.armed) {
        /* What starts the recording is not what is recorded. */
        if (arg->event != RUBY_EVENT_C_RETURN || arg->id != T.start || arg->self != T.native) return NULL;
        T.armed = true;
        T.last = now;
    }
    shadow *s = find_stack(arg->ec), *before = T.stack;
    /* One that ends without a call may have the context of one of whose end 3.1 did not tell. */
    if (arg->event == RUBY_EVENT_THREAD_END && (!s || s->thread != rb_thread_current())) return NULL;
    uint32_t id = arg->event == RUBY_EVENT_THREAD_END ? s->tree->thread_id : own_id();
    T.ec = NULL;
    T.stack = NULL;
    if (before) {
        if (before->tree->thread_id == id) charge(before, top(before), now);
        else leave(before, top(before), now);
        before->paused = now;
    }
    if (!id) return NULL;
    pw_call_tree *tree = !s || s->tree->thread_id != id ? tree_of(id) : s->tree;
    if (!tree) return NULL;
    if (s && s->tree != tree) { /* its memory serves another thread now */
        leave_tree(s);
        join_tree(s, tree);
        pw_walk_frames(s->ec, arg->event & (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL | RUBY_EVENT_CLASS) ? arg->cfp + PW_CFP_WORDS : arg->cfp, met, s);
    }
    if (!s) {
        if (!(s = pw_noted(calloc(1, sizeof *s)))) return NULL;
        s->ec = arg->ec;
        s->room = 16;
        if (!(s->entries = pw_noted(malloc(s->room * sizeof(entry))))) {
            free(s);
            return NULL;
        }
        s->next = *slot_of(s->ec);
        *slot_of(s->ec) = s;
        join_tree(s, tree);
        pw_walk_frames(s->ec, arg->event & (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL | RUBY_EVENT_CLASS) ? arg->cfp + PW_CFP_WORDS : arg->cfp, met, s);
    }
    /* Of an abandoned fiber whose memory serves another, nothing is waited for. */
    if (arg->event & (PW_TRACE_CALLS & ~RUBY_EVENT_C_CALL)) trim(s, arg->cfp + 1);
    else trim(s, arg->event & RUBY_EVENT_C_RETURN ? arg->cfp - PW_CFP_WORDS : arg->cfp);
    if (s->paused && now > s->paused && s->count > 1) top(s)->wait += now - s->paused;
    T.ec = s->ec;
    T.stack = s;
    T.last = pw_ticks(&T.clock);
    s->tree->active = s;
    if (T.cpu && (!before || before->tree != s->tree)) {
        int64_t cpu = thread_cpu();
        if (s->tree->cpu_read) {
            double spent = (double)(cpu - s->tree->cpu_read) - T.cpu_read_ns - (double)s->tree->ran * T.tick_ns;
            if (spent > 0) top(s)->off -= (int64_t)(spent / T.tick_ns);
        }
        s->tree->cpu_read = cpu;
        T.last = s->tree->cpu_tick = pw_ticks(&T.clock);
    }
    return s;
}

/* ---- events ---- */

static inline void
enter(shadow *s, const pw_trace_arg *arg, const VALUE *own, VALUE a, VALUE b, uint8_t kind)
{
    pw_call_node *from = top(s), *node = pw_call_child(from, a, b);
    if (__builtin_expect(!node, 0)) {
        pw_call_site site = {arg->ec, arg->cfp, 0};
        node = find_node(s, from, a, b, kind, &site);
        if (!node) node = from; /* no room: counted as lost */
        else if (node == from) from->hidden++;
        else node->calls++;
    }
    else if (node == from) from->hidden++;
    else node->calls++;
    push(s, own, node, a, b);
}

static inline void
enter_ruby(shadow *s, const pw_trace_arg *arg, uint8_t kind)
{
    const VALUE *own = arg->cfp;
    VALUE iseq = own[PW_CFP_ISEQ];
    trim(s, own);
    if (s->entries[s->count - 1].own == own) {
        /* A block that is a method is told twice; else the frame took another's place. */
        if (kind == PW_CALL_BLOCK && T.just_called == own && s->entries[s->count - 1].a == iseq) {
            T.just_called = NULL;
            return;
        }
        s->count--;
    }
    enter(s, arg, own, iseq, 0, kind);
}

static inline void
leave_ruby(shadow *s, const VALUE *own)
{
    trim(s, own);
    const entry *e = &s->entries[s->count - 1];
    if (e->own == own) s->count--;
}

static inline bool
is_of(const entry *e, const pw_trace_arg *arg)
{
    if (e->b != PW_CALL_MET) return e->a == arg->klass && e->b == arg->id;
    const VALUE *words = (const VALUE *)e->a;
    return words[PW_ME_OWNER] == arg->klass && words[PW_ME_CALLED_ID] == arg->called_id;
}

/* Told when the frame was popped; while an exception unwinds, before that. */
static inline void
leave_c(shadow *s, const pw_trace_arg *arg)
{
    const VALUE *own = arg->cfp - PW_CFP_WORDS;
    trim(s, own);
    const entry *e = &s->entries[s->count - 1];
    if (e->own == own) {
        if (is_of(e, arg)) {
            s->count--;
            return;
        }
        e--;
        if (e->own == arg->cfp && e->b && is_of(e, arg)) s->count -= 2;
        return;
    }
    if (e->own == arg->cfp && e->b && is_of(e, arg)) s->count--;
}

/* Array#each and its like are written in Ruby from 3.4 on, and told as C functions: from within their frame. */
static bool
tells_of_itself(const pw_trace_arg *arg)
{
    const VALUE *words = arg->cfp[PW_CFP_ISEQ] ? (const VALUE *)pw_walk_owner(arg->ec, arg->cfp) : NULL;
    return words && words[PW_ME_OWNER] == arg->klass && words[PW_ME_CALLED_ID] == arg->called_id;
}

static void
end_thread(shadow *s)
{
    pw_call_tree *tree = s->tree;
    if (T.own_stack && T.own_stack->tree == tree) T.own_stack = NULL;
    for (shadow *one = tree->stacks, *next; one; one = next) {
        next = one->next_of_tree;
        free_stack(one);
    }
    tree->stacks = tree->active = NULL;
    T.ec = NULL;
    T.stack = NULL;
    __atomic_store_n(&tree->ended, true, __ATOMIC_RELEASE);
}

static void
on_event(VALUE unused, const pw_trace_arg *arg)
{
    uint64_t now = pw_ticks(&T.clock);
    shadow *s = T.stack;
    if (__builtin_expect(arg->ec != T.ec, 0)) {
        if (!(s = switch_to(arg, now))) return;
    }
    else charge(s, top(s), now);
    switch (arg->event) {
      case RUBY_EVENT_CALL:
        enter_ruby(s, arg, PW_CALL_RUBY);
        T.just_called = arg->cfp;
        break;
      case RUBY_EVENT_CLASS: enter_ruby(s, arg, PW_CALL_RUBY); break;
      case RUBY_EVENT_B_CALL: enter_ruby(s, arg, PW_CALL_BLOCK); break;
      case RUBY_EVENT_C_CALL: {
        const VALUE *own = arg->cfp - PW_CFP_WORDS;
        trim(s, arg->cfp);
        if (PW_TOLD_AS_C && s->entries[s->count - 1].own != arg->cfp && tells_of_itself(arg)) own = arg->cfp;
        enter(s, arg, own, arg->klass, arg->id, PW_CALL_C);
        break;
      }
      case RUBY_EVENT_RETURN:
      case RUBY_EVENT_END:
      case RUBY_EVENT_B_RETURN: leave_ruby(s, arg->cfp); break;
      case RUBY_EVENT_C_RETURN: leave_c(s, arg); break;
      case RUBY_EVENT_THREAD_END: end_thread(s); break;
    }
}

static bool
over_memory(void)
{
    char text[128];
    unsigned long pages = 0;
    ssize_t n = T.statm < 0 ? -1 : pread(T.statm, text, sizeof text - 1, 0);
    if (n <= 0) return false;
    text[n] = '\0';
    return sscanf(text, "%*u %lu", &pages) == 1 && pages * (uint64_t)sysconf(_SC_PAGESIZE) > T.gc_memory;
}

static void
on_object(const pw_trace_arg *arg)
{
    if (T.busy || !T.armed) return;
    if (arg->ec != T.ec && !pw_in_main_ractor()) return; /* from 4.0 on other Ractors' objects are told as well, and they don't wait */
    shadow *s = arg->ec == T.ec ? T.stack : find_stack(arg->ec);
    if (s) {
        pw_call_node *node = top(s);
        node->objects++;
        if (T.bytes) node->bytes += pw_slot_bytes(arg->data);
    }
    if (T.gc != GC_AS_IS && ++T.since_look >= OBJECTS_A_LOOK) {
        T.since_look = 0;
        if (!atomic_load(&T.gc_due) && over_memory()) {
            atomic_store(&T.gc_due, true);
            pw_job_trigger(&gc_job);
        }
    }
}

static void
charge_collection(uint64_t now)
{
    shadow *s = T.stack;
    VALUE frame = T.sweeping ? PW_FRAME_SWEEPING : PW_FRAME_MARKING;
    pw_call_node *from = top(s), *node = pw_call_child(from, frame, 0);
    if (!node) {
        uint64_t last = T.last;
        node = find_node(s, from, frame, 0, PW_CALL_OTHER, NULL);
        T.last = last;
    }
    charge(s, node ? node : from, now);
}

static void
on_collection(const pw_trace_arg *arg)
{
    if (T.busy || !T.armed || arg->ec != T.ec || T.paused) return;
    uint64_t now = pw_ticks(&T.clock);
    if (arg->event == RUBY_INTERNAL_EVENT_GC_ENTER) {
        charge(T.stack, top(T.stack), now);
        T.in_gc = true;
        return;
    }
    if (T.in_gc) charge_collection(now);
    if (arg->event == RUBY_INTERNAL_EVENT_GC_END_MARK) T.sweeping = true;
    if (arg->event == RUBY_INTERNAL_EVENT_GC_END_SWEEP) T.sweeping = false;
    if (arg->event == RUBY_INTERNAL_EVENT_GC_EXIT) T.in_gc = false;
}

/* One for both: Ruby passes every hook at every event. It allows no hook to be told of these and of calls. */
static void
on_internal(VALUE unused, const pw_trace_arg *arg)
{
    if (arg->event == RUBY_INTERNAL_EVENT_NEWOBJ) on_object(arg);
    else on_collection(arg);
}

/* The bound of memory was met while collection was off. */
static void
collect_garbage(void *unused)
{
    if (!T.armed || !atomic_load(&T.gc_due)) return;
    T.gc_over++;
    if (T.gc == GC_OFF) {
        rb_gc_enable(); /* from here on as it comes; gc_due stays */
        return;
    }
    uint64_t began = pw_ticks(&T.clock);
    if (T.stack) settle(began);
    T.paused = true;
    rb_gc_enable();
    rb_gc_start();
    rb_gc_disable();
    T.paused = false;
    atomic_store(&T.gc_due, false);
    T.last = pw_ticks(&T.clock);
    /* The thread's clock went on, and so does what is taken for computed. */
    if (T.stack) T.stack->tree->cpu_read = thread_cpu(), T.stack->tree->cpu_tick = T.last;
}

/* ---- hooks ---- */

static void
add_hooks(rb_event_flag_t calls)
{
    bool objects = T.objects || T.bytes || T.gc != GC_AS_IS;
    pw_add_raw_hook(on_event, calls);
    pw_add_raw_hook(on_internal, COLLECTIONS | (objects ? RUBY_INTERNAL_EVENT_NEWOBJ : 0));
    T.internal = true;
}

static void
remove_hooks(void)
{
    pw_remove_raw_hook(on_event);
    pw_remove_raw_hook(on_internal);
    T.internal = false;
}

static void
forget(bool frees)
{
    for (int i = 0; i < STACK_SLOTS; i++) {
        for (shadow *s = T.slots[i], *next; s; s = next) {
            next = s->next;
            if (frees) free(s->entries), free(s);
        }
        T.slots[i] = NULL;
    }
    T.ec = NULL;
    T.stack = NULL;
    pw_calls_free(frees);
}

/* ---- start and stop ---- */

static VALUE
read_settings(VALUE settings)
{
    VALUE gc = pw_setting(settings, "gc");
    T.cpu = pw_setting_is_on(settings, "cpu", true);
    T.objects = pw_setting_is_on(settings, "objects", true);
    T.bytes = pw_setting_is_on(settings, "bytes", false);
    T.gc = NIL_P(gc) ? GC_AS_IS : strcmp(StringValueCStr(gc), "off") == 0 ? GC_OFF : strcmp(StringValueCStr(gc), "defer") == 0 ? GC_DEFER : GC_AS_IS;
    T.gc_memory = pw_setting_number(settings, "gc_memory", (uint64_t)1 << 30);
    pw_call_rules_now = pw_trace_filters_read(settings);
    return Qnil;
}

static double
cost_of_reading_cpu(void)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 20; i++) {
        int64_t a = pw_own_cpu_ns(), b = pw_own_cpu_ns();
        if (b - a < least) least = b - a;
    }
    return (double)least;
}

static void
begin_calibrating(void)
{
    T.calibrating = T.running = T.armed = true;
    T.last = pw_ticks(&T.clock);
    add_hooks(PW_TRACE_CALLS | PW_TRACE_RETURNS);
}

static void
end_calibrating(void)
{
    remove_hooks();
    T.calibrating = T.running = T.armed = false;
}

static const char *
start(VALUE settings)
{
    if (pw_walk_refusal()) return cannot(pw_walk_refusal());
    int error = 0;
    VALUE saved = rb_errinfo();
    rb_protect(read_settings, settings, &error);
    VALUE module = error ? Qnil : rb_protect(pw_trace_lesson, Qnil, &error);
    if (error) {
        rb_set_errinfo(saved);
        return "cannot trace: the settings could not be read, or the lesson not be given";
    }
    if (!pw_trace_is_proven(module)) {
        return "cannot trace: this Ruby tells of calls in another way than expected (or a TracePoint's block started this)";
    }
    pw_call_rules rules = pw_call_rules_now;
    pw_call_rules_now = (pw_call_rules){.max_nodes = 10000};
    pw_tick_clock_start(&T.clock);
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL); /* long enough to know a tick to some millionths */
    T.tick_ns = pw_tick_clock_tick_ns(&T.clock);
    T.gap = UINT64_MAX;
    T.busy = T.paused = T.in_gc = T.sweeping = false;
    T.gc_over = T.since_look = 0;
    atomic_store(&T.gc_due, false);
    T.cpu_read_ns = cost_of_reading_cpu();
    static const pw_traced traced = {begin_calibrating, end_calibrating};
    bool calibrated = pw_trace_calibrate(module, &T.clock, &traced, T.probes);
    forget(true);
    pw_call_rules_now = rules;
    if (!calibrated) return "cannot trace: the cost of the probes could not be measured";
    T.gap = (uint64_t)(GAP_NS / T.tick_ns);
    T.gc_was_off = false;
    if (T.gc != GC_AS_IS) {
        T.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        T.gc_was_off = RTEST(rb_gc_disable());
    }
    T.running = true;
    add_hooks(PW_TRACE_CALLS | PW_TRACE_RETURNS | RUBY_EVENT_THREAD_END);
    RB_GC_GUARD(module);
    return NULL;
}

static void
close_tree(pw_call_tree *tree, void *now)
{
    pw_trace_number(tree); /* while there is time for names */
    shadow *s = tree->active;
    if (s && s != T.stack && s->paused && s->count > 1) top(s)->wait += *(uint64_t *)now - s->paused;
}

static void
stop(void)
{
    if (!T.running) return;
    remove_hooks();
    uint64_t now = pw_ticks(&T.clock);
    if (T.armed) {
        if (T.stack) settle(now);
        pthread_mutex_lock(&pw_current.lock);
        pw_drain_keep_tables();
        pw_call_trees_each(close_tree, &now);
        pthread_mutex_unlock(&pw_current.lock);
    }
    T.running = T.armed = false;
    T.ec = NULL;
    T.stack = T.own_stack = NULL;
    if (T.gc != GC_AS_IS && !T.gc_was_off) rb_gc_enable();
    if (T.statm >= 0) close(T.statm);
    T.statm = -1;
}

static void
write_calls(bool last)
{
    (void)last;
    static const char *const gc[] = {"as-is", "off", "defer"};
    pw_trace_facts facts = {&T.clock, T.probes, T.cpu, T.objects, T.bytes, gc[T.gc], T.gc_over};
    pw_trace_write(&facts);
}

static void
mark_key(const pw_call_key *key)
{
    if (key->a && !RB_SPECIAL_CONST_P(key->a)) rb_gc_mark(key->a);
    if (key->owner) rb_gc_mark(key->owner);
}

static void mark(void) { pw_call_keys_each(mark_key); }

static void
leave_gc(void)
{
    if (!T.internal) return;
    pw_remove_raw_hook(on_internal);
    T.internal = T.in_gc = false;
}

static void
begin_own(void)
{
    if (!T.armed || T.own_thread) return;
    T.own_thread = rb_thread_current();
    if (T.stack) settle(pw_ticks(&T.clock));
    if ((T.own_stack = T.stack)) {
        T.stack->tree->ran = T.last - T.stack->tree->cpu_tick;
        T.stack->paused = T.last;
    }
    T.ec = NULL;
    T.stack = NULL;
}

static void
end_own(void)
{
    if (!T.own_thread) return;
    T.own_thread = 0;
    if (!T.armed || T.stack) return; /* others ran meanwhile, or it was stopped */
    if ((T.stack = T.own_stack)) T.ec = T.stack->ec;
    T.last = pw_ticks(&T.clock);
}

#else /* unknown layout */

static void begin_own(void) {}
static void end_own(void) {}

static const char *start(VALUE settings) { return cannot(pw_walk_refusal()); }
static void stop(void) {}
static void write_calls(bool last) {}
static void mark(void) {}
static void forget(bool frees) {}
static void collect_garbage(void *unused) {}
static void leave_gc(void) {}

#endif

/* For names of C functions that have no method entry. */
static bool
find_called(VALUE frame, VALUE *klass, ID *name)
{
    const pw_call_key *key = pw_call_key_of_frame(frame);
    if (!key) return false;
    *klass = key->a;
    *name = (ID)key->b;
    return true;
}

static void
init(VALUE native)
{
    T.native = native;
    T.start = rb_intern("start");
    pw_trace_filters_init(native);
    pw_frame_names_of_calls(find_called);
    if (!pw_job_init(&gc_job, collect_garbage)) rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
}

const pw_module pw_tracer = {
    .name = "trace", .init = init, .start = start, .stop = stop, .forget = forget, .write = write_calls, .mark = mark,
    .leave_gc = leave_gc, .own_begin = begin_own, .own_end = end_own};
