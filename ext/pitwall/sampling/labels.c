#include "sampling/labels.h"
#include "output/drain.h"
#include "output/output.h"
#include "output/rows.h"
#include "sampling/capture.h"
#include "sampling/queries.h"
#include "sampling/query_sums.h"
#include "sampling/registry.h"
#include "sampling/work_counters.h"
#include "sampling/works.h"
#include <stdlib.h>
#include <string.h>

/* The slowest pieces of work that end between two flushes. These are kept one by one; all others are only counted. */
enum { SLOWEST = 64 };

/* A piece of work that has ended. parts: its queries; NULL: none. */
typedef struct {
    uint32_t thread, label;
    int64_t end, ns;
    pw_query_part *parts;
    uint32_t queries;
    pw_work_increase increase;
} mark;
typedef struct { uint64_t count, ns; bool changed; } work;
/* Tests that ended under one set of labels. counted: the number of tests whose objects and gc are known. */
typedef struct { uint64_t count, ns, cpu, counted, objects, gc; bool changed; } test;

static struct {
    uint32_t last, pending;      /* last: sets defined; pending: rows not yet written */
    pw_buffer ids, names, values;
    mark slowest[SLOWEST];
    uint32_t marks;
    work *works;                 /* by label */
    uint32_t room;
    test *tests;                 /* by label; NULL until a test ends */
    uint32_t test_room;
} labels;

static struct {
    uint32_t generation; /* of the numbers: a fiber may still have a number of an earlier recording */
    bool hooked, inherits; /* inherits: fibers have storage that fibers created in them inherit (Ruby 3.2) */
    ID variable;
    VALUE fiber_class, m_labels;
    VALUE m_tests;
} state;

/* ---- the running fiber's set ---- */

static VALUE
again(VALUE set)
{
    return rb_funcall(state.m_labels, rb_intern("again"), 1, set);
}

/* A number in Ruby contains the generation and the id. It is one word, so that no thread sees half of a change. */
enum { ID_BITS = 20 };
static VALUE number_for(uint32_t id) { return ULL2NUM((uint64_t)state.generation << ID_BITS | id); }

static bool
is_current(VALUE number)
{
    return RB_FIXNUM_P(number) && (uint64_t)FIX2LONG(number) >> ID_BITS == state.generation;
}

/* Returns the id of a Collect::Labels::Set in this recording, 0 for nil. Nothing else runs between the function's
 * last read of the number and its return. */
static uint32_t
id_of(VALUE set)
{
    for (int tries = 0; RB_TYPE_P(set, T_STRUCT) && tries < 3; tries++) {
        VALUE number = rb_struct_aref(set, INT2FIX(0));
        if (is_current(number)) return (uint32_t)FIX2LONG(number) & ((1u << ID_BITS) - 1);
        int error = 0;
        VALUE saved = rb_errinfo();
        rb_protect(again, set, &error);
        if (!error) continue;
        rb_set_errinfo(saved);
        break;
    }
    return 0;
}

/* A fiber without a set of its own inherits the set under which the fiber was created, if it was created in this
 * thread. A thread may belong to a pool and outlive the block in which the thread was started. */
static VALUE
inherited(VALUE thread)
{
    if (!state.inherits) return Qnil;
    VALUE pair = rb_funcall(state.fiber_class, rb_intern("[]"), 1, ID2SYM(state.variable));
    if (!RB_TYPE_P(pair, T_ARRAY) || RARRAY_LEN(pair) != 2 || rb_ary_entry(pair, 0) != thread) return Qnil;
    VALUE set = rb_ary_entry(pair, 1);
    if (!rb_obj_frozen_p(thread)) rb_thread_local_aset(thread, state.variable, set);
    return set;
}

static VALUE
set_of_fiber(VALUE thread)
{
    VALUE set = rb_thread_local_aref(thread, state.variable);
    return NIL_P(set) ? inherited(thread) : set;
}

/* Called in the thread: the thread works under `id` from here on. */
static void
change_to(pw_thread *t, uint32_t id)
{
    if (!t || atomic_load_explicit(&t->own.label, memory_order_relaxed) == id) return;
    if (pw_current.ticker->label_ends) pw_current.ticker->label_ends(t);
    atomic_store_explicit(&t->own.label, id, memory_order_relaxed);
}

static void
on_switch(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass)
{
    pw_thread *t = pw_session_generation() ? pw_self() : NULL;
    if (!t) return;
    VALUE thread = rb_thread_current();
    if (t->thread != thread) return;
    uint32_t before = atomic_load_explicit(&t->own.label, memory_order_relaxed);
    if (!before && NIL_P(rb_thread_local_aref(thread, state.variable))) return;
    int error = 0;
    VALUE saved = rb_errinfo(), set = rb_protect(set_of_fiber, thread, &error);
    if (error) rb_set_errinfo(saved);
    uint32_t id_now = error ? 0 : id_of(set);
    change_to(pw_self(), id_now); /* pw_self() again: another thread may have stopped the recording meanwhile */
}

/* label(set or nil): sets the calling thread's labels from now on. */
static VALUE
native_label(VALUE self, VALUE set)
{
    if (!pw_registered_self()) return Qnil;
    uint32_t id = id_of(set);
    change_to(pw_self(), id);
    return Qnil;
}

/* label_thread(thread, set): sets another thread's labels. */
static VALUE
native_label_thread(VALUE self, VALUE thread, VALUE set)
{
    uint32_t id = id_of(set);
    if (!pw_current.generation) return Qnil;
    pthread_mutex_lock(&pw_current.lock);
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (t->thread == thread && !t->sample.finished) atomic_store_explicit(&t->own.label, id, memory_order_relaxed);
    }
    pthread_mutex_unlock(&pw_current.lock);
    return Qnil;
}

/* label_current?(number): whether the number belongs to this recording. */
static VALUE
native_label_current_p(VALUE self, VALUE number)
{
    return is_current(number) ? Qtrue : Qfalse;
}

/* label_define([name, value, ...]) -> number of the new set */
static VALUE
native_label_define(VALUE self, VALUE pairs)
{
    Check_Type(pairs, T_ARRAY);
    long n = RARRAY_LEN(pairs);
    for (long i = 0; i < n; i++) Check_Type(rb_ary_entry(pairs, i), T_STRING);
    if (!pw_current.generation || n < 2) return number_for(0);
    if (!state.hooked) {
        state.hooked = true;
        rb_add_event_hook((rb_event_hook_func_t)on_switch, RUBY_EVENT_FIBER_SWITCH, Qnil);
    }
    pthread_mutex_lock(&pw_current.lock);
    uint32_t id = ++labels.last;
    pw_rows_with_labels();
    for (long i = 0; i + 1 < n; i += 2) {
        VALUE name = rb_ary_entry(pairs, i), value = rb_ary_entry(pairs, i + 1);
        pw_buffer_int(&labels.ids, id);
        pw_buffer_int(&labels.names, pw_intern_string(&pw_out.tables, RSTRING_PTR(name), (size_t)RSTRING_LEN(name)));
        pw_buffer_int(&labels.values, pw_intern_string(&pw_out.tables, RSTRING_PTR(value), (size_t)RSTRING_LEN(value)));
        labels.pending++;
    }
    pthread_mutex_unlock(&pw_current.lock);
    RB_GC_GUARD(pairs);
    return number_for(id);
}

/* label_left_out: counts a block that had too many labels. */
static VALUE
native_label_left_out(VALUE self)
{
    pw_count(PW_LABELS_LEFT_OUT, 1);
    return Qnil;
}

/* ---- marks ---- */

static VALUE
native_now(VALUE self)
{
    return LL2NUM(pw_now_ns());
}

/* mark(began, queries, counted): work under the calling thread's labels has ended. began: when the work began (see
 * now). queries: a Queries::Work or nil. counted: of count_work, or nil. The mark goes through the ring, because a
 * thread that serves requests must not wait for the drain. */
static VALUE
native_mark(VALUE self, VALUE began, VALUE queries, VALUE counted)
{
    pw_work_increase increase = pw_work_counters_end(counted);
    int64_t from = NUM2LL(began);
    pw_thread *t = pw_registered_self();
    pw_work_ended();
    if (!t || !pw_enter_handler()) return Qnil;
    uint32_t count;
    const pw_query_part *parts = pw_queries_of(queries, &count);
    pw_put_mark(t, from, pw_now_ns(), parts, count, &increase);
    RB_GC_GUARD(queries);
    pw_leave_handler();
    return Qnil;
}

static work *
work_of(uint32_t label)
{
    labels.works = pw_label_table(labels.works, &labels.room, sizeof(work), label);
    return label < labels.room ? &labels.works[label] : NULL;
}

/* `end`: ns since the recording's start. holds session lock */
static void
add_mark(uint32_t thread, uint32_t label, int64_t end, int64_t ns, const pw_query_part *parts, uint32_t queries,
         const pw_work_increase *increase)
{
    if (label > labels.last) return; /* the label is of an earlier recording */
    pw_query_sums_add(label, parts, queries, true);
    pw_work_counters_add(label, increase);
    work *w = work_of(label);
    if (!w) return;
    w->count++;
    w->ns += (uint64_t)ns;
    w->changed = true;
    mark *at = &labels.slowest[labels.marks];
    if (labels.marks == SLOWEST) { /* the new mark replaces the fastest one, if the new mark is slower */
        at = labels.slowest;
        for (int i = 1; i < SLOWEST; i++) {
            if (labels.slowest[i].ns < at->ns) at = &labels.slowest[i];
        }
        if (at->ns >= ns) return;
        free(at->parts);
    }
    else labels.marks++;
    pw_query_part *copy = queries ? pw_noted(malloc(queries * sizeof(*copy))) : NULL;
    if (copy) memcpy(copy, parts, queries * sizeof(*copy));
    *at = (mark){thread, label, end, ns, copy, copy ? queries : 0, *increase};
}

/* Takes a MARK record. */
static bool
take_mark(const pw_record_header *record)
{
    const pw_sample *s = (const pw_sample *)record;
    const pw_query_part *parts = (const pw_query_part *)s->frames;
    add_mark(s->thread->id, s->label, s->wall - pw_current.origin, s->wall - s->cpu, parts, record->captures,
             (const pw_work_increase *)(parts + record->captures));
    return false;
}

/* ---- tests ---- */

/* holds session lock */
static test *
test_of(uint32_t label)
{
    labels.tests = pw_label_table(labels.tests, &labels.test_room, sizeof(test), label);
    return label < labels.test_room ? &labels.tests[label] : NULL;
}

/* test(ns, cpu, objects, gc): a test that ran under the calling thread's labels has ended. objects and gc are nil if
 * other tests ran at the same time. */
static VALUE
native_test(VALUE self, VALUE ns, VALUE cpu, VALUE objects, VALUE gc)
{
    uint64_t took = NUM2ULL(ns), used = NUM2ULL(cpu);
    bool counted = !NIL_P(objects) && !NIL_P(gc);
    uint64_t made = counted ? NUM2ULL(objects) : 0, collected = counted ? NUM2ULL(gc) : 0;
    pw_thread *t = pw_registered_self();
    if (!t || !pw_current.generation) return Qnil;
    uint32_t label = atomic_load_explicit(&t->own.label, memory_order_relaxed);
    pthread_mutex_lock(&pw_current.lock);
    test *at = label && label <= labels.last ? test_of(label) : NULL;
    if (at) {
        at->count++;
        at->ns += took;
        at->cpu += used;
        at->counted += counted;
        at->objects += made;
        at->gc += collected;
        at->changed = true;
    }
    pthread_mutex_unlock(&pw_current.lock);
    return Qnil;
}

/* thread_cpu() -> ns of CPU time that the calling thread has used. Does not use Process.clock_gettime, which tests
 * replace. */
static VALUE
native_thread_cpu(VALUE self)
{
    struct timespec used = {0, 0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return LL2NUM((int64_t)used.tv_sec * 1000000000 + used.tv_nsec);
}

typedef struct { int argc; const VALUE *argv; VALUE began; } run;

static VALUE run_super(VALUE data) { return rb_call_super(((run *)data)->argc, ((run *)data)->argv); }
static VALUE run_end(VALUE data) { return rb_funcall(state.m_tests, rb_intern("end_of"), 1, ((run *)data)->began); }

/* `run` of a framework's test. The method is written in C for two reasons. A C frame has its caller's path, and the
 * frameworks leave that path out of failure messages. And no Ruby code of Pitwall is on the stack while the test
 * runs. */
static VALUE
test_run(int argc, VALUE *argv, VALUE self)
{
    if (!pw_session_generation()) return rb_call_super(argc, argv);
    run r = {argc, argv, rb_funcall(state.m_tests, rb_intern("beginning_of"), 1, self)};
    return NIL_P(r.began) ? rb_call_super(argc, argv) : rb_ensure(run_super, (VALUE)&r, run_end, (VALUE)&r);
}

/* run_tests(module): defines `run` (test_run) in the module. */
static VALUE
native_run_tests(VALUE self, VALUE module)
{
    Check_Type(module, T_MODULE);
    rb_ext_ractor_safe(true); /* within a require, Ruby treats a new method as unsafe */
    rb_define_method(module, "run", test_run, -1);
    return Qnil;
}

/* ---- chunks ---- */

static void
write_sets(void)
{
    if (!labels.pending) return;
    pw_buffer columns[3] = {labels.ids, labels.names, labels.values};
    pw_writer_table(&pw_out.writer, "LABL", 1, (uint64_t[]){labels.pending}, 3, columns);
    labels.ids = columns[0], labels.names = columns[1], labels.values = columns[2];
    labels.pending = 0;
}

/* Writes the queries of the marks that are kept one by one, and frees the queries. */
static void
write_queries_of_marks(void)
{
    pw_buffer columns[5] = {{0}};
    uint32_t rows = 0;
    for (uint32_t i = 0; i < labels.marks; i++) {
        mark *m = &labels.slowest[i];
        for (uint32_t at = 0; at < m->queries; at++, rows++) {
            uint64_t values[5] = {m->thread, (uint64_t)m->end, m->parts[at].query, m->parts[at].count, m->parts[at].ns};
            pw_buffer_row(columns, values, 5);
        }
        free(m->parts);
        m->parts = NULL;
    }
    if (rows) pw_writer_table(&pw_out.writer, "QREQ", 1, (uint64_t[]){rows}, 5, columns);
    pw_buffers_free(columns, 5);
}

static void
write_marks(void)
{
    if (!labels.marks) return;
    pw_buffer columns[4] = {{0}};
    for (uint32_t i = 0; i < labels.marks; i++) {
        const mark *m = &labels.slowest[i];
        uint64_t values[4] = {m->thread, m->label, (uint64_t)m->end, (uint64_t)m->ns};
        pw_buffer_row(columns, values, 4);
        pw_work_counters_mark(m->thread, m->end, &m->increase);
    }
    pw_writer_table(&pw_out.writer, "MARK", 1, (uint64_t[]){labels.marks}, 4, columns);
    pw_buffers_free(columns, 4);
    write_queries_of_marks();
    labels.marks = 0;
}

static void
write_works(void)
{
    pw_buffer columns[3] = {{0}};
    uint32_t rows = 0;
    for (uint32_t i = 0; i < labels.room; i++) {
        work *w = &labels.works[i];
        if (!w->changed) continue;
        uint64_t values[3] = {i, w->count, w->ns};
        pw_buffer_row(columns, values, 3);
        w->changed = false;
        rows++;
    }
    if (rows) pw_writer_table(&pw_out.writer, "WORK", 1, (uint64_t[]){rows}, 3, columns);
    pw_buffers_free(columns, 3);
}

static void
write_tests(void)
{
    pw_buffer columns[7] = {{0}};
    uint32_t rows = 0;
    for (uint32_t i = 0; i < labels.test_room; i++) {
        test *at = &labels.tests[i];
        if (!at->changed) continue;
        uint64_t values[7] = {i, at->count, at->ns, at->cpu, at->counted, at->objects, at->gc};
        pw_buffer_row(columns, values, 7);
        at->changed = false;
        rows++;
    }
    if (rows) pw_writer_table(&pw_out.writer, "TEST", 1, (uint64_t[]){rows}, 7, columns);
    pw_buffers_free(columns, 7);
}

static void
write_rows(bool last)
{
    write_sets();
    pw_queries_write();
    write_marks();
    write_works();
    pw_work_counters_write();
    write_tests();
}

/* ---- a recording's beginning and end ---- */

static void
prepare(void)
{
    state.generation++;
    pw_works_reset();
    pw_work_counters_reset();
}

static void
end(void)
{
    if (!state.hooked) return;
    state.hooked = false;
    rb_remove_event_hook((rb_event_hook_func_t)on_switch);
}

static void
forget(bool frees)
{
    if (frees) {
        pw_buffer_free(&labels.ids);
        pw_buffer_free(&labels.names);
        pw_buffer_free(&labels.values);
        free(labels.works);
        free(labels.tests);
        for (uint32_t i = 0; i < labels.marks; i++) free(labels.slowest[i].parts);
    }
    pw_work_counters_forget(frees);
    memset(&labels, 0, sizeof labels);
}

static void
init(VALUE native)
{
    pw_drain_take(PW_REC_MARK, take_mark);
    state.variable = rb_intern("__pitwall_labels");
    state.fiber_class = rb_const_get(rb_cObject, rb_intern("Fiber"));
    rb_gc_register_mark_object(state.fiber_class);
    state.inherits = rb_respond_to(state.fiber_class, rb_intern("[]"));
    VALUE pitwall = rb_define_module("Pitwall");
    state.m_labels = rb_define_module_under(rb_define_module_under(pitwall, "Collect"), "Labels");
    rb_gc_register_mark_object(state.m_labels);
    state.m_tests = rb_define_module_under(rb_const_get(pitwall, rb_intern("Collect")), "Tests");
    rb_gc_register_mark_object(state.m_tests);
    rb_define_singleton_method(native, "label", native_label, 1);
    rb_define_singleton_method(native, "label_thread", native_label_thread, 2);
    rb_define_singleton_method(native, "label_define", native_label_define, 1);
    rb_define_singleton_method(native, "label_current?", native_label_current_p, 1);
    rb_define_singleton_method(native, "label_left_out", native_label_left_out, 0);
    rb_define_singleton_method(native, "now", native_now, 0);
    pw_works_init(native);
    pw_work_counters_init(native);
    rb_define_singleton_method(native, "mark", native_mark, 3);
    rb_define_singleton_method(native, "test", native_test, 4);
    rb_define_singleton_method(native, "thread_cpu", native_thread_cpu, 0);
    rb_define_singleton_method(native, "run_tests", native_run_tests, 1);
}

const pw_module pw_labels = {.init = init, .prepare = prepare, .end = end, .forget = forget, .write_rows = write_rows};
