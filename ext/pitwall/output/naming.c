/* Names for frames and threads. Runs with the GVL, from a postponed job or at stop; a frame is named once. */
#include "collectors/trace/calls.h"
#include "sampling/capture.h"
#include "output/intern.h"
#include "vm/known_frames.h"
#include "vm/valid_frames.h"
#include "sampler.h"
#include "collectors/syscalls/syscall_after.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The program waits for a job. The job ends after JOB_NS, and what has no name yet gets it at the next. One name can take longer: under
 * GC.stress each object that naming allocates costs a collection. So the next job comes no sooner than after REST times what the last one
 * took. */
enum { BATCH = 64, JOB_NS = 500000, REST = 20, LONGEST_REST_NS = 1000000000 };

static _Atomic int64_t rests_until; /* no job before */

static pw_job job;
static VALUE pending, kept; /* hold frames alive and in place: those not yet named; those named */

/* ---- marking ---- */

static void
mark_pending(void *unused)
{
    if (!pw_current.generation) return;
    /* A look from outside that is under way puts what it found into the ring first; one that begins now sees that garbage is collected
     * and does nothing. (gc.c sees to it already, except for collections that it is not told of: other Ractors'.) */
    if (pw_current.ticker && pw_looks_from_outside(pw_current.ticker)) pw_reader_pass();
    pw_gc_marks();
    pthread_mutex_lock(&pw_current.lock);
    /* Captured words may be anything, so they are marked as the machine stack is: only if they are objects. */
    pw_intern *t = &pw_current.tables;
    for (uint32_t i = t->unresolved_from; i < t->frame_count; i++) {
        rb_gc_mark_maybe(t->frames[i].frame);
        rb_gc_mark_maybe(t->frames[i].owner);
    }
    uint64_t offset = 0;
    for (pw_record_header *r; (r = pw_ring_scan(&pw_current.ring, &offset));) {
        const pw_sample *s = (const pw_sample *)r;
        if (r->kind == PW_REC_SYSCALL) continue;
        for (uint32_t i = 0; i < s->fresh + s->owned; i++) rb_gc_mark_maybe(s->frames[i]); /* owners follow frames */
    }
    for (pw_thread *thread = pw_current.threads; thread; thread = thread->next) rb_gc_mark(thread->thread);
    pw_collectors_mark();
    pthread_mutex_unlock(&pw_current.lock);
}

static void
mark_kept(void *unused)
{
    if (!pw_current.generation) return;
    pthread_mutex_lock(&pw_current.lock);
    pw_intern *t = &pw_current.tables;
    for (uint32_t i = 0; i < t->unresolved_from; i++) {
        if (t->frames[i].frame && !RB_SPECIAL_CONST_P(t->frames[i].frame)) rb_gc_mark(t->frames[i].frame);
        if (!RB_SPECIAL_CONST_P(t->frames[i].owner)) rb_gc_mark(t->frames[i].owner);
    }
    pthread_mutex_unlock(&pw_current.lock);
}

static const rb_data_type_t pending_type = {"Pitwall/pending frames", {mark_pending, NULL, NULL}, .flags = 0};
/* Write-barrier protected: minor collections leave it alone. */
static const rb_data_type_t kept_type = {"Pitwall/named frames", {mark_kept, NULL, NULL}, .flags = RUBY_TYPED_WB_PROTECTED};

/* ---- names ---- */

typedef struct {
    VALUE frame, owner;  /* in; 0 after describe: is none */
    uint8_t kind;        /* out */
    uint32_t first_line;
    VALUE name, path;    /* Strings */
    bool ownerless;      /* a method's code, and no look has told whose it is */
} description;

static const char *
last_path_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool
starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* "block (2 levels) in " and the like: all of the label before the method's or body's own name. */
static long
prefix_length(const char *label)
{
    if (!starts_with(label, "block") && !starts_with(label, "rescue in ") && !starts_with(label, "ensure in ")) return 0;
    const char *end = label;
    for (const char *at; (at = strstr(end, " in ")) != NULL;) end = at + 4;
    return end - label;
}

/* The address of what has no name, e.g. #<Class:0x000...>, says nothing, and differs in every run. */
static VALUE
without_address(const char *path, const char *address, bool singleton)
{
    bool module = starts_with(path, "#<Module:"), nameless = module || starts_with(path, "#<Class:") || starts_with(path, "#<#<");
    if (!singleton || nameless) return rb_str_new_cstr(module ? "(anonymous module)" : "(anonymous class)");
    return rb_sprintf("%.*s>", (int)(address - path), path); /* one object's own method: #<Object> */
}

static bool
same_text(VALUE a, VALUE b)
{
    return RB_TYPE_P(a, T_STRING) && RB_TYPE_P(b, T_STRING) && rb_str_equal(a, b) == Qtrue;
}

static VALUE environment; /* ENV */

/* A C function's class as Ruby names it, without an address. ENV is an object with methods of its own: all its methods are C functions. */
static VALUE
c_function_owner(VALUE path, bool singleton)
{
    const char *text = StringValueCStr(path), *address = starts_with(text, "#<") ? strstr(text, ":0x") : NULL;
    if (!address) return path;
    if (singleton && same_text(path, rb_any_to_s(environment))) return rb_str_new_cstr("ENV");
    return without_address(text, address, singleton);
}

/* As Ruby's rb_profile_frame_qualified_method_name, but for the class. nil: what it is is not known. */
static VALUE
describe_c_function(VALUE frame)
{
    VALUE path = rb_profile_frame_classpath(frame), method = rb_profile_frame_method_name(frame);
    if (!RB_TYPE_P(method, T_STRING)) return rb_profile_frame_full_label(frame);
    if (!RB_TYPE_P(path, T_STRING) || RSTRING_LEN(path) == 0) return method;
    bool singleton = RTEST(rb_profile_frame_singleton_method_p(frame));
    return rb_sprintf("%" PRIsVALUE "%s%" PRIsVALUE, c_function_owner(path, singleton), singleton ? "." : "#", method);
}

static long
first_line_of(VALUE frame)
{
    VALUE line = rb_profile_frame_first_lineno(frame);
    return RB_FIXNUM_P(line) ? FIX2LONG(line) : 0;
}

/* Is the owner a method that this iseq belongs to? A frame caught half pushed can have another's. The base label of all
 * that is written in a method is the method's. */
static bool
owner_fits(VALUE owner, VALUE frame)
{
    if (RB_SPECIAL_CONST_P(owner) || owner == frame || !pw_frame_valid(owner) || !pw_method_is_ruby(owner)) return false;
    return same_text(rb_profile_frame_base_label(frame), rb_profile_frame_base_label(owner));
}

/* Is it a method's code whose owner was not told, or another's was, as the frame came or went at that moment? Where there is none (a
 * Ractor's block), or it is no method written in Ruby (define_method), it is named by where it is written. */
static bool
lacks_owner(VALUE owner, VALUE frame)
{
    if (!owner || !pw_walk_in_use() || !pw_frame_is_iseq(frame)) return false;
    if (owner != PW_DOUBTFUL && (!pw_frame_valid(owner) || !pw_method_is_ruby(owner))) return false;
    return RB_TYPE_P(rb_profile_frame_method_name(frame), T_STRING);
}

/* The same method's other frames may have told whose it is: of the methods of its name in its file the one that begins last before it. */
static VALUE
owner_of_others(VALUE frame)
{
    VALUE owners[BATCH], best = 0; /* on the machine stack: kept alive and in place */
    VALUE base = rb_profile_frame_base_label(frame), path = rb_profile_frame_path(frame);
    long line = first_line_of(frame), best_line = 0;
    pw_intern *t = &pw_current.tables;
    for (uint32_t i = 0, n = BATCH; n == BATCH;) {
        pthread_mutex_lock(&pw_current.lock);
        for (n = 0; i < t->unresolved_from && n < BATCH; i++) {
            if (!RB_SPECIAL_CONST_P(t->frames[i].owner)) owners[n++] = t->frames[i].owner;
        }
        pthread_mutex_unlock(&pw_current.lock);
        for (uint32_t at = 0; at < n; at++) {
            long its = first_line_of(owners[at]);
            if (its > line || its <= best_line || !same_text(base, rb_profile_frame_base_label(owners[at]))) continue;
            if (same_text(path, rb_profile_frame_path(owners[at]))) best = owners[at], best_line = its;
        }
    }
    return best;
}

/* Methods are named Class#method or Class.method with the class path; bodies (<main>, <class:Foo>) as Ruby labels them;
 * what has no name of its own says where it was defined. Labels changed in 3.4 (they carry the class), base labels didn't. */
static VALUE
describe_ruby(VALUE frame, VALUE owner, const char *file, uint32_t line)
{
    VALUE label = rb_profile_frame_label(frame), base = rb_profile_frame_base_label(frame);
    VALUE classpath = rb_profile_frame_classpath(owner);
    VALUE method = rb_profile_frame_method_name(owner);
    if (!RB_TYPE_P(label, T_STRING)) label = rb_str_new_cstr("?");
    if (!RB_TYPE_P(base, T_STRING)) base = label;
    VALUE name = rb_str_new(RSTRING_PTR(label), prefix_length(StringValueCStr(label)));
    bool body = RSTRING_LEN(base) > 1 && RSTRING_PTR(base)[0] == '<' && isalpha((unsigned char)RSTRING_PTR(base)[1]); /* no operator */
    bool anonymous = false;
    if (RB_TYPE_P(method, T_STRING) && RB_TYPE_P(classpath, T_STRING) && RSTRING_LEN(classpath) > 0 && !body) {
        bool singleton = RTEST(rb_profile_frame_singleton_method_p(owner));
        const char *path = StringValueCStr(classpath);
        if (starts_with(path, "#<")) {
            const char *address = strstr(path, ":0x");
            anonymous = address != NULL;
            if (anonymous) classpath = without_address(path, address, singleton);
        }
        rb_str_append(name, classpath);
        rb_str_cat_cstr(name, singleton ? "." : "#");
    }
    rb_str_append(name, base);
    if (anonymous || (body && RSTRING_LEN(name) > RSTRING_LEN(base))) {
        rb_str_catf(name, " (%s:%u)", last_path_part(file), line);
    }
    return name;
}

/* As Ruby names a C function whose method entry it has. No method of the program is called: a class's own `inspect` or `name`
 * may do anything. */
static VALUE
describe_called(VALUE frame)
{
    const pw_call_key *key = pw_call_key_of_frame(frame);
    if (!key) return rb_str_new_cstr("?");
    VALUE klass = key->a, path = Qnil, name = rb_id2str((ID)key->b);
    bool is_module = RB_TYPE_P(klass, T_CLASS) || RB_TYPE_P(klass, T_MODULE);
    VALUE attached = is_module ? pw_attached_object(klass) : Qundef;
    bool singleton = attached != Qundef;
    if (singleton && !RB_TYPE_P(attached, T_CLASS) && !RB_TYPE_P(attached, T_MODULE)) {
        path = c_function_owner(rb_any_to_s(attached), true); /* one object's own method */
    }
    else if (is_module) {
        path = rb_class_path(singleton ? attached : klass);
        const char *text = StringValueCStr(path);
        if (starts_with(text, "#<") && strstr(text, ":0x")) path = without_address(text, strstr(text, ":0x"), false);
    }
    if (!RB_TYPE_P(path, T_STRING)) return RB_TYPE_P(name, T_STRING) ? name : rb_str_new_cstr("(C function)");
    return rb_sprintf("%" PRIsVALUE "%s%" PRIsVALUE, path, singleton ? "." : "#", RB_TYPE_P(name, T_STRING) ? name : rb_str_new_cstr("?"));
}

static VALUE
describe(VALUE argument)
{
    description *d = (description *)argument;
    d->name = d->path = Qnil;
    d->first_line = 0;
    d->ownerless = false;
    if (RB_SPECIAL_CONST_P(d->frame)) {
        d->owner = 0;
        static const char *const names[] = {"", "(marking)", "(sweeping)", "(stack cut here)", "(not sampled)", "(not traced)"};
        long which = FIX2LONG(d->frame);
        d->kind = which >= PW_FRAME_CALLED ? PW_KIND_C : which <= 2 ? PW_KIND_GC : PW_KIND_OURS;
        if (which >= PW_FRAME_CALLED) d->name = describe_called(d->frame);
        else d->name = rb_str_new_cstr(which >= 1 && which <= 5 ? names[which] : "?");
        return Qnil;
    }
    if (!pw_frame_valid(d->frame)) {
        pw_count(PW_REFUSED, 1);
        d->kind = PW_KIND_OURS;
        d->name = rb_str_new_cstr("(unreadable frame)");
        d->frame = d->owner = 0;
        return Qnil;
    }
    if (!owner_fits(d->owner, d->frame)) {
        d->ownerless = lacks_owner(d->owner, d->frame);
        d->owner = d->ownerless ? owner_of_others(d->frame) : 0;
    }
    VALUE path = rb_profile_frame_absolute_path(d->frame);
    if (!RB_TYPE_P(path, T_STRING)) path = rb_profile_frame_path(d->frame);
    long line = first_line_of(d->frame);
    if (line > 0) d->first_line = (uint32_t)line;
    bool c_function = !RB_TYPE_P(path, T_STRING) || rb_str_equal(path, rb_str_new_cstr("<cfunc>")) == Qtrue;
    if (c_function) {
        d->kind = PW_KIND_C;
        d->name = describe_c_function(d->frame);
        if (!RB_TYPE_P(d->name, T_STRING)) d->name = rb_str_new_cstr("(C function)");
        return Qnil;
    }
    d->kind = PW_KIND_RUBY;
    d->path = path;
    d->name = describe_ruby(d->frame, d->owner ? d->owner : d->frame, StringValueCStr(path), d->first_line);
    return Qnil;
}

static VALUE
describe_name(VALUE argument)
{
    describe(argument);
    return ((description *)argument)->name;
}

VALUE
pw_frame_name(VALUE frame, VALUE owner)
{
    description d = {.frame = frame, .owner = owner};
    int error = 0;
    VALUE saved = rb_errinfo(), name = rb_protect(describe_name, (VALUE)&d, &error);
    if (error) rb_set_errinfo(saved);
    return !error && RB_TYPE_P(name, T_STRING) ? name : Qnil;
}

/* One batch, or what of it can be named until then; false when nothing is left. The lock is not held while Ruby runs: naming allocates,
 * which may collect, which marks. */
static bool
resolve_batch(int64_t until)
{
    VALUE frames[BATCH], owners[BATCH]; /* on the machine stack: kept alive and in place */
    uint32_t ids[BATCH], n = 0, resets;
    pw_intern *t = &pw_current.tables;

    pthread_mutex_lock(&pw_current.lock);
    resets = (uint32_t)pw_counter(PW_RESETS);
    uint32_t from = t->unresolved_from;
    for (uint32_t i = from; i < t->frame_count && n < BATCH; i++, n++) {
        frames[n] = t->frames[i].frame;
        owners[n] = t->frames[i].owner;
        ids[n] = t->frames[i].id;
    }
    pthread_mutex_unlock(&pw_current.lock);

    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && pw_now_ns() >= until) return true;
        description d = {.frame = frames[i], .owner = owners[i]};
        int error = 0;
        VALUE saved = rb_errinfo();
        rb_protect(describe, (VALUE)&d, &error);
        if (error) {
            rb_set_errinfo(saved);
            d.kind = PW_KIND_OURS;
            d.name = Qnil;
            d.owner = 0;
        }
        const char *name = RB_TYPE_P(d.name, T_STRING) ? RSTRING_PTR(d.name) : "(unnamed frame)";
        size_t name_size = RB_TYPE_P(d.name, T_STRING) ? (size_t)RSTRING_LEN(d.name) : strlen(name);
        bool has_path = RB_TYPE_P(d.path, T_STRING);

        pthread_mutex_lock(&pw_current.lock);
        bool same_tables = resets == (uint32_t)pw_counter(PW_RESETS);
        if (d.ownerless && !d.owner && same_tables && !t->frames[from + i].waited) {
            t->frames[from + i].owner = 0;
            t->frames[from + i].waiting = true;
            t->unresolved_from = from + i + 1;
            pthread_mutex_unlock(&pw_current.lock);
            RB_OBJ_WRITTEN(kept, Qundef, d.frame);
            continue;
        }
        pw_buffer_int(&pw_current.frame_ids, ids[i]);
        pw_buffer_int(&pw_current.frame_kinds, d.kind);
        pw_buffer_int(&pw_current.frame_names, pw_intern_string(t, name, name_size));
        pw_buffer_int(&pw_current.frame_paths,
                      has_path ? pw_intern_string(t, RSTRING_PTR(d.path), (size_t)RSTRING_LEN(d.path)) : 0);
        pw_buffer_int(&pw_current.frame_lines, d.first_line);
        pw_current.named_frames++;
        if (same_tables) {
            if (d.frame == 0) t->frames[from + i].frame = 0;
            t->frames[from + i].owner = d.owner;
            t->frames[from + i].resolved = true;
            t->unresolved_from = from + i + 1;
            if (d.frame && !RB_SPECIAL_CONST_P(d.frame)) pw_known_add(d.frame);
        }
        pthread_mutex_unlock(&pw_current.lock);
        if (same_tables && d.frame && !RB_SPECIAL_CONST_P(d.frame)) RB_OBJ_WRITTEN(kept, Qundef, d.frame);
        if (same_tables && d.owner) RB_OBJ_WRITTEN(kept, Qundef, d.owner);
        RB_GC_GUARD(d.name);
        RB_GC_GUARD(d.path);
    }
    return n == BATCH;
}

/* ---- threads ---- */

static VALUE
thread_name(VALUE thread)
{
    VALUE name = rb_funcall(thread, rb_intern("name"), 0);
    if (RB_TYPE_P(name, T_STRING) && RSTRING_LEN(name) > 0) return name;
    if (thread == rb_thread_main()) return rb_str_new_cstr("main");
    /* #<Thread:0x0000 /path/x.rb:12 run> */
    VALUE text = rb_funcall(thread, rb_intern("to_s"), 0);
    const char *from = strchr(StringValueCStr(text), ' '), *to = from ? strrchr(from + 1, ' ') : NULL;
    if (!from || !to) return rb_str_new_cstr("thread");
    VALUE place = rb_str_new(from + 1, to - from - 1);
    return rb_str_new_cstr(last_path_part(StringValueCStr(place)));
}

void
pw_name_thread(VALUE thread)
{
    int error = 0;
    VALUE saved = rb_errinfo();
    VALUE name = rb_protect(thread_name, thread, &error);
    if (error) {
        rb_set_errinfo(saved);
        name = Qnil;
    }
    pthread_mutex_lock(&pw_current.lock);
    pw_thread *t = pw_current.threads;
    while (t && (t->thread != thread || t->finished)) t = t->next; /* it may have ended while Ruby looked for its name */
    if (t) {
        uint32_t name_id = RB_TYPE_P(name, T_STRING) ? pw_intern_string(&pw_current.tables, RSTRING_PTR(name), (size_t)RSTRING_LEN(name)) : 0;
        if (name_id != t->name_id) {
            t->name_id = name_id;
            t->announced = false;
        }
        t->named = true;
    }
    pthread_mutex_unlock(&pw_current.lock);
    RB_GC_GUARD(name);
}

static void
name_threads(bool again)
{
    VALUE threads[BATCH]; /* on the machine stack: kept alive */
    int n = 0;
    pthread_mutex_lock(&pw_current.lock);
    for (pw_thread *t = pw_current.threads; t && n < BATCH; t = t->next) {
        if (t->finished || (t->named && !again)) continue;
        threads[n++] = t->thread;
    }
    pthread_mutex_unlock(&pw_current.lock);
    for (int i = 0; i < n; i++) pw_name_thread(threads[i]);
    RB_GC_GUARD(threads[0]);
}

static void
run_job(void *unused)
{
    if (!pw_session_generation()) return;
    int64_t began = pw_now_ns(), cpu_began = pw_own_cpu_ns(); /* a stopped process rests for no work of ours */
    pw_own_begin();
    name_threads(false);
    while (resolve_batch(began + JOB_NS) && pw_now_ns() - began < JOB_NS) {}
    pw_own_end();
    int64_t ended = pw_now_ns();
    int64_t rest = (pw_own_cpu_ns() - cpu_began) * REST;
    atomic_store(&rests_until, ended + (rest < LONGEST_REST_NS ? rest : LONGEST_REST_NS));
    pw_count(PW_NAMING_NS, ended - began);
}

static _Atomic bool wanted;

void
pw_resolve_trigger(void)
{
    if (pw_now_ns() < atomic_load(&rests_until)) return;
    if (pw_may_trigger()) pw_job_trigger(&job);
    else atomic_store(&wanted, true);
}

bool pw_resolve_wanted(void) { return atomic_load_explicit(&wanted, memory_order_relaxed); }

void
pw_resolve_if_wanted(void)
{
    if (atomic_load_explicit(&wanted, memory_order_relaxed) && pw_may_trigger() && atomic_exchange(&wanted, false)) {
        pw_job_trigger(&job);
    }
}

void
pw_resolve_all(void)
{
    int64_t began = pw_now_ns();
    name_threads(true);
    atomic_store(&rests_until, 0);
    while (resolve_batch(INT64_MAX)) {} /* first, as these may tell the others' owners */
    pthread_mutex_lock(&pw_current.lock);
    pw_intern_end_waiting(&pw_current.tables);
    pthread_mutex_unlock(&pw_current.lock);
    while (resolve_batch(INT64_MAX)) {}
    pw_count(PW_NAMING_NS, pw_now_ns() - began);
}

void
pw_resolve_init(void)
{
    if (!pw_job_init(&job, run_job)) rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
    pending = TypedData_Wrap_Struct(rb_cObject, &pending_type, (void *)1);
    rb_gc_register_mark_object(pending);
    kept = TypedData_Wrap_Struct(rb_cObject, &kept_type, (void *)1);
    rb_gc_register_mark_object(kept);
    environment = rb_const_get(rb_cObject, rb_intern("ENV"));
    rb_gc_register_mark_object(environment);
}
