/* A program made by hand for the tracer, and an oracle that knows the program's real stack.
 *
 * A fake VM pushes and pops control frames. The tracer's hook gets the events that Ruby would report. The test sets the
 * clock. */
#ifndef PITWALL_FAKE_PROGRAM_H
#define PITWALL_FAKE_PROGRAM_H

#include "calls.h"
#include "intern.h"
#include "trace_filters.h"
#include "trace_probe.h"
#include "tracer.h"
#include <time.h>
#include "fake_vm.h"
#include "registry.h"
#include "session.h"

/* ---- the clock ---- */

static uint64_t now = 1000000;

int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

int
__wrap_clock_gettime(clockid_t id, struct timespec *time)
{
    *time = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
    return 0;
}

/* Without /proc/cpuinfo the tracer uses clock_gettime instead of the time-stamp counter. */
FILE *
__wrap_fopen(const char *path, const char *mode)
{
    return strcmp(path, "/proc/cpuinfo") == 0 ? NULL : __real_fopen(path, mode);
}

/* ---- functions of Ruby and Pitwall that the tracer calls ---- */

enum { NATIVE = 0x7000, START = 1, THREADS = 3, CONTEXTS = 4 };
static pw_raw_hook on_call, on_internal;
static rb_event_flag_t call_events;
static pw_thread pw_threads[THREADS];
static VALUE thread_now;
static pw_call_rules rules;
_Atomic bool pw_memory_refused;
_Atomic uint32_t pw_live_generation;
pw_session pw_current;
__thread pw_self_slot pw_tls __attribute__((tls_model("initial-exec")));

VALUE rb_thread_current(void) { return thread_now; }
pw_thread *pw_self(void) { return &pw_threads[(thread_now - 0x100) / 0x10]; }
VALUE pw_setting(VALUE settings, const char *name) { return Qnil; }
bool pw_setting_is_on(VALUE settings, const char *name, bool otherwise) { return strcmp(name, "objects") == 0; }
uint64_t pw_setting_number(VALUE settings, const char *name, uint64_t otherwise) { return otherwise; }
pw_call_rules pw_trace_filters_read(VALUE settings) { return rules; }
void pw_trace_filters_init(VALUE native) {}
VALUE pw_trace_lesson(VALUE unused) { return Qnil; }
bool pw_trace_is_proven(VALUE lesson) { return true; }
bool pw_in_main_ractor(void) { return true; }
/* Stands in for pw_trace_calibrate. Nothing here reads the clock, so the clock's type does not matter. */
bool calibrate(VALUE lesson, const void *clock, const pw_traced *traced, pw_probe *probes)
    __asm__("pw_trace_calibrate");

bool
calibrate(VALUE lesson, const void *clock, const pw_traced *traced, pw_probe *probes)
{
    traced->begin();
    traced->end();
    return true;
}

void
rb_add_event_hook2(rb_event_hook_func_t hook, rb_event_flag_t events, VALUE data, rb_event_hook_flag_t flags)
{
    CHECK(flags & RUBY_EVENT_HOOK_FLAG_RAW_ARG);
    if (events & RUBY_EVENT_CALL) on_call = (pw_raw_hook)(void (*)(void))hook, call_events = events;
    else on_internal = (pw_raw_hook)(void (*)(void))hook;
}

int
rb_remove_event_hook(rb_event_hook_func_t hook)
{
    if ((pw_raw_hook)(void (*)(void))hook == on_call) on_call = NULL;
    else on_internal = NULL;
    return 1;
}

void pw_naming_trigger_if_wanted(void) {}
void pw_frame_names_of_calls(bool (*find)(VALUE frame, VALUE *klass, ID *name)) {}
unsigned rb_postponed_job_preregister(unsigned flags, void (*function)(void *), void *data) { return 1; }

/* ---- the oracle ---- */

enum { MOST_NODES = 4000, ROOT_OF_FIRST = 1 };

/* A node of the oracle's call tree, found by a linear search. The threads' roots come first, from number 1 on. */
typedef struct {
    uint32_t parent;
    VALUE a, b;
    uint64_t calls, hidden, wall, wait;
    uint64_t total;    /* the sum of its calls' durations */
    pw_call_node *met; /* the tracer's node */
} plain_node;

static plain_node nodes[MOST_NODES];
static uint32_t node_count, limit; /* limit: of nodes that are no roots */
static uint64_t lost;

/* A call on a context's stack. There is one for each frame of the fake fiber. */
typedef struct { uint32_t node; uint64_t began; bool counted; VALUE a, b; } plain_call;

typedef struct {
    fiber f;
    uint32_t thread;
    bool known;              /* an event in it was reported */
    plain_call calls[MOST_FRAMES];
    uint32_t depth;          /* after the last event; more than the fiber's where calls ended without an event */
    uint32_t top;            /* the node that is charged until the next event */
    uint64_t clock, paused;  /* clock: time charged to this context; paused: when another context began to run */
} context;

static context contexts[CONTEXTS], *current, *told; /* told: in which the last event was reported */
static uint64_t told_at;

static uint32_t
plain_node_of(uint32_t parent, VALUE a, VALUE b, bool *made)
{
    uint32_t n = THREADS + 1;
    while (n < node_count && (nodes[n].parent != parent || nodes[n].a != a || nodes[n].b != b)) n++;
    *made = n == node_count;
    return n;
}

static uint32_t depth_of(uint32_t node) { return node <= THREADS ? 0 : 1 + depth_of(nodes[node].parent); }

static uint32_t top_of(const context *c, uint32_t depth) { return depth ? c->calls[depth - 1].node : 1 + c->thread; }

/* Calls from `depth` on have ended by now. */
static void
end_calls(context *c, uint32_t depth)
{
    while (c->depth > depth) {
        const plain_call *call = &c->calls[--c->depth];
        if (call->counted) nodes[call->node].total += c->clock - call->began;
    }
}

/* A call is reported. The time of a callee that is filtered out, or has no room, counts as its caller's. */
static void
begin_call(context *c, VALUE a, VALUE b, bool counted)
{
    bool made;
    uint32_t parent = top_of(c, c->depth), n = plain_node_of(parent, a, b, &made);
    if (made && rules.max_depth && depth_of(parent) >= rules.max_depth) {
        nodes[parent].hidden += counted;
        c->calls[c->depth++] = (plain_call){parent, c->clock, false, a, b};
        return;
    }
    if (made && node_count - THREADS - 1 >= limit) {
        lost++;
        c->calls[c->depth++] = (plain_call){parent, c->clock, false, a, b};
        return;
    }
    if (made) {
        CHECK(node_count < MOST_NODES);
        nodes[node_count++] = (plain_node){.parent = parent, .a = a, .b = b};
    }
    nodes[n].calls += counted;
    c->calls[c->depth++] = (plain_call){n, c->clock, true, a, b};
}

/* Charges the time since the last event to the call that was on top after it. */
static void
charge_oracle(void)
{
    if (!told) return;
    nodes[told->top].wall += now - told_at;
    told->clock += now - told_at;
    if (told != current) told->paused = now;
}

/* ---- events ---- */

static void
fire(rb_event_flag_t event, const VALUE *cfp, VALUE klass, ID id)
{
    pw_trace_arg arg = {.event = event, .ec = current->f.ec, .cfp = cfp, .self = NATIVE,
                        .id = id, .called_id = id, .klass = klass};
    CHECK(on_call);
    CHECK(call_events & event);
    on_call(Qnil, &arg);
}

/* To be called before an event. `depth`: how many calls the stack has when the event is reported. */
static void
settle_oracle(uint32_t depth)
{
    charge_oracle();
    end_calls(current, depth);
    bool waited = told != current && current->paused && current->depth;
    if (waited) nodes[top_of(current, current->depth)].wait += now - current->paused;
    current->known = true;
}

static void
told_now(void)
{
    told = current;
    told_at = now;
    current->top = top_of(current, current->depth);
}

static void
use_context(context *c)
{
    current = c;
    thread_now = 0x100 + 0x10 * (VALUE)c->thread;
    switch_fiber(&c->f);
}

static void
call_ruby(const code *c, bool block)
{
    settle_oracle(running->depth);
    if (block && running->depth && running->frames[running->depth - 1].code) push_block(c);
    else {
        block = false;
        push_method(c);
    }
    fire(block ? RUBY_EVENT_B_CALL : RUBY_EVENT_CALL, leaf(), 0, 0);
    begin_call(current, c->iseq, 0, true);
    told_now();
}

static VALUE class_of_c(uint32_t n) { return 0x9000 + 8 * (VALUE)n; }

/* Ruby reports a C call before it pushes the frame. */
static void
call_c(uint32_t n)
{
    settle_oracle(running->depth);
    fire(RUBY_EVENT_C_CALL, leaf(), class_of_c(n), 50 + n);
    begin_call(current, class_of_c(n), 50 + n, true);
    push_c_function(c_functions[n]);
    told_now();
}

/* The call on top returns. `unwinds`: an exception ends it. Then Ruby reports the return of a C function before it pops
 * the frame. The event itself looks the same. The tracer cannot tell the two apart where calls ended without an event
 * before, so this test makes none there. */
static void
return_one(bool unwinds)
{
    const pushed *p = &running->frames[running->depth - 1];
    unwinds = unwinds && current->depth == running->depth;
    settle_oracle(running->depth);
    if (p->code) {
        fire(p->method_ep == p->ep ? RUBY_EVENT_RETURN : RUBY_EVENT_B_RETURN, leaf(), 0, 0);
        pop();
    }
    else {
        const plain_call *call = &current->calls[running->depth - 1];
        VALUE klass = call->a;
        ID id = (ID)call->b;
        if (call->b == PW_CALL_MET) { /* by its method entry */
            klass = ((VALUE *)call->a)[PW_ME_OWNER];
            id = (ID)((VALUE *)call->a)[PW_ME_CALLED_ID];
        }
        if (unwinds) fire(RUBY_EVENT_C_RETURN, leaf(), klass, id);
        pop();
        if (!unwinds) fire(RUBY_EVENT_C_RETURN, leaf(), klass, id);
    }
    end_calls(current, running->depth);
    told_now();
}

/* Compares a node with the oracle's. */
static void
check_node(pw_call_tree *tree, pw_call_node *node, void *visited)
{
    uint32_t n = tree->thread_id;
    if (node->parent) {
        uint32_t parent = 1;
        bool missing;
        while (parent < node_count && nodes[parent].met != node->parent) parent++;
        CHECK(parent < node_count);
        n = plain_node_of(parent, node->a, node->b, &missing);
        unit_note("a node of thread %u at depth %u", tree->thread_id, node->depth);
        CHECK(!missing);
    }
    unit_note("node %u of thread %u at depth %u", n, tree->thread_id, node->depth);
    CHECK(!nodes[n].met);
    nodes[n].met = node;
    EQUAL(nodes[n].calls, node->calls);
    EQUAL(nodes[n].hidden, node->hidden);
    EQUAL(nodes[n].wall, node->wall);
    EQUAL(nodes[n].wait, node->wait);
    ++*(uint32_t *)visited;
}

static void check_tree(pw_call_tree *tree, void *visited) { pw_call_nodes_each(tree, check_node, visited); }

static uint64_t
sum_of_subtree(uint32_t of)
{
    static uint64_t sums[MOST_NODES];
    for (uint32_t n = 1; n < node_count; n++) sums[n] = nodes[n].met ? nodes[n].met->wall : 0;
    /* Children come after their parents. */
    for (uint32_t n = node_count - 1; n > of; n--) sums[nodes[n].parent] += sums[n];
    return sums[of];
}

/* Ends all calls, then compares all nodes. A total is compared with the sum of self times over the subtree. */
static void
check_all(void)
{
    uint32_t visited = 0, known = 0;
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        if (!contexts[i].known) continue;
        use_context(&contexts[i]);
        now += 5;
        while (running->depth > 1) return_one(false);
        call_ruby(&codes[0], false); /* by this event the tracer knows of calls that ended without an event */
        return_one(false);
    }
    for (uint32_t i = 0; i < CONTEXTS; i++) end_calls(&contexts[i], 0);
    for (uint32_t n = 1; n < node_count; n++) nodes[n].met = NULL;
    pw_call_trees_each(check_tree, &visited);
    for (uint32_t n = 1; n < node_count; n++) known += n > THREADS || nodes[n].met != NULL;
    EQUAL(known, visited);
    EQUAL(node_count - 1 - THREADS, pw_call_nodes());
    EQUAL(lost, pw_call_lost());
    for (uint32_t n = THREADS + 1; n < node_count; n++) {
        unit_note("total of node %u", n);
        EQUAL(nodes[n].total, sum_of_subtree(n));
    }
}

/* Starts the tracer in a program whose first context returns from Pitwall's start. */
static void
begin_tracing(pw_call_rules given)
{
    static bool initialised;
    begin();
    rules = given;
    limit = given.max_nodes;
    if (!initialised) {
        pw_tracer.init(NATIVE);
        for (int i = 0; i < C_FUNCTIONS; i++) {
            ((VALUE *)c_functions[i])[PW_ME_OWNER] = class_of_c((uint32_t)i);
            ((VALUE *)c_functions[i])[PW_ME_CALLED_ID] = 50 + (VALUE)i;
        }
        for (int i = 0; i < CODES; i++) ((VALUE *)codes[i].entry)[PW_ME_OWNER] = 0x8000;
        initialised = true;
    }
    else pw_tracer.forget(true);
    memset(nodes, 0, sizeof nodes);
    memset(contexts, 0, sizeof contexts);
    node_count = THREADS + 1;
    lost = 0;
    told = NULL;
    for (uint32_t i = 0; i < THREADS; i++) pw_threads[i] = (pw_thread){.id = i + 1, .thread = 0x100 + 0x10 * (VALUE)i};
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        make_fiber(&contexts[i].f);
        contexts[i].thread = i < THREADS ? i : 0; /* the last one is a fiber of the first thread */
    }
    EQUAL_TEXT("started", pw_tracer.start(Qnil) ? pw_tracer.start(Qnil) : "started");
    use_context(&contexts[0]);
    push_top(&codes[4]);
    push_method(&codes[0]);
    push_c_function(c_functions[0]);
    push_method(&codes[1]);
    now += 100;
    fire(RUBY_EVENT_CALL, leaf(), 0, 0); /* events before start has returned do not count */
    fire(RUBY_EVENT_C_RETURN, leaf(), NATIVE, START);
    begin_call(current, codes[4].iseq, 0, false);
    begin_call(current, codes[0].iseq, 0, false);
    begin_call(current, c_functions[0], PW_CALL_MET, false);
    begin_call(current, codes[1].iseq, 0, false);
    current->known = true;
    told_now();
}

#endif
