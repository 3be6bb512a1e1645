#include "labels.h"
#include "buffer.h"
#include "capture.h"
#include "sampler.h"

/* Of all work that ends between two flushes, so much of the slowest is kept one by one; the rest is counted. */
enum { SLOWEST = 64 };

typedef struct { uint32_t thread, label; int64_t end, ns; } mark;
typedef struct { uint64_t count, ns; bool changed; } work;

static struct {
    uint32_t last, pending;      /* sets defined; rows not yet written */
    pw_buffer ids, names, values;
    mark slowest[SLOWEST];
    uint32_t marks;
    work *works;                 /* by label */
    uint32_t room;
} labels;

static uint32_t generation; /* of the numbers; a fiber may come back with one of an earlier recording */
static bool hooked, inherits; /* fibers have storage that those created in them inherit (Ruby 3.2) */
static ID variable;
static VALUE fiber_class, m_labels;

/* ---- the running fiber's set ---- */

static VALUE
again(VALUE set)
{
    return rb_funcall(m_labels, rb_intern("again"), 1, set);
}

/* Numbers as Ruby holds them carry the generation: one word, so that nobody sees half of it change. */
enum { ID_BITS = 20 };
static VALUE number_for(uint32_t id) { return ULL2NUM((uint64_t)generation << ID_BITS | id); }

static bool
is_current(VALUE number)
{
    return RB_FIXNUM_P(number) && (uint64_t)FIX2LONG(number) >> ID_BITS == generation;
}

/* The id of a Collect::Labels::Set in this recording, 0 for nil. Nothing else runs between its last look and the return. */
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

/* A fiber that has none of its own yet has what it was created under, if that was in this thread: a thread may be a pool's, and
 * outlive the block it was started in. */
static VALUE
inherited(VALUE thread)
{
    if (!inherits) return Qnil;
    VALUE pair = rb_funcall(fiber_class, rb_intern("[]"), 1, ID2SYM(variable));
    if (!RB_TYPE_P(pair, T_ARRAY) || RARRAY_LEN(pair) != 2 || rb_ary_entry(pair, 0) != thread) return Qnil;
    VALUE set = rb_ary_entry(pair, 1);
    if (!rb_obj_frozen_p(thread)) rb_thread_local_aset(thread, variable, set);
    return set;
}

static VALUE
set_of_fiber(VALUE thread)
{
    VALUE set = rb_thread_local_aref(thread, variable);
    return NIL_P(set) ? inherited(thread) : set;
}

/* In the thread: from here on it works under `id`. */
static void
change_to(pw_thread *t, uint32_t id)
{
    if (!t || atomic_load_explicit(&t->label, memory_order_relaxed) == id) return;
    if (pw_current.ticker->label_ends) pw_current.ticker->label_ends(t);
    atomic_store_explicit(&t->label, id, memory_order_relaxed);
}

static void
on_switch(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass)
{
    pw_thread *t = pw_session_generation() ? pw_self() : NULL;
    if (!t) return;
    VALUE thread = rb_thread_current();
    if (t->thread != thread) return;
    uint32_t before = atomic_load_explicit(&t->label, memory_order_relaxed);
    if (!before && NIL_P(rb_thread_local_aref(thread, variable))) return;
    int error = 0;
    VALUE saved = rb_errinfo(), set = rb_protect(set_of_fiber, thread, &error);
    if (error) rb_set_errinfo(saved);
    uint32_t id_now = error ? 0 : id_of(set);
    change_to(pw_self(), id_now); /* another thread may have stopped the recording meanwhile */
}

/* Without thread events a thread that was there before the recording is known here from its first tick on; its work counts before. */
static pw_thread *
here(void)
{
    pw_thread *t = pw_self();
    if (t || pw_thread_states() || !pw_session_generation()) return t;
    return pw_register_thread(rb_thread_current(), pw_gettid(), true);
}

/* label(set or nil): of the calling thread from now on. */
static VALUE
native_label(VALUE self, VALUE set)
{
    if (!here()) return Qnil;
    uint32_t id = id_of(set);
    change_to(pw_self(), id);
    return Qnil;
}

/* label_thread(thread, set): of another one. */
static VALUE
native_label_thread(VALUE self, VALUE thread, VALUE set)
{
    uint32_t id = id_of(set);
    if (!pw_current.generation) return Qnil;
    pthread_mutex_lock(&pw_current.lock);
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (t->thread == thread && !t->finished) atomic_store_explicit(&t->label, id, memory_order_relaxed);
    }
    pthread_mutex_unlock(&pw_current.lock);
    return Qnil;
}

/* label_current?(number): is it of this recording? */
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
    if (!hooked) {
        hooked = true;
        rb_add_event_hook((rb_event_hook_func_t)on_switch, RUBY_EVENT_FIBER_SWITCH, Qnil);
    }
    pthread_mutex_lock(&pw_current.lock);
    uint32_t id = ++labels.last;
    for (long i = 0; i + 1 < n; i += 2) {
        VALUE name = rb_ary_entry(pairs, i), value = rb_ary_entry(pairs, i + 1);
        pw_buffer_int(&labels.ids, id);
        pw_buffer_int(&labels.names, pw_intern_string(&pw_current.tables, RSTRING_PTR(name), (size_t)RSTRING_LEN(name)));
        pw_buffer_int(&labels.values, pw_intern_string(&pw_current.tables, RSTRING_PTR(value), (size_t)RSTRING_LEN(value)));
        labels.pending++;
    }
    pthread_mutex_unlock(&pw_current.lock);
    RB_GC_GUARD(pairs);
    return number_for(id);
}

/* label_left_out: a block whose labels were too many. */
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

/* mark(began): work under the calling thread's labels that began then (see now) has ended. Through the ring: a thread that serves
 * must not wait for the drain. */
static VALUE
native_mark(VALUE self, VALUE began)
{
    int64_t from = NUM2LL(began);
    pw_thread *t = here();
    if (!t || !pw_enter_handler()) return Qnil;
    pw_put_mark(t, from, pw_now_ns());
    pw_leave_handler();
    return Qnil;
}

static work *
work_of(uint32_t label)
{
    if (label >= labels.room) {
        uint32_t room = labels.room ? labels.room : 64;
        while (room <= label) room *= 2;
        labels.works = pw_must(realloc(labels.works, room * sizeof(work)));
        memset(labels.works + labels.room, 0, (room - labels.room) * sizeof(work));
        labels.room = room;
    }
    return &labels.works[label];
}

void
pw_labels_mark(uint32_t thread, uint32_t label, int64_t end, int64_t ns)
{
    if (label > labels.last) return; /* of an earlier recording */
    work *w = work_of(label);
    w->count++;
    w->ns += (uint64_t)ns;
    w->changed = true;
    mark *at = &labels.slowest[labels.marks];
    if (labels.marks == SLOWEST) { /* the fastest gives way */
        at = labels.slowest;
        for (int i = 1; i < SLOWEST; i++) {
            if (labels.slowest[i].ns < at->ns) at = &labels.slowest[i];
        }
        if (at->ns >= ns) return;
    }
    else labels.marks++;
    *at = (mark){thread, label, end, ns};
}

/* ---- chunks ---- */

static void
write_sets(void)
{
    if (!labels.pending) return;
    pw_buffer columns[3] = {labels.ids, labels.names, labels.values};
    pw_writer_table(&pw_current.writer, "LABL", 1, (uint64_t[]){labels.pending}, 3, columns);
    labels.ids = columns[0], labels.names = columns[1], labels.values = columns[2];
    labels.pending = 0;
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
    }
    pw_writer_table(&pw_current.writer, "MARK", 1, (uint64_t[]){labels.marks}, 4, columns);
    pw_buffers_free(columns, 4);
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
    if (rows) pw_writer_table(&pw_current.writer, "WORK", 1, (uint64_t[]){rows}, 3, columns);
    pw_buffers_free(columns, 3);
}

bool pw_labels_used(void) { return labels.last > 0; }

void
pw_labels_write(void)
{
    write_sets();
    write_marks();
    write_works();
}

/* ---- a recording's beginning and end ---- */

void
pw_labels_start(void)
{
    generation++;
}

void
pw_labels_stop(void)
{
    if (!hooked) return;
    hooked = false;
    rb_remove_event_hook((rb_event_hook_func_t)on_switch);
}

void
pw_labels_forget(bool frees)
{
    if (frees) {
        pw_buffer_free(&labels.ids);
        pw_buffer_free(&labels.names);
        pw_buffer_free(&labels.values);
        free(labels.works);
    }
    memset(&labels, 0, sizeof labels);
}

void
pw_labels_init(VALUE native)
{
    variable = rb_intern("__pitwall_labels");
    fiber_class = rb_const_get(rb_cObject, rb_intern("Fiber"));
    rb_gc_register_mark_object(fiber_class);
    inherits = rb_respond_to(fiber_class, rb_intern("[]"));
    VALUE pitwall = rb_define_module("Pitwall");
    m_labels = rb_define_module_under(rb_define_module_under(pitwall, "Collect"), "Labels");
    rb_gc_register_mark_object(m_labels);
    rb_define_singleton_method(native, "label", native_label, 1);
    rb_define_singleton_method(native, "label_thread", native_label_thread, 2);
    rb_define_singleton_method(native, "label_define", native_label_define, 1);
    rb_define_singleton_method(native, "label_current?", native_label_current_p, 1);
    rb_define_singleton_method(native, "label_left_out", native_label_left_out, 0);
    rb_define_singleton_method(native, "now", native_now, 0);
    rb_define_singleton_method(native, "mark", native_mark, 1);
}
