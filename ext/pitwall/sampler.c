#include "sampler.h"
#include "capture.h"
#include "compress.h"
#include "gc_log.h"
#include "known_frames.h"
#include "tracer.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

pw_session pw_current = {.writer = {.fd = -1}};

/* Holds what the deepest stacks write between two visits of the drain, and fits a second-level cache. */
#define RING_BYTES (1u << 20)

static _Atomic uint32_t live_generation; /* the generation that takes samples, or 0 */
static uint32_t generations;
static _Atomic int handlers;             /* running right now */
static _Atomic int64_t counters[PW_COUNTERS];
static pw_thread *_Atomic slots[PW_SLOTS];
static pthread_key_t thread_exit_key;
static pw_job fork_job;
static _Atomic bool forked; /* this process is a fresh child of a recorded one */
static VALUE m_native;

uint32_t
pw_session_generation(void)
{
    return atomic_load_explicit(&live_generation, memory_order_acquire);
}

pw_ring *pw_session_ring(void) { return &pw_current.ring; }

void
pw_count(int counter, int64_t n)
{
    atomic_fetch_add_explicit(&counters[counter], n, memory_order_relaxed);
}

int64_t
pw_counter(int counter)
{
    return atomic_load_explicit(&counters[counter], memory_order_relaxed);
}

bool
pw_enter_handler(void)
{
    atomic_fetch_add(&handlers, 1);
    if (pw_session_generation()) return true;
    atomic_fetch_sub(&handlers, 1);
    return false;
}

void
pw_leave_handler(void)
{
    atomic_fetch_sub(&handlers, 1);
}

/* All threads tick on one grid that starts with the session; what is due is asked of the grid, never of the last tick,
 * so ticks that come late do not shift those that follow. */
int64_t
pw_last_tick(int64_t now)
{
    int64_t since = now - pw_current.origin;
    return since < 0 ? pw_current.origin - pw_current.interval_ns : now - since % pw_current.interval_ns;
}

int64_t
pw_next_tick(int64_t now)
{
    return pw_last_tick(now) + pw_current.interval_ns;
}

int
pw_start_quiet_thread(pthread_t *thread, void *(*body)(void *))
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, body, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* ---- threads ---- */

pw_thread *
pw_thread_at(uint32_t slot, uint32_t id)
{
    pw_thread *t = slot < PW_SLOTS ? atomic_load_explicit(&slots[slot], memory_order_acquire) : NULL;
    return t && t->id == id && t->generation == pw_session_generation() ? t : NULL;
}

static pw_thread *
find_thread(VALUE thread)
{
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (t->thread == thread && !t->finished) return t;
    }
    return NULL;
}

static void
enter_here(pw_thread *t)
{
    pw_tls.thread = t;
    pw_tls.generation = t->generation;
    pw_tls.ended = 0;
    pthread_setspecific(thread_exit_key, t); /* Ruby may end a thread without telling: its native thread tells */
}

static pw_thread *
add_thread(VALUE thread, pid_t tid)
{
    static uint32_t last_slot;
    for (uint32_t i = 0; i < PW_SLOTS; i++) {
        uint32_t slot = (last_slot + 1 + i) % PW_SLOTS;
        if (atomic_load(&slots[slot])) continue;
        pw_thread *t = pw_thread_new(thread, tid, pw_current.next_thread_id, pw_current.generation);
        if (!t) break;
        pw_current.next_thread_id++;
        last_slot = t->slot = slot;
        if (!pw_thread_states()) atomic_store(&t->state, PW_UNKNOWN);
        t->row_wall = atomic_load(&t->last_wall) / pw_current.unit_ns;
        t->row_cpu = atomic_load(&t->last_cpu) / pw_current.unit_ns;
        t->next = pw_current.threads;
        pw_current.threads = t;
        atomic_store_explicit(&slots[slot], t, memory_order_release);
        return t;
    }
    pw_count(PW_TIMERS_REFUSED, 1);
    return NULL;
}

pw_thread *
pw_register_thread(VALUE thread, pid_t tid, bool caller)
{
    pthread_mutex_lock(&pw_current.lock);
    pw_thread *t = find_thread(thread);
    bool is_new = !t && (t = add_thread(thread, tid));
    pthread_mutex_unlock(&pw_current.lock);
    if (!t) return NULL;
    if (is_new) pw_thread_remember(t);
    if (caller) enter_here(t);
    else if (pw_thread_states()) atomic_store(&t->state, PW_BLOCKED); /* the caller has the GVL, so this one has not */
    if (is_new && tid) pw_current.ticker->thread_begin(t);
    return t;
}

void
pw_thread_ended(pw_thread *t)
{
    uint32_t generation = t->generation;
    t->busy = 1;
    pw_current.ticker->thread_end(t);
    atomic_store(&slots[t->slot], NULL);
    pw_tls.thread = NULL;
    pw_tls.ended = generation;
    pthread_setspecific(thread_exit_key, NULL);
    int64_t wall = pw_now_ns(), cpu = pw_thread_cpu(t);
    uint8_t state = pw_thread_states() ? PW_RUNNING : PW_UNKNOWN;
    t->finished = true; /* from here on the drain may free it: END is the last touch */
    for (int tries = 0; tries < 2000; tries++) {
        if (pw_charge(t, PW_REC_END, state, wall, cpu)) return;
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL); /* the ring is full; the drain empties it within 50 ms */
    }
    pw_count(PW_DROPPED, 1);
}

void
pw_thread_vanished(pw_thread *t)
{
    t->finished = true;
    int64_t wall = atomic_load(&t->last_wall), cpu = atomic_load(&t->last_cpu);
    uint32_t slot = t->slot;
    atomic_store(&slots[slot], NULL);
    if (pw_charge(t, PW_REC_END, PW_UNKNOWN, wall, cpu)) { /* the drain takes its timer away and frees it */
        pw_tls.thread = NULL;
        return;
    }
    atomic_store(&slots[slot], t); /* the ring is full: at the next tick */
    t->finished = false;
}

static void
native_thread_exits(void *thread)
{
    pw_tls.pinned = 1;
    atomic_signal_fence(memory_order_seq_cst);
    pw_thread *t = pw_self();
    if (t && t == thread && pw_enter_handler()) {
        pw_thread_ended(t);
        pw_leave_handler();
    }
    pw_tls.pinned = 0;
}

/* A thread that still waits for its first turn has no execution context, and looking for its frames crashes Ruby before 3.3.
 * It will tell itself that it begins. */
static bool
has_begun(VALUE thread)
{
    VALUE backtrace = rb_funcall(thread, rb_intern("backtrace"), 2, INT2FIX(0), INT2FIX(1));
    return RB_TYPE_P(backtrace, T_ARRAY) && RARRAY_LEN(backtrace) > 0;
}

static VALUE
register_others(VALUE native_thread_ids)
{
    /* [[thread, native id], ...] of the threads that lived before start */
    for (long i = 0; i < RARRAY_LEN(native_thread_ids); i++) {
        VALUE pair = rb_ary_entry(native_thread_ids, i);
        VALUE thread = rb_ary_entry(pair, 0), tid = rb_ary_entry(pair, 1);
        if (!RB_FIXNUM_P(tid) || thread == rb_thread_current() || !has_begun(thread)) continue;
        pw_register_thread(thread, (pid_t)FIX2LONG(tid), false);
    }
    return Qnil;
}

/* ---- collectors ---- */

const pw_collector *const pw_collectors[] = {&pw_allocations, &pw_tracer};
__thread int pw_own_work __attribute__((tls_model("initial-exec")));

static bool asked_for(int i) { return pw_current.collecting >> i & 1; }

void
pw_collectors_write(bool last)
{
    for (int i = 0; i < PW_COLLECTORS; i++) {
        if (asked_for(i)) pw_collectors[i]->write(last);
    }
}

void
pw_collectors_mark(void)
{
    for (int i = 0; i < PW_COLLECTORS; i++) {
        if (asked_for(i)) pw_collectors[i]->mark();
    }
}

void
pw_own_begin(void)
{
    if (pw_own_work++ > 0) return;
    for (int i = 0; i < PW_COLLECTORS; i++) {
        if (asked_for(i) && pw_collectors[i]->own_begin) pw_collectors[i]->own_begin();
    }
}

void
pw_own_end(void)
{
    if (--pw_own_work > 0) return;
    for (int i = 0; i < PW_COLLECTORS; i++) {
        if (asked_for(i) && pw_collectors[i]->own_end) pw_collectors[i]->own_end();
    }
}

static void
collectors_stop(void)
{
    for (int i = 0; i < PW_COLLECTORS; i++) {
        if (asked_for(i)) pw_collectors[i]->stop();
    }
}

static void
collectors_forget(bool frees)
{
    for (int i = 0; i < PW_COLLECTORS; i++) {
        if (asked_for(i)) pw_collectors[i]->forget(frees);
    }
    pw_current.collecting = 0;
}

/* `wanted`: {"name" => {"option" => "value"}} */
static const char *
collectors_start(VALUE wanted)
{
    VALUE settings[PW_COLLECTORS]; /* all looked up before any starts: a name made later would be counted as the program's */
    for (int i = 0; i < PW_COLLECTORS; i++) settings[i] = rb_hash_lookup(wanted, rb_str_new_cstr(pw_collectors[i]->name));
    for (int i = 0; i < PW_COLLECTORS; i++) {
        if (!RB_TYPE_P(settings[i], T_HASH)) continue;
        const char *refusal = pw_collectors[i]->start(settings[i]);
        if (refusal) return refusal;
        pw_current.collecting |= 1u << i;
    }
    return NULL;
}

/* ---- start and stop ---- */

static const char *
start_failure(const char *what, int error)
{
    static char text[200];
    snprintf(text, sizeof text, "%s: %s", what, strerror(error));
    return text;
}

static void
free_session(bool frees)
{
    pw_session *s = &pw_current;
    collectors_forget(frees);
    pw_gc_log_forget(frees);
    for (uint32_t i = 0; i < PW_SLOTS; i++) {
        if (atomic_load_explicit(&slots[i], memory_order_relaxed)) atomic_store(&slots[i], NULL);
    }
    for (pw_thread *t = s->threads, *next; t; t = next) {
        next = t->next;
        pw_thread_free(t);
    }
    s->threads = NULL;
    pw_ring_free(&s->ring);
    if (frees) {
        pw_intern_free(&s->tables);
        pw_rows_free();
        pw_buffer *buffers[] = {&s->frame_ids, &s->frame_kinds, &s->frame_names, &s->frame_paths, &s->frame_lines};
        for (int i = 0; i < 5; i++) pw_buffer_free(buffers[i]);
    }
    if (frees) {
        pthread_mutex_destroy(&s->lock);
        pthread_cond_destroy(&s->wake);
    }
    *s = (pw_session){.writer = {.fd = -1}};
}

/* start(path, append, head, interval_ns, unit_ns, flush_ns, mode, signo, others, collectors) -> nil or a String that says why not */
static VALUE
native_start(VALUE self, VALUE path, VALUE append, VALUE head, VALUE interval, VALUE unit, VALUE flush, VALUE mode,
             VALUE signo, VALUE others, VALUE collectors)
{
    pw_session *s = &pw_current;
    if (s->generation) rb_raise(rb_eRuntimeError, "already recording");
    FilePathValue(path);
    StringValue(head);
    Check_Type(others, T_ARRAY);
    Check_Type(collectors, T_HASH);
    const char *file = StringValueCStr(path);
    int64_t interval_ns = NUM2LL(interval), unit_ns = NUM2LL(unit), flush_ns = NUM2LL(flush);
    bool by_signal = rb_str_equal(mode, rb_str_new_cstr("signal")) == Qtrue;
    bool never = rb_str_equal(mode, rb_str_new_cstr("none")) == Qtrue;
    if (interval_ns < 1000 || unit_ns < 1 || flush_ns < 1) rb_raise(rb_eArgError, "interval, unit and flush must be positive");

    int signal_number = NUM2INT(signo);
    const char *failure = NULL;
    /* Before the file is opened: a refused start must not cost the recording that was there. */
    if (by_signal && pw_signal_taken(signal_number)) return rb_str_new_cstr("signal taken");
    int error = pw_writer_open(&s->writer, file, RTEST(append), RSTRING_PTR(head), (size_t)RSTRING_LEN(head));
    if (error) return rb_str_new_cstr(start_failure("cannot write the recording", error));

    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&s->lock, NULL);
    pw_intern_init(&s->tables);
    pw_known_clear();
    pw_rows_init();
    for (int i = 0; i < PW_COUNTERS; i++) atomic_store(&counters[i], 0);
    s->interval_ns = interval_ns;
    s->unit_ns = unit_ns;
    s->flush_ns = flush_ns;
    s->signo = signal_number;
    s->origin = pw_now_ns();
    s->started_process_cpu = pw_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    s->next_thread_id = 1;
    s->ticker = by_signal ? &pw_signal_ticker : never ? &pw_no_ticker : &pw_safepoint_ticker;
    if (!pw_ring_init(&s->ring, RING_BYTES)) failure = start_failure("no memory for the ring", ENOMEM);
    s->generation = ++generations ? generations : ++generations;
    atomic_store(&live_generation, s->generation);

    if (!failure && (error = pw_start_drain())) failure = start_failure("cannot start the drain thread", error);
    if (!failure && (error = s->ticker->start())) {
        failure = error == EBUSY ? "signal taken" : start_failure("cannot start ticking", error);
        atomic_store(&live_generation, 0);
        pw_stop_drain();
    }
    if (!failure && (failure = collectors_start(collectors))) {
        s->ticker->stop();
        atomic_store(&live_generation, 0);
        collectors_stop();
        pw_stop_drain();
    }
    if (failure) {
        VALUE text = rb_str_new_cstr(failure);
        atomic_store(&live_generation, 0);
        pw_writer_close(&s->writer);
        struct stat st;
        if (!RTEST(append) && stat(file, &st) == 0 && S_ISREG(st.st_mode)) unlink(file);
        free_session(true);
        return text;
    }
    pw_own_begin();
    pw_thread_events_start();
    pw_gc_start();
    pw_register_thread(rb_thread_current(), pw_gettid(), true);
    register_others(others);
    pw_own_end();
    return Qnil;
}

static VALUE
stop_stats(void)
{
    VALUE stats = rb_hash_new();
    static const struct { int counter; const char *name; } names[] = {
        {PW_TICKS, "ticks"}, {PW_CAPTURES, "captures"}, {PW_MISSED, "missed_ticks"}, {PW_DEFERRED, "deferred_ticks"},
        {PW_DROPPED, "dropped"}, {PW_REFUSED, "refused_frames"}, {PW_HANDLER_NS, "handler_ns"}, {PW_NAMING_NS, "naming_ns"}, {PW_RESETS, "resets"},
        {PW_SIGNAL_LOST, "signal_lost"}, {PW_GC_COUNT, "gc_count"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rb_hash_aset(stats, ID2SYM(rb_intern(names[i].name)), LL2NUM(pw_counter(names[i].counter)));
    }
    rb_hash_aset(stats, ID2SYM(rb_intern("own_cpu_ns")), LL2NUM(pw_current.drain_cpu));
    rb_hash_aset(stats, ID2SYM(rb_intern("write_error")), INT2NUM(pw_current.writer.error));
    rb_hash_aset(stats, ID2SYM(rb_intern("bytes")), LL2NUM(pw_current.writer.written));
    return stats;
}

/* stop(reason) -> Hash of counters */
static VALUE
native_stop(VALUE self, VALUE reason)
{
    pw_session *s = &pw_current;
    if (!s->generation || s->stopping) rb_raise(rb_eRuntimeError, "not recording"); /* naming lets other threads run */
    const char *why = StringValueCStr(reason);
    s->ticker->stop();
    collectors_stop();
    atomic_store(&live_generation, 0);
    while (atomic_load(&handlers) > 0) { /* a handler of another thread is at work, for microseconds */
        struct timespec pause = {0, 20000};
        nanosleep(&pause, NULL);
    }
    pw_thread_events_stop();
    pw_gc_stop();
    pw_stop_drain();
    pw_resolve_all();
    pw_final_flush(why);
    VALUE stats = stop_stats();
    pw_writer_close(&s->writer);
    free_session(true);
    return stats;
}

static VALUE
native_recording_p(VALUE self)
{
    return pw_current.generation ? Qtrue : Qfalse;
}

/* ---- fork ---- */

static void
before_fork(void)
{
    if (pw_current.generation) pthread_mutex_lock(&pw_current.lock);
}

static void
after_fork_in_parent(void)
{
    if (pw_current.generation) pthread_mutex_unlock(&pw_current.lock);
}

/* The child has one thread, no timers and no drain. What the parent recorded is the parent's. A new recording is opened
 * only when the child runs Ruby again: most children exec at once. */
static void
after_fork_in_child(void)
{
    if (!pw_current.generation) return;
    atomic_store(&live_generation, 0);
    atomic_store(&handlers, 0);
    pw_tls = (pw_self_slot){0};
    pthread_setspecific(thread_exit_key, NULL);
    pw_writer_abandon(&pw_current.writer);
    pthread_mutex_init(&pw_current.lock, NULL); /* before_fork holds it; collections before the job will want it */
    atomic_store(&forked, true);
    pw_job_trigger(&fork_job);
}

static VALUE
tell_child(VALUE unused)
{
    rb_funcall(m_native, rb_intern("forked"), 0);
    return Qnil;
}

static void
run_fork_job(void *unused)
{
    if (!atomic_exchange(&forked, false)) return;
    int error = 0;
    VALUE saved = rb_errinfo();
    pw_thread_events_stop();
    pw_gc_stop();
    collectors_stop();
    if (pw_current.ticker) pw_current.ticker->stop_in_child();
    pw_current.threads = NULL;      /* their memory is a copy of the parent's; forgotten, not freed, */
    free_session(false);            /* for a buffer may have been growing when the process was copied */
    rb_protect(tell_child, Qnil, &error);
    if (error) rb_set_errinfo(saved);
}

void
Init_pitwall_sampler(VALUE native)
{
    m_native = native;
    pw_crc32_init();
    pw_capture_init();
    pw_resolve_init();
    pw_thread_events_init();
    pw_gc_init(native);
    Init_pitwall_allocations(native);
    pw_tracer_init(native);
    pthread_key_create(&thread_exit_key, native_thread_exits);
    if (!pw_job_init(&fork_job, run_fork_job)) rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    rb_define_singleton_method(native, "start", native_start, 10);
    rb_define_singleton_method(native, "stop", native_stop, 1);
    rb_define_singleton_method(native, "recording?", native_recording_p, 0);
}
