/* Time goes to the node on top of the running shadow stack, from one event to the next; totals are sums over subtrees, so no
 * entry needs the time of its call.
 *
 * Each entry knows where its control frame lies. Calls push frames at lower addresses, so an event tells by its own frame which
 * entries are gone: also those that left without an event (tail calls, contexts that were abandoned). A C function's frame is
 * not there yet when its call is told; it will lie below its caller's. Filtered calls have entries as well, with their
 * caller's node: else a return could be taken for another's. */
#include "tracer.h"
#include "calls.h"
#include "capture.h"
#include "record_writer.h"
#include "sampler.h"
#include "stack_walk.h"
#include "trace_clock.h"
#include "vm_layout.h"
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#undef snprintf /* Ruby's own may allocate objects, and the drain has no GVL */

#define CALLS (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL | RUBY_EVENT_CLASS | RUBY_EVENT_C_CALL)
#define RETURNS (RUBY_EVENT_RETURN | RUBY_EVENT_B_RETURN | RUBY_EVENT_END | RUBY_EVENT_C_RETURN)
#define COLLECTIONS (RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_END_MARK | RUBY_INTERNAL_EVENT_GC_END_SWEEP | RUBY_INTERNAL_EVENT_GC_EXIT)

enum { GAP_NS = 20000, STACK_SLOTS = 1 << 12, ROWS_A_CHUNK = 1 << 16, OBJECTS_A_LOOK = 1024 };
enum { GC_AS_IS, GC_OFF, GC_DEFER };

typedef struct {
    const VALUE *own; /* its control frame */
    pw_call_node *node;
    VALUE a, b;       /* its key, also where that is filtered out */
} entry;

typedef struct pw_shadow {
    const VALUE *ec;
    pw_call_tree *tree;
    entry *entries;   /* the first is no call: the node is the root */
    uint32_t count, room;
    uint64_t paused;  /* when another began to run; 0: never ran */
    struct pw_shadow *next, *next_of_tree;
} shadow;

/* What a call's probe costs, in ticks: what of it the call's own time contains, and what its caller's. */
typedef struct { double inside, outside, error; } probe;

static struct {
    /* Read at every event. */
    const VALUE *ec;  /* NULL: find out */
    shadow *stack;    /* of `ec` */
    uint64_t last;    /* up to which time has been given away */
    uint64_t gap;     /* a longer pause makes the CPU clock be read */
    const VALUE *just_called;
    pw_trace_clock clock;

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
    probe probes[PW_CALL_KINDS];
    shadow *slots[STACK_SLOTS];
    ID start;
    VALUE native;
    char home[4096];
    VALUE filters;    /* [paths, classes, methods] or nil */
} T = {.statm = -1};

static pw_job gc_job;
static VALUE filters_holder;

#if PW_LAYOUT_RUBY

/* ---- time ---- */

static __attribute__((noinline)) uint64_t
read_cpu(pw_call_tree *tree, pw_call_node *node, uint64_t pause)
{
    pw_resolve_if_wanted(); /* where nothing ticks, names are asked for here */
    if (!T.cpu) return T.last + pause;
    int64_t cpu = pw_own_cpu_ns();
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
    if (s->count == s->room) s->entries = pw_must(realloc(s->entries, (s->room *= 2) * sizeof(entry)));
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

typedef struct { const VALUE *ec, *cfp; VALUE owner; } call_site;

/* A call's node, where it is not among those seen last. The clock stands still meanwhile. */
static __attribute__((noinline)) pw_call_node *
find_node(shadow *s, pw_call_node *from, VALUE a, VALUE b, uint8_t kind, const call_site *site)
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
    call_site site = {s->ec, cfp, seen->owner};
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
    return wanted.found ? wanted.found : pw_must(pw_call_tree_new(thread_id));
}

/* The calling thread's number in the recording; 0: it has none any more, or there was no room. */
static uint32_t
own_id(void)
{
    if (T.calibrating) return 1;
    pw_thread *t = pw_self();
    VALUE thread = rb_thread_current();
    if (t && t->thread == thread) return t->id;
    if (pw_tls.ended == pw_session_generation()) return 0;
    t = pw_register_thread(thread, pw_gettid(), true);
    return t ? t->id : 0;
}

/* Entries that are gone when a frame lies at `own`. */
static inline void
trim(shadow *s, const VALUE *own)
{
    while (s->entries[s->count - 1].own < own) s->count--;
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
    if (arg->event == RUBY_EVENT_THREAD_END && !s) return NULL;
    uint32_t id = arg->event == RUBY_EVENT_THREAD_END ? s->tree->thread_id : own_id();
    T.ec = NULL;
    T.stack = NULL;
    if (before) {
        if (before->tree->thread_id == id) charge(before, top(before), now);
        else {
            /* How much of it the other computed will be known when it comes back. */
            before->tree->ran = T.last - before->tree->cpu_tick;
            top(before)->wall += now - T.last;
            top(before)->off += (int64_t)(now - T.last);
        }
        before->paused = now;
    }
    if (!id) return NULL;
    if (s && s->tree->thread_id != id) { /* its memory serves another thread now */
        leave_tree(s);
        join_tree(s, tree_of(id));
        pw_walk_frames(s->ec, arg->event & (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL | RUBY_EVENT_CLASS) ? arg->cfp + PW_CFP_WORDS : arg->cfp, met, s);
    }
    if (!s) {
        s = pw_must(calloc(1, sizeof *s));
        s->ec = arg->ec;
        s->room = 16;
        s->entries = pw_must(malloc(s->room * sizeof(entry)));
        s->next = *slot_of(s->ec);
        *slot_of(s->ec) = s;
        join_tree(s, tree_of(id));
        pw_walk_frames(s->ec, arg->event & (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL | RUBY_EVENT_CLASS) ? arg->cfp + PW_CFP_WORDS : arg->cfp, met, s);
    }
    /* Of an abandoned fiber whose memory serves another, nothing is waited for. */
    if (arg->event & (CALLS & ~RUBY_EVENT_C_CALL)) trim(s, arg->cfp + 1);
    else trim(s, arg->event & RUBY_EVENT_C_RETURN ? arg->cfp - PW_CFP_WORDS : arg->cfp);
    if (s->paused && now > s->paused && s->count > 1) top(s)->wait += now - s->paused;
    T.ec = s->ec;
    T.stack = s;
    T.last = pw_ticks(&T.clock);
    s->tree->active = s;
    if (T.cpu && (!before || before->tree != s->tree)) {
        pw_call_tree *tree = s->tree;
        int64_t cpu = pw_own_cpu_ns();
        if (tree->cpu_read) {
            double spent = (double)(cpu - tree->cpu_read) - T.cpu_read_ns - (double)tree->ran * T.tick_ns;
            if (spent > 0) top(s)->off -= (int64_t)(spent / T.tick_ns);
        }
        tree->cpu_read = cpu;
        T.last = tree->cpu_tick = pw_ticks(&T.clock);
    }
    return s;
}

/* ---- events ---- */

static inline void
enter(shadow *s, const pw_trace_arg *arg, const VALUE *own, VALUE a, VALUE b, uint8_t kind)
{
    pw_call_node *from = top(s), *node = pw_call_child(from, a, b);
    if (__builtin_expect(!node, 0)) {
        call_site site = {arg->ec, arg->cfp, 0};
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
on_object(VALUE unused, const pw_trace_arg *arg)
{
    if (T.busy || !T.armed) return;
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
on_collection(VALUE unused, const pw_trace_arg *arg)
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
    if (T.stack) charge(T.stack, top(T.stack), began);
    T.paused = true;
    rb_gc_enable();
    rb_gc_start();
    rb_gc_disable();
    T.paused = false;
    atomic_store(&T.gc_due, false);
    T.last = pw_ticks(&T.clock);
    /* The thread's clock went on, and so does what is taken for computed. */
    if (T.stack) T.stack->tree->cpu_read = pw_own_cpu_ns(), T.stack->tree->cpu_tick = T.last;
}

/* ---- filters ---- */

static bool
among(VALUE list, bool (*fits)(const char *pattern, const char *text), const char *text)
{
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        VALUE pattern = rb_ary_entry(list, i);
        if (fits(RSTRING_PTR(pattern), text)) return true;
    }
    return false;
}

static bool glob_fits(const char *pattern, const char *path) { return fnmatch(pattern, path, 0) == 0; }
static bool same(const char *pattern, const char *text) { return strcmp(pattern, text) == 0; }

/* `name` begins with the class: "Shop::Cart#sum" is of Shop::Cart and of Shop. */
static bool
class_fits(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    return strncmp(pattern, name, n) == 0 && (name[n] == '#' || name[n] == '.' || strncmp(name + n, "::", 2) == 0);
}

static const char *
without_block(const char *name)
{
    const char *from = name;
    if (strncmp(name, "block ", 6) != 0) return name;
    for (const char *at; (at = strstr(from, " in ")) != NULL;) from = at + 4;
    return from;
}

static void
decide(pw_call_key *key, const void *context)
{
    const call_site *site = context;
    if (key->kind == PW_CALL_OTHER) return;
    bool ruby = key->b == 0;
    const char *path = "";
    if (ruby) {
        key->owner = site->owner ? site->owner : pw_walk_owner(site->ec, site->cfp);
        VALUE file = rb_profile_frame_absolute_path(key->a);
        if (!RB_TYPE_P(file, T_STRING)) file = rb_profile_frame_path(key->a);
        if (RB_TYPE_P(file, T_STRING)) path = RSTRING_PTR(file); /* must not raise here */
        size_t home = strlen(T.home);
        if (home && strncmp(path, T.home, home) == 0 && (path[home] == '/' || strcmp(path + home, ".rb") == 0)) key->hidden = true;
    }
    else if (key->b != PW_CALL_MET && key->a == rb_singleton_class(T.native)) key->hidden = true;
    if (NIL_P(T.filters) || key->hidden) return;
    VALUE paths = rb_ary_entry(T.filters, 0), classes = rb_ary_entry(T.filters, 1), methods = rb_ary_entry(T.filters, 2);
    if (ruby && RARRAY_LEN(paths) && !among(paths, glob_fits, path)) key->hidden = true;
    if (!RARRAY_LEN(classes) && !RARRAY_LEN(methods)) return;
    VALUE name = pw_frame_name(key->frame, key->owner);
    if (NIL_P(name)) return;
    const char *text = RSTRING_PTR(name);
    if (RARRAY_LEN(classes) && !among(classes, class_fits, without_block(text))) key->hidden = true;
    if (RARRAY_LEN(methods) && among(methods, same, text)) key->opens = true;
    RB_GC_GUARD(name);
}

/* ---- proof and calibration ---- */

typedef void (*raw_hook)(VALUE, const pw_trace_arg *);

/* With RAW_ARG, Ruby calls it by its own type. */
static rb_event_hook_func_t ruby_hook(raw_hook hook) { return (rb_event_hook_func_t)(void (*)(void))hook; }

static void
add_hook(raw_hook hook, rb_event_flag_t events)
{
    rb_add_event_hook2(ruby_hook(hook), events, Qnil, RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG);
}

static void remove_hook(raw_hook hook) { rb_remove_event_hook(ruby_hook(hook)); }

static const char lesson[] =
    "def self.callee; end\n"
    "def self.none(n)\n  i = 0\n  while i < n\n    i += 1\n  end\nend\n"
    "def self.ruby(n)\n  i = 0\n  while i < n\n    callee\n    i += 1\n  end\nend\n"
    "def self.yielding(n)\n  i = 0\n  while i < n\n    yield\n    i += 1\n  end\nend\n"
    "def self.block(n) = yielding(n) {}\n"
    "def self.c(n)\n  i = 0\n  text = ''\n  while i < n\n    text.ascii_only?\n    i += 1\n  end\nend\n"
    "self\n";
static const char *const lessons[] = {"ruby", "block", "c", "none"};
enum { LESSONS = 4, TURNS = 25, CALLS_A_TURN = 400 };

static struct { int good, bad; } proof;

static void
prove_event(VALUE unused, const pw_trace_arg *arg)
{
    rb_trace_arg_t *public = (rb_trace_arg_t *)arg;
    bool c = arg->event & (RUBY_EVENT_C_CALL | RUBY_EVENT_C_RETURN);
    bool right = rb_tracearg_event_flag(public) == arg->event && rb_tracearg_self(public) == arg->self &&
                 arg->ec && arg->ec[PW_EC_CFP] == (VALUE)arg->cfp;
    if (right && arg->event & (RUBY_EVENT_CALL | RUBY_EVENT_RETURN | RUBY_EVENT_C_CALL | RUBY_EVENT_C_RETURN)) {
        right = rb_tracearg_method_id(public) == ID2SYM(arg->id) && rb_tracearg_callee_id(public) == ID2SYM(arg->called_id) &&
                rb_tracearg_defined_class(public) == arg->klass;
    }
    if (right && !c) {
        VALUE iseq = arg->cfp[PW_CFP_ISEQ];
        right = pw_frame_valid(iseq) && rb_str_equal(rb_profile_frame_path(iseq), rb_tracearg_path(public)) == Qtrue;
    }
    right ? proof.good++ : proof.bad++;
}

typedef struct { VALUE module; int which; long calls; } exercise;

static VALUE
take(VALUE argument)
{
    const exercise *e = (const exercise *)argument;
    return rb_funcall(e->module, rb_intern(lessons[e->which]), 1, LONG2FIX(e->calls));
}

static VALUE
make_lesson(VALUE unused)
{
    return rb_funcall(rb_module_new(), rb_intern("module_eval"), 1, rb_str_new_cstr(lesson));
}

static bool
exercised(VALUE module, int which, long calls)
{
    int error = 0;
    exercise e = {module, which, calls};
    rb_protect(take, (VALUE)&e, &error);
    return !error;
}

/* The last to appear of a lesson is what it calls, or itself; operators are C functions too. */
typedef struct { int which; pw_call_node *found; } newest;

static void
find_newest(pw_call_tree *tree, pw_call_node *node, void *data)
{
    (void)tree;
    newest *n = data;
    if (!node->parent) return;
    bool fits = n->which == PW_CALL_C ? node->b == rb_intern("ascii_only?") : node->key->kind == (n->which == PW_CALL_BLOCK ? PW_CALL_BLOCK : PW_CALL_RUBY);
    if (fits) n->found = node;
}

static double
ticks_of(VALUE module, int which)
{
    uint64_t from = pw_ticks(&T.clock);
    exercised(module, which, CALLS_A_TURN);
    return (double)(pw_ticks(&T.clock) - from) / CALLS_A_TURN;
}

static double
lesser(double a, double b)
{
    return a < b ? a : b;
}

static void
time_plain(VALUE module, double *plain)
{
    for (int which = 0; which < LESSONS; which++) {
        plain[which] = ticks_of(module, which);
        for (int turn = 1; turn < TURNS; turn++) plain[which] = lesser(plain[which], ticks_of(module, which));
    }
}

static void
add_hooks(rb_event_flag_t calls)
{
    add_hook(on_event, calls);
    if (T.objects || T.bytes || T.gc != GC_AS_IS) {
        add_hook(on_object, RUBY_INTERNAL_EVENT_NEWOBJ);
    }
    add_hook(on_collection, COLLECTIONS);
    T.internal = true;
}

static void
remove_hooks(void)
{
    remove_hook(on_event);
    remove_hook(on_object);
    remove_hook(on_collection);
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

/* What a pair of call and return costs: the least of several turns, each measured as the tracer itself measures. The call's own
 * cost without a tracer stays with the one called. */
static bool
calibrate(VALUE module)
{
    double pairs[PW_CALL_KINDS], plain[LESSONS], inside[LESSONS][TURNS] = {{0}}, loop[LESSONS][TURNS] = {{0}};
    int64_t cost = INT64_MAX;
    for (int i = 0; i < 20; i++) {
        int64_t a = pw_own_cpu_ns(), b = pw_own_cpu_ns();
        if (b - a < cost) cost = b - a;
    }
    T.cpu_read_ns = (double)cost;
    time_plain(module, plain);
    for (int which = 0; which < PW_CALL_KINDS; which++) pairs[which] = plain[which] - plain[LESSONS - 1];
    T.calibrating = T.running = T.armed = true;
    T.last = pw_ticks(&T.clock);
    add_hooks(CALLS | RETURNS);
    for (int which = 0; which < LESSONS; which++) {
        exercised(module, which, 1);
        newest found = {which, NULL};
        if (T.stack) pw_call_nodes_each(T.stack->tree, find_newest, &found);
        pw_call_node *leaf = found.found;
        if (!leaf || !leaf->parent) return remove_hooks(), false;
        pw_call_node *outer = which == LESSONS - 1 ? leaf : leaf->parent;
        for (int turn = 0; turn < TURNS; turn++) {
            uint64_t leaf_before = leaf->wall, outer_before = outer->wall;
            exercised(module, which, CALLS_A_TURN);
            inside[which][turn] = (double)(leaf->wall - leaf_before) / CALLS_A_TURN;
            loop[which][turn] = (double)(outer->wall - outer_before) / CALLS_A_TURN;
        }
        for (int turn = 1; turn < TURNS; turn++) {
            inside[which][0] = lesser(inside[which][0], inside[which][turn]);
            loop[which][0] = lesser(loop[which][0], loop[which][turn]);
        }
    }
    remove_hooks();
    time_plain(module, plain); /* a busy machine may have been slower before */
    for (int which = 0; which < PW_CALL_KINDS; which++) {
        double pair = lesser(pairs[which], plain[which] - plain[LESSONS - 1]);
        probe *p = &T.probes[which];
        p->inside = inside[which][0] - (pair > 0 ? pair : 0);
        p->outside = loop[which][0] - loop[LESSONS - 1][0];
        if (p->inside < 0) p->inside = 0;
        if (p->outside < 0) p->outside = 0;
        /* How far apart single turns lie says how well it is known. */
        p->error = 0;
        for (int turn = 1; turn < 4; turn++) p->error += (inside[which][turn] - inside[which][0]) / 3;
    }
    return true;
}

/* ---- start and stop ---- */

static VALUE
setting(VALUE settings, const char *name)
{
    VALUE value = rb_hash_lookup(settings, rb_str_new_cstr(name));
    return RB_TYPE_P(value, T_STRING) ? value : Qnil;
}

static bool
is_on(VALUE settings, const char *name, bool otherwise)
{
    VALUE value = setting(settings, name);
    return NIL_P(value) ? otherwise : strcmp(StringValueCStr(value), "1") == 0;
}

static uint64_t
number(VALUE settings, const char *name, uint64_t otherwise)
{
    VALUE value = setting(settings, name);
    return NIL_P(value) ? otherwise : strtoull(StringValueCStr(value), NULL, 10);
}

static VALUE
words(VALUE settings, const char *name)
{
    VALUE value = setting(settings, name);
    return NIL_P(value) ? rb_ary_new() : rb_str_split(value, "\n");
}

static VALUE
read_settings(VALUE settings)
{
    VALUE gc = setting(settings, "gc"), home = setting(settings, "home");
    T.cpu = is_on(settings, "cpu", true);
    T.objects = is_on(settings, "objects", true);
    T.bytes = is_on(settings, "bytes", false);
    T.gc = NIL_P(gc) ? GC_AS_IS : strcmp(StringValueCStr(gc), "off") == 0 ? GC_OFF : strcmp(StringValueCStr(gc), "defer") == 0 ? GC_DEFER : GC_AS_IS;
    T.gc_memory = number(settings, "gc_memory", (uint64_t)1 << 30);
    snprintf(T.home, sizeof T.home, "%s", NIL_P(home) ? "" : StringValueCStr(home));
    VALUE paths = words(settings, "path"), classes = words(settings, "class"), methods = words(settings, "only_under");
    bool any = RARRAY_LEN(paths) || RARRAY_LEN(classes) || RARRAY_LEN(methods);
    T.filters = any ? rb_ary_new_from_args(3, paths, classes, methods) : Qnil;
    rb_ivar_set(filters_holder, rb_intern("filters"), T.filters);
    pw_call_rules_now = (pw_call_rules){
        .max_nodes = (uint32_t)number(settings, "nodes", 1000000), .max_depth = (uint32_t)number(settings, "depth", 0),
        .only_under = RARRAY_LEN(methods) > 0, .decide = decide};
    return Qnil;
}

static const char *
start(VALUE settings)
{
    if (!pw_walk_in_use()) return "cannot trace: this Ruby's stack is not laid out as expected";
    int error = 0;
    VALUE saved = rb_errinfo();
    rb_protect(read_settings, settings, &error);
    VALUE module = error ? Qnil : rb_protect(make_lesson, Qnil, &error);
    if (error) {
        rb_set_errinfo(saved);
        return "cannot trace: the settings could not be read, or the lesson not be given";
    }
    proof.good = proof.bad = 0;
    add_hook(prove_event, CALLS | RETURNS);
    for (int which = 0; which < LESSONS && !error; which++) error = !exercised(module, which, 3);
    remove_hook(prove_event);
    if (error || proof.bad || proof.good < 20) {
        rb_set_errinfo(saved);
        return "cannot trace: this Ruby tells of calls in another way than expected (or a TracePoint's block started this)";
    }
    pw_call_rules rules = pw_call_rules_now;
    pw_call_rules_now = (pw_call_rules){.max_nodes = 10000};
    pw_trace_clock_start(&T.clock);
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL); /* long enough to know a tick to some millionths */
    T.tick_ns = pw_trace_clock_tick_ns(&T.clock);
    T.gap = UINT64_MAX;
    T.busy = T.paused = T.in_gc = T.sweeping = false;
    T.gc_over = T.since_look = 0;
    atomic_store(&T.gc_due, false);
    bool calibrated = calibrate(module);
    T.calibrating = T.running = T.armed = false;
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
    add_hooks(CALLS | RETURNS | RUBY_EVENT_THREAD_END);
    RB_GC_GUARD(module);
    return NULL;
}

static void
intern_node(pw_call_tree *tree, pw_call_node *node, void *unused)
{
    (void)tree;
    if (node->id || (!node->parent && !node->wall && !node->wait && !node->objects)) return;
    VALUE frame = node->parent ? node->key->frame : PW_FRAME_NOT_TRACED, owner = node->parent ? node->key->owner : 0;
    uint32_t parent = node->parent && node->parent->parent ? node->parent->id : 0;
    node->id = pw_intern_new_node(&pw_current.tables, parent, frame, owner, 0);
}

static void
close_tree(pw_call_tree *tree, void *now)
{
    pw_call_nodes_each(tree, intern_node, NULL); /* while there is time for names */
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
        if (T.stack) charge(T.stack, top(T.stack), now);
        pthread_mutex_lock(&pw_current.lock);
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

/* ---- writing ---- */

enum { COLUMNS = 9 };

typedef struct {
    pw_buffer columns[COLUMNS];
    uint32_t rows;
    double tick_ns;
} sheet;

static void
write_sheet(sheet *s)
{
    if (!s->rows) return;
    pw_buffer payload = {0};
    pw_buffer_int(&payload, s->rows);
    for (int i = 0; i < COLUMNS; i++) {
        pw_buffer_column(&payload, &s->columns[i]);
        pw_buffer_clear(&s->columns[i]);
    }
    pw_writer_chunk(&pw_current.writer, "CALL", payload.data, payload.size);
    pw_buffer_free(&payload);
    s->rows = 0;
}

static uint64_t
seen(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void
give_outside(pw_call_tree *tree, pw_call_node *node, void *unused)
{
    (void)tree;
    node->outside = 0;
    if (!node->parent || node->key->kind >= PW_CALL_KINDS) return;
    node->parent->outside += (uint64_t)((double)seen(&node->calls) * T.probes[node->key->kind].outside);
}

static void
write_node(pw_call_tree *tree, pw_call_node *node, void *data)
{
    sheet *s = data;
    uint64_t calls = seen(&node->calls), hidden = seen(&node->hidden), wall = seen(&node->wall), wait = seen(&node->wait);
    uint64_t objects = seen(&node->objects), bytes = seen(&node->bytes);
    int64_t off = (int64_t)seen((uint64_t *)&node->off);
    intern_node(tree, node, NULL);
    if (!node->id) return;
    uint64_t print = calls + hidden + wall + wait + objects + bytes + (uint64_t)off;
    if (print == node->written) return;
    node->written = print;
    double probes = (double)node->outside, cpu = (double)wall - (double)off;
    if (node->parent && node->key->kind < PW_CALL_KINDS) probes += (double)calls * T.probes[node->key->kind].inside;
    /* What is filtered out was mostly C functions or small methods: their probes' mean. */
    for (int i = 0; i < PW_CALL_KINDS; i++) probes += (double)hidden * (T.probes[i].inside + T.probes[i].outside) / PW_CALL_KINDS;
    if (cpu < 0 || !T.cpu) cpu = 0;
    uint64_t values[COLUMNS] = {
        tree->thread_id, node->id, calls, (uint64_t)((double)wall * s->tick_ns), (uint64_t)((double)wait * s->tick_ns),
        (uint64_t)(cpu * s->tick_ns), (uint64_t)(probes * s->tick_ns), objects, bytes};
    for (int i = 0; i < COLUMNS; i++) pw_buffer_int(&s->columns[i], values[i]);
    if (++s->rows == ROWS_A_CHUNK) write_sheet(s);
}

static void
write_tree(pw_call_tree *tree, void *data)
{
    pw_call_nodes_each(tree, give_outside, NULL);
    pw_call_nodes_each(tree, write_node, data);
}

static void
write_summary(const sheet *s)
{
    char json[1024];
    long long tenths[PW_CALL_KINDS][3]; /* of ns; no %f, whose point is the locale's */
    for (int i = 0; i < PW_CALL_KINDS; i++) {
        const double ticks[] = {T.probes[i].inside, T.probes[i].outside, T.probes[i].error};
        for (int j = 0; j < 3; j++) tenths[i][j] = (long long)(ticks[j] * s->tick_ns * 10 + 0.5);
    }
#define TENTHS(i, j) tenths[i][j] / 10, tenths[i][j] % 10
#define TRIPLE "[%lld.%lld,%lld.%lld,%lld.%lld]"
    int n = snprintf(json, sizeof json,
        "{\"clock\":\"%s\",\"tick_fs\":%lld,\"cpu\":%s,\"objects\":%s,\"bytes\":%s,\"nodes\":%u,\"max_nodes\":%u,\"lost_calls\":%llu,"
        "\"gc\":\"%s\",\"gc_over_memory\":%llu,"
        "\"probe_ns\":{\"ruby\":" TRIPLE ",\"block\":" TRIPLE ",\"c\":" TRIPLE "}}",
        T.clock.counter ? "tsc" : "monotonic", (long long)(s->tick_ns * 1e6), T.cpu ? "true" : "false", T.objects ? "true" : "false", T.bytes ? "true" : "false",
        pw_call_nodes(), pw_call_rules_now.max_nodes, (unsigned long long)pw_call_lost(),
        T.gc == GC_OFF ? "off" : T.gc == GC_DEFER ? "defer" : "as-is", (unsigned long long)T.gc_over,
        TENTHS(0, 0), TENTHS(0, 1), TENTHS(0, 2), TENTHS(1, 0), TENTHS(1, 1), TENTHS(1, 2), TENTHS(2, 0), TENTHS(2, 1), TENTHS(2, 2));
#undef TENTHS
#undef TRIPLE
    if (n > 0 && (size_t)n < sizeof json) pw_writer_chunk(&pw_current.writer, "TRAC", json, (size_t)n);
}

/* The nodes it names are written right after it, by the drain. */
static void
write_calls(bool last)
{
    (void)last;
    sheet s = {.tick_ns = pw_trace_clock_tick_ns(&T.clock)};
    pw_call_trees_each(write_tree, &s);
    write_sheet(&s);
    for (int i = 0; i < COLUMNS; i++) pw_buffer_free(&s.columns[i]);
    write_summary(&s);
    pw_call_trees_sweep();
}

static void
mark_key(const pw_call_key *key)
{
    if (key->a && !RB_SPECIAL_CONST_P(key->a)) rb_gc_mark(key->a);
    if (key->owner) rb_gc_mark(key->owner);
}

static void mark(void) { pw_call_keys_each(mark_key); }

void
pw_tracer_stop_internal(void)
{
    if (!T.internal) return;
    remove_hook(on_collection);
    remove_hook(on_object);
    T.internal = T.in_gc = false;
}

void
pw_tracer_begin_own(void)
{
    if (!T.armed || T.own_thread) return;
    T.own_thread = rb_thread_current();
    if ((T.own_stack = T.stack)) {
        charge(T.stack, top(T.stack), pw_ticks(&T.clock));
        T.stack->paused = T.last;
    }
    T.ec = NULL;
    T.stack = NULL;
}

void
pw_tracer_end_own(void)
{
    if (!T.own_thread) return;
    T.own_thread = 0;
    if (!T.armed || T.stack) return; /* others ran meanwhile, or it was stopped */
    if ((T.stack = T.own_stack)) T.ec = T.stack->ec;
    T.last = pw_ticks(&T.clock);
}

#else /* unknown layout */

void pw_tracer_begin_own(void) {}
void pw_tracer_end_own(void) {}

static const char *start(VALUE settings) { return "cannot trace: the layout of this Ruby is not known (3.1, 3.3 and 3.4 are)"; }
static void stop(void) {}
static void write_calls(bool last) {}
static void mark(void) {}
static void forget(bool frees) {}
static void collect_garbage(void *unused) {}
void pw_tracer_stop_internal(void) {}

#endif

const pw_collector pw_tracer = {"trace", start, stop, write_calls, mark, forget, pw_tracer_begin_own, pw_tracer_end_own};

void
pw_tracer_init(VALUE native)
{
    T.native = native;
    T.start = rb_intern("start");
    T.filters = Qnil;
    rb_gc_register_mark_object(filters_holder = rb_obj_alloc(rb_cObject));
    if (!pw_job_init(&gc_job, collect_garbage)) rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
}
