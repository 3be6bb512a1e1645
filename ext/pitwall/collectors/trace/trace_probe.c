#include "collectors/trace/trace_probe.h"
#include "tools/quietly.h"
#include "vm/valid_frames.h"
#include <ruby/debug.h>

#if PW_LAYOUT_RUBY

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
static const pw_tick_clock *ticking;

static void
prove_event(VALUE unused, const pw_trace_arg *arg)
{
    rb_trace_arg_t *public = (rb_trace_arg_t *)arg;
    bool c = arg->event & (RUBY_EVENT_C_CALL | RUBY_EVENT_C_RETURN);
    bool right = rb_tracearg_event_flag(public) == arg->event && rb_tracearg_self(public) == arg->self &&
                 arg->ec && arg->ec[PW_EC_CFP] == (VALUE)arg->cfp;
    if (right && arg->event & (RUBY_EVENT_CALL | RUBY_EVENT_RETURN | RUBY_EVENT_C_CALL | RUBY_EVENT_C_RETURN)) {
        right = rb_tracearg_method_id(public) == ID2SYM(arg->id) &&
                rb_tracearg_callee_id(public) == ID2SYM(arg->called_id) &&
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

VALUE
pw_trace_lesson(VALUE unused)
{
    return rb_funcall(rb_module_new(), rb_intern("module_eval"), 1, rb_str_new_cstr(lesson));
}

static bool
exercised(VALUE module, int which, long calls)
{
    exercise e = {module, which, calls};
    return pw_attempt(take, (VALUE)&e, NULL);
}

/* The newest node that fits a lesson: the node of the lesson's callee, or of the lesson itself. Operators are C
 * functions too, so a C callee is found by its name. */
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

static void
find_in_tree(pw_call_tree *tree, void *data)
{
    pw_call_nodes_each(tree, find_newest, data);
}

static double
ticks_of(VALUE module, int which)
{
    uint64_t from = pw_ticks(ticking);
    exercised(module, which, CALLS_A_TURN);
    return (double)(pw_ticks(ticking) - from) / CALLS_A_TURN;
}

static double
lesser(double a, double b)
{
    return a < b ? a : b;
}

static void
ascending(double *turns)
{
    for (int i = 1; i < TURNS; i++) {
        for (int at = i; at > 0 && turns[at] < turns[at - 1]; at--) {
            double before = turns[at - 1];
            turns[at - 1] = turns[at];
            turns[at] = before;
        }
    }
}

static void
time_plain(VALUE module, double *plain)
{
    for (int which = 0; which < LESSONS; which++) {
        plain[which] = ticks_of(module, which);
        for (int turn = 1; turn < TURNS; turn++) plain[which] = lesser(plain[which], ticks_of(module, which));
    }
}

bool
pw_trace_is_proven(VALUE module)
{
    bool taken = true;
    proof.good = proof.bad = 0;
    pw_add_raw_hook(prove_event, PW_TRACE_CALLS | PW_TRACE_RETURNS);
    for (int which = 0; which < LESSONS && taken; which++) taken = exercised(module, which, 3);
    pw_remove_raw_hook(prove_event);
    return taken && !proof.bad && proof.good >= 20;
}

bool
pw_trace_calibrate(VALUE module, const pw_tick_clock *clock, const pw_traced *traced, pw_probe *probes)
{
    ticking = clock;
    double pairs[PW_CALL_KINDS], plain[LESSONS], inside[LESSONS][TURNS] = {{0}}, loop[LESSONS][TURNS] = {{0}};
    time_plain(module, plain);
    for (int which = 0; which < PW_CALL_KINDS; which++) pairs[which] = plain[which] - plain[LESSONS - 1];
    traced->begin();
    for (int which = 0; which < LESSONS; which++) {
        exercised(module, which, 1);
        newest found = {which, NULL};
        pw_call_trees_each(find_in_tree, &found);
        pw_call_node *leaf = found.found;
        if (!leaf || !leaf->parent) return traced->end(), false;
        pw_call_node *outer = which == LESSONS - 1 ? leaf : leaf->parent;
        for (int turn = 0; turn < TURNS; turn++) {
            uint64_t leaf_before = leaf->wall, outer_before = outer->wall;
            exercised(module, which, CALLS_A_TURN);
            inside[which][turn] = (double)(leaf->wall - leaf_before) / CALLS_A_TURN;
            loop[which][turn] = (double)(outer->wall - outer_before) / CALLS_A_TURN;
        }
        ascending(inside[which]);
        ascending(loop[which]);
    }
    traced->end();
    time_plain(module, plain); /* the first timing may have been slowed by other load */
    for (int which = 0; which < PW_CALL_KINDS; which++) {
        double pair = lesser(pairs[which], plain[which] - plain[LESSONS - 1]);
        pw_probe *p = &probes[which];
        p->inside = inside[which][0] - (pair > 0 ? pair : 0);
        p->outside = loop[which][0] - loop[LESSONS - 1][0];
        if (p->inside < 0) p->inside = 0;
        if (p->outside < 0) p->outside = 0;
        /* The error is the distance from the best turn to the first quartile. Slower turns were disturbed. */
        p->error = inside[which][TURNS / 4] - inside[which][0] + loop[which][TURNS / 4] - loop[which][0];
    }
    return true;
}

#endif
