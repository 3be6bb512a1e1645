#include "collectors/caches/own_hooks.h"
#include "collectors/caches/change_notes.h"
#include "collectors/caches/changes.h"
#include "session/modules.h"
#include "session/session.h"
#include "tools/quietly.h"
#include "vm/c_methods.h"
#include "vm/vm_layout.h"
#include <ruby/debug.h>

enum { MOST_HOOKS = 512 };

static struct {
    VALUE codes[MOST_HOOKS]; /* iseqs of hooks that have run; only compared */
    _Atomic uint32_t code_count;
    VALUE points; /* Array of TracePoints; each keeps its hook's code and class alive */
    VALUE watched[MOST_HOOKS]; /* code that a TracePoint watches; 0: a block, of which each definition is watched */
    uint32_t watched_count;
    ID enable, disable, target, instance_method, local_variable_get, parameters;
} state;

/* The value of the method's first parameter. Qundef: it has none with a name. */
static VALUE
first_argument(VALUE data)
{
    VALUE point = data, parameters = rb_funcall(point, state.parameters, 0);
    VALUE first = RARRAY_LEN(parameters) ? rb_ary_entry(parameters, 0) : Qnil;
    VALUE name = RB_TYPE_P(first, T_ARRAY) ? rb_ary_entry(first, 1) : Qnil;
    if (!RB_SYMBOL_P(name)) return Qundef;
    const char *text = rb_id2name(rb_sym2id(name));
    if (!text || !((text[0] >= 'a' && text[0] <= 'z') || text[0] == '_')) return Qundef;
    VALUE binding = rb_tracearg_binding(rb_tracearg_from_tracepoint(point));
    VALUE value = rb_funcall(binding, state.local_variable_get, 1, name);
    return RB_TYPE_P(value, T_ARRAY) && rb_ary_entry(first, 0) == ID2SYM(rb_intern("rest")) ? rb_ary_entry(value, 0)
                                                                                              : value;
}

static bool
is_own_hook(pw_call_place place)
{
    VALUE code = place.cfp[PW_CFP_PC] ? place.cfp[PW_CFP_ISEQ] : 0;
    for (uint32_t i = 0, n = atomic_load(&state.code_count); code && i < n; i++) {
        if (state.codes[i] == code) return true;
    }
    return false;
}

static void
remember_code(VALUE code)
{
    pw_call_place place = {NULL, (const VALUE[PW_CFP_WORDS]){[PW_CFP_PC] = 1, [PW_CFP_ISEQ] = code}};
    uint32_t n = atomic_load(&state.code_count);
    if (is_own_hook(place) || n == MOST_HOOKS) return;
    state.codes[n] = code;
    atomic_store(&state.code_count, n + 1);
}

typedef struct { const pw_trace_arg *arg; VALUE argument; } hook_call;

static VALUE
note_hook(VALUE data)
{
    const hook_call *h = (const hook_call *)data;
    const pw_trace_arg *arg = h->arg;
    VALUE name = rb_tracearg_method_id((rb_trace_arg_t *)arg);
    if (!RB_SYMBOL_P(name)) return Qnil;
    pw_change_top = (pw_stack_top){arg->ec, arg->cfp + PW_CFP_WORDS}; /* the code that caused the hook */
    pw_hook_called(rb_sym2id(name), arg->self, h->argument, (pw_call_place){arg->ec, arg->cfp});
    return Qnil;
}

static void
hook_runs(VALUE point, void *unused)
{
    if (!pw_changes_wanted()) return;
    hook_call h = {(const pw_trace_arg *)rb_tracearg_from_tracepoint(point), Qundef};
    pw_own_begin();
    int tag = pw_quietly(first_argument, point, &h.argument);
    pw_own_end();
    pw_go_on(tag);
    remember_code(h.arg->cfp[PW_CFP_ISEQ]);
    if (h.argument == Qundef) return;
    tag = pw_quietly(note_hook, (VALUE)&h, NULL);
    pw_change_top = (pw_stack_top){0}; /* the frame ends soon */
    pw_go_on(tag);
}

static void
enable_runs(VALUE point, void *unused)
{
    if (!pw_changes_wanted()) return;
    pw_subject s = {.size = 0};
    uint64_t none[PW_VM_COUNTERS] = {0};
    pw_subject_add(&s, "TracePoint", 10);
    pw_change_note(PW_TRACING_ENABLED, &s, none);
}

typedef struct { VALUE method; void (*runs)(VALUE, void *); } point;

static VALUE
watch(VALUE data)
{
    const point *p = (const point *)data;
    VALUE made = rb_tracepoint_new(Qnil, RUBY_EVENT_CALL, p->runs, NULL), options = rb_hash_new();
    rb_hash_aset(options, ID2SYM(state.target), p->method);
    rb_funcallv_kw(made, state.enable, 1, &options, RB_PASS_KEYWORDS);
    rb_ary_push(state.points, made);
    return made;
}

static VALUE
watch_hook(VALUE data)
{
    const VALUE *pair = (const VALUE *)data;
    point p = {rb_funcall(pair[0], state.instance_method, 1, pair[1]), hook_runs};
    VALUE code = pw_code_of_method(p.method, SYM2ID(pair[1]));
    for (uint32_t i = 0; i < state.watched_count && code; i++) {
        if (state.watched[i] == code) return Qnil; /* the same `def` has run again: its code is watched */
    }
    if (state.watched_count == MOST_HOOKS) {
        pw_change_lost();
        return Qnil;
    }
    VALUE made = watch((VALUE)&p);
    state.watched[state.watched_count++] = code;
    return made;
}

/* `receiver` is a class with an instance method of a hook's name, or an object with a singleton method of the name. */
static void
hook_defined(VALUE receiver, ID hook, bool singleton)
{
    if (!pw_in_main_ractor() || NIL_P(state.points)) return;
    VALUE klass = singleton ? rb_singleton_class(receiver) : receiver;
    VALUE pair[] = {klass, ID2SYM(hook)};
    pw_own_begin();
    int tag = pw_quietly(watch_hook, (VALUE)pair, NULL); /* raises for a method without code of Ruby */
    pw_own_end();
    pw_go_on(tag);
}

void
pw_own_hooks_start(void)
{
    static bool ready;
    if (!ready) {
        rb_gc_register_address(&state.points);
        state.enable = rb_intern("enable"), state.disable = rb_intern("disable"), state.target = rb_intern("target");
        state.instance_method = rb_intern("instance_method");
        state.parameters = rb_intern("parameters");
        state.local_variable_get = rb_intern("local_variable_get");
        ready = true;
    }
    state.points = rb_ary_new();
    state.watched_count = 0;
    VALUE trace_point = rb_const_get(rb_cObject, rb_intern("TracePoint"));
    point p = {rb_funcall(trace_point, state.instance_method, 1, ID2SYM(state.enable)), enable_runs};
    watch((VALUE)&p);
    pw_hook_defined = hook_defined;
    pw_is_own_hook = is_own_hook;
}

static VALUE
disable(VALUE made)
{
    return rb_funcall(made, state.disable, 0);
}

void
pw_own_hooks_stop(void)
{
    pw_hook_defined = NULL;
    pw_is_own_hook = NULL;
    atomic_store(&state.code_count, 0);
    if (!RB_TYPE_P(state.points, T_ARRAY)) return;
    for (long i = 0; i < RARRAY_LEN(state.points); i++) pw_attempt(disable, rb_ary_entry(state.points, i), NULL);
    state.points = Qnil;
}
