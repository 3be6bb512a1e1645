#include "sampler.h"
#include "vm/walk_tests.h"
#include "sampling/capture.h"
#include "output/compress.h"
#include "sampling/gc_log.h"
#include "vm/known_frames.h"
#include "sampling/labels.h"
#include "libraries.h"
#include "sampling/queries.h"
#include "tools/stand_ins.h"
#include "collectors/syscalls/syscalls.h"
#include "collectors/trace/tracer.h"
#include "vm/valid_frames.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

pw_session pw_current = {.writer = {.fd = -1}};

/* Holds what the deepest stacks write between two visits of the drain, and fits a second-level cache; the larger one what a
 * hundred thousand system calls a second do. */
#define RING_BYTES (1u << 20)
#define LARGE_RING_BYTES (1u << 23)
enum { HURRIED_NS = 20000000 };

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

static VALUE main_thread; /* the main Ractor's, since the recording began; a child that goes on recording begins one of its own */

bool pw_in_main_ractor(void) { return rb_thread_main() == main_thread; }

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

void
pw_enter_thread(pw_thread *t)
{
    pw_now_running(t);
    pw_tls.ended = 0;
    pthread_setspecific(thread_exit_key, t); /* Ruby may end a thread without telling: its native thread tells */
    pw_collectors_here();
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
    if (caller) pw_enter_thread(t);
    else if (pw_thread_states()) atomic_store(&t->state, PW_BLOCKED); /* the caller has the GVL, so this one has not */
    if (is_new && tid) pw_current.ticker->thread_begin(t);
    return t;
}

void
pw_enter_known_thread(VALUE thread)
{
    pthread_mutex_lock(&pw_current.lock);
    pw_thread *t = find_thread(thread);
    pthread_mutex_unlock(&pw_current.lock);
    if (t) pw_enter_thread(t);
}

/* The last moment of a thread that ended untold: what it burnt after its last sample it ran for, whenever that was. */
static void
last_moment(pw_thread *t, int64_t cpu_now, int64_t *wall, int64_t *cpu)
{
    int64_t before = atomic_load(&t->last_wall), charged = atomic_load(&t->last_cpu);
    int64_t unseen = cpu_now - charged, passed = pw_now_ns() - before;
    if (unseen > passed) unseen = passed;
    if (unseen < 0) unseen = 0;
    *wall = before + unseen;
    *cpu = charged + unseen;
}

/* `untold`: nobody told when. */
static void
end_thread(pw_thread *t, bool untold)
{
    t->busy = 1;
    pw_current.ticker->thread_end(t); /* from here on no reader can see it vanish */
    pw_tls.ended = t->generation;
    pw_tls.ended_thread = t->thread;
    if (!t->finished) {
        int64_t wall = pw_now_ns(), cpu = pw_thread_cpu(t);
        if (untold) last_moment(t, cpu, &wall, &cpu);
        uint8_t state = pw_thread_states() ? PW_RUNNING : PW_UNKNOWN;
        t->finished = true;
        atomic_store(&slots[t->slot], NULL);
        int tries = 0;
        while (!pw_charge(t, PW_REC_END, state, wall, cpu)) {
            if (++tries == 2000) {
                pw_count(PW_DROPPED, 1);
                break;
            }
            struct timespec pause = {0, 1000000};
            nanosleep(&pause, NULL); /* the ring is full; the drain empties it within 50 ms */
        }
        if ((atomic_fetch_add(&pw_current.ended, 1) + 1) % PW_ENDED == 0) pthread_cond_signal(&pw_current.wake);
    }
    pthread_setspecific(thread_exit_key, NULL);
    pw_now_running(NULL); /* the last touch: after END, the drain frees it when nobody leads to it */
}

void pw_thread_ended(pw_thread *t) { end_thread(t, false); }
void pw_thread_replaced(pw_thread *t) { end_thread(t, true); }

/* A thread that had a stack and has none has ended. One that never had may still be waiting for its first turn. */
uint32_t
pw_looks_at_nothing(const pw_thread *t)
{
    return t->sampled ? 3 : (uint32_t)(1000000000 / pw_current.interval_ns) + 3;
}

bool
pw_thread_vanished(pw_thread *t)
{
    t->finished = true;
    int64_t wall, cpu;
    last_moment(t, pw_thread_cpu_now(t), &wall, &cpu);
    uint32_t slot = t->slot;
    atomic_store(&slots[slot], NULL);
    if (pw_charge(t, PW_REC_END, PW_UNKNOWN, wall, cpu)) { /* the drain takes its timer away, and frees it when nobody leads to it */
        if (pw_tls.thread == t) pw_now_running(NULL);
        return true;
    }
    atomic_store(&slots[slot], t); /* the ring is full: at the next tick */
    return t->finished = false;
}

/* Where events tell of every end, a native thread that exits is not the end of what it carried (M:N). */
static void
native_thread_exits(void *thread)
{
    if (!pw_enter_handler()) return;
    pw_tls.pinned = 1;
    atomic_signal_fence(memory_order_seq_cst);
    pw_thread *t = pw_self();
    if (t && PW_THREAD_IN_EVENT) pw_thread_leave(t, pw_gettid());
    else if (t && t == thread) end_thread(t, !pw_thread_states());
    pw_now_running(NULL);
    pw_tls.pinned = 0;
    pw_leave_handler();
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
is_alive(VALUE thread)
{
    return rb_funcall(thread, rb_intern("alive?"), 0);
}

/* Ruby 3.1 does not tell of a thread that ends by an exception, and one that was killed before its first turn never had a stack that
 * could vanish: its time would go on to the end of the recording. Needs the GVL. */
static void
end_the_dead(void)
{
    if (PW_THREAD_EVENTS) return;
    pw_own_begin();
    VALUE threads = rb_ary_new_capa((long)pw_current.next_thread_id); /* has room: under the lock nothing may be allocated */
    pthread_mutex_lock(&pw_current.lock);
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (!t->finished) rb_ary_push(threads, t->thread);
    }
    pthread_mutex_unlock(&pw_current.lock);
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        int error = 0;
        VALUE saved = rb_errinfo(), thread = rb_ary_entry(threads, i), alive = rb_protect(is_alive, thread, &error);
        if (error) rb_set_errinfo(saved);
        pthread_mutex_lock(&pw_current.lock);
        pw_thread *t = error || RTEST(alive) ? NULL : find_thread(thread);
        pthread_mutex_unlock(&pw_current.lock);
        if (!t || t == pw_self()) continue;
        pw_name_thread(thread); /* it may have begun, and ended, since the last names were looked up */
        pw_current.ticker->thread_end(t);
        pw_thread_vanished(t);
    }
    pw_own_end();
}

static VALUE
register_others(VALUE native_thread_ids)
{
    /* [[thread, native id], ...] of the threads that lived before start */
    for (long i = 0; i < RARRAY_LEN(native_thread_ids); i++) {
        VALUE pair = rb_ary_entry(native_thread_ids, i);
        VALUE thread = rb_ary_entry(pair, 0), tid = rb_ary_entry(pair, 1);
        if (thread == rb_thread_current() || !has_begun(thread)) continue;
        if (!RB_FIXNUM_P(tid)) tid = rb_funcall(thread, rb_intern("native_thread_id"), 0); /* it had its first turn just now */
        if (!RB_FIXNUM_P(tid)) continue;
        pw_thread *t = pw_register_thread(thread, (pid_t)FIX2LONG(tid), false);
        if (!t) continue;
        t->stays = !pw_threads_move;
        if (!PW_THREAD_EVENTS) pw_name_thread(thread); /* nobody tells of its end where it is killed */
    }
    return Qnil;
}

/* ---- collectors ---- */

const pw_collector *const pw_collectors[] = {&pw_allocations, &pw_tracer, &pw_syscalls};
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
pw_collectors_write_rows(void)
{
    for (int i = 0; i < PW_COLLECTORS; i++) {
        if (asked_for(i) && pw_collectors[i]->write_rows) pw_collectors[i]->write_rows();
    }
}

void
pw_collectors_here(void)
{
    for (int i = 0; i < PW_COLLECTORS; i++) {
        if (asked_for(i) && pw_collectors[i]->here) pw_collectors[i]->here();
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
    pw_labels_forget(frees);
    pw_queries_forget(frees);
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

const pw_ticker *
pw_ticker_named(VALUE mode)
{
    static const pw_ticker *const tickers[] = {&pw_signal_ticker, &pw_safepoint_ticker, &pw_outside_ticker, &pw_no_ticker};
    for (int i = 0; i < 4; i++) {
        if (rb_str_equal(mode, rb_str_new_cstr(tickers[i]->name)) == Qtrue) return tickers[i];
    }
    return NULL;
}

/* start(path, append, head, interval_ns, unit_ns, flush_ns, mode, signo, others, collectors) -> nil or a String that says why not */
static VALUE
start_session(VALUE arguments)
{
    const VALUE *given = (const VALUE *)arguments;
    VALUE path = given[0], append = given[1], head = given[2], interval = given[3], unit = given[4], flush = given[5], mode = given[6], signo = given[7],
          others = given[8], collectors = given[9];
    pw_session *s = &pw_current;
    FilePathValue(path);
    StringValue(head);
    Check_Type(others, T_ARRAY);
    Check_Type(collectors, T_HASH);
    const char *file = StringValueCStr(path);
    int64_t interval_ns = NUM2LL(interval), unit_ns = NUM2LL(unit), flush_ns = NUM2LL(flush);
    const pw_ticker *ticker = pw_ticker_named(mode);
    if (!ticker) rb_raise(rb_eArgError, "no such mode");
    if (interval_ns < 1000 || unit_ns < 1 || flush_ns < 1) rb_raise(rb_eArgError, "interval, unit and flush must be positive");

    int signal_number = NUM2INT(signo);
    const char *failure = NULL;
    /* Before the file is opened: a refused start must not cost the recording that was there. */
    if (ticker == &pw_signal_ticker && pw_signal_taken(signal_number)) return rb_str_new_cstr("signal taken");
    pw_thread_states_wanted(pw_looks_at_waiting(ticker));
    if (pw_looks_at_waiting(ticker)) pw_signal_prepare();
    if (ticker->from_outside && (failure = pw_outside_refusal())) return rb_str_new_cstr(failure);
    int error = pw_writer_open(&s->writer, file, RTEST(append), RSTRING_PTR(head), (size_t)RSTRING_LEN(head));
    if (error) return rb_str_new_cstr(start_failure("cannot write the recording", error));

    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&s->lock, NULL);
    bool room = pw_intern_init(&s->tables);
    pw_known_clear();
    room = pw_rows_init() && room;
    for (int i = 0; i < PW_COUNTERS; i++) atomic_store(&counters[i], 0);
    s->interval_ns = interval_ns;
    s->unit_ns = unit_ns;
    s->flush_ns = flush_ns;
    s->signo = signal_number;
    s->origin = pw_now_ns();
    s->started_process_cpu = pw_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    s->next_thread_id = 1;
    s->ticker = ticker;
    s->helper_cpu = 0;
    bool large = RB_TYPE_P(rb_hash_lookup(collectors, rb_str_new_cstr(pw_syscalls.name)), T_HASH);
    if (large) s->pause_ns = HURRIED_NS;
    if (!pw_ring_init(&s->ring, large ? LARGE_RING_BYTES : RING_BYTES) || !room) failure = start_failure("no memory for the recording", ENOMEM);
    pw_labels_start();
    pw_queries_start();
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
    pw_thread *starter = pw_register_thread(rb_thread_current(), pw_gettid(), true);
    if (starter) starter->stays = !pw_threads_move;
    register_others(others);
    pw_own_end();
    RB_GC_GUARD(path);
    RB_GC_GUARD(head);
    return Qnil;
}

/* Both run Ruby code here and there, and so let other threads run: these must not start or stop what is half begun or half ended. */
static bool changing;
static VALUE changed_by; /* the thread, while changing */
static VALUE held_back;  /* an exception; or nil, or Qfalse at first */

static void
change(void)
{
    changing = true;
    changed_by = rb_thread_current();
}

static VALUE
changed(VALUE unused)
{
    changing = false;
    changed_by = Qnil;
    return Qnil;
}

void pw_raise_after(VALUE exception) { held_back = exception; }

static VALUE
changing_alone(VALUE (*what)(VALUE), VALUE argument)
{
    change();
    VALUE result = rb_ensure(what, argument, changed, Qnil), exception = held_back;
    held_back = Qnil;
    if (RTEST(exception)) rb_exc_raise(exception);
    return result;
}

static VALUE
native_start(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 10, 10);
    if (pw_current.generation || changing) rb_raise(rb_eRuntimeError, "already recording");
    change();
    main_thread = rb_thread_main(); /* only the main Ractor starts */
    return rb_ensure(start_session, (VALUE)argv, changed, Qnil);
}

static VALUE
stop_stats(void)
{
    VALUE stats = rb_hash_new();
    static const struct { int counter; const char *name; } names[] = {
        {PW_TICKS, "ticks"}, {PW_CAPTURES, "captures"}, {PW_MISSED, "missed_ticks"}, {PW_DEFERRED, "deferred_ticks"},
        {PW_DROPPED, "dropped"}, {PW_TORN_READS, "torn_reads"}, {PW_REFUSED, "refused_frames"}, {PW_HANDLER_NS, "handler_ns"}, {PW_NAMING_NS, "naming_ns"}, {PW_RESETS, "resets"},
        {PW_SIGNAL_LOST, "signal_lost"}, {PW_GC_COUNT, "gc_count"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rb_hash_aset(stats, ID2SYM(rb_intern(names[i].name)), LL2NUM(pw_counter(names[i].counter)));
    }
    rb_hash_aset(stats, ID2SYM(rb_intern("own_cpu_ns")), LL2NUM(pw_current.drain_cpu + atomic_load(&pw_current.helper_cpu)));
    rb_hash_aset(stats, ID2SYM(rb_intern("write_error")), INT2NUM(pw_current.writer.error));
    rb_hash_aset(stats, ID2SYM(rb_intern("bytes")), LL2NUM(pw_current.writer.written));
    return stats;
}

static VALUE
stop_session(VALUE reason)
{
    pw_session *s = &pw_current;
    const char *why = StringValueCStr(reason);
    end_the_dead();
    s->ticker->stop();
    collectors_stop();
    atomic_store(&live_generation, 0);
    while (atomic_load(&handlers) > 0) { /* a handler of another thread is at work, for microseconds */
        struct timespec pause = {0, 20000};
        nanosleep(&pause, NULL);
    }
    pw_thread_events_stop();
    pw_labels_stop();
    pw_gc_stop();
    pw_stop_drain();
    pw_resolve_all();
    pw_final_flush(why);
    VALUE stats = stop_stats();
    pw_writer_close(&s->writer);
    free_session(true);
    RB_GC_GUARD(reason);
    return stats;
}

/* stop(reason) -> Hash of counters; nil while another thread is starting or stopping the recording; false in another Ractor than the main one */
static VALUE
native_stop(VALUE self, VALUE reason)
{
    if (!pw_in_main_ractor()) return Qfalse;
    if (changing) return Qnil;
    if (!pw_current.generation) rb_raise(rb_eRuntimeError, "not recording");
    return changing_alone(stop_session, reason);
}

void
pw_change_alone(VALUE (*what)(VALUE))
{
    while (changing && changed_by != rb_thread_current()) rb_thread_schedule();
    if (changing) {
        what(Qnil); /* a trap, amid a change of its own thread */
        return;
    }
    changing_alone(what, Qnil);
}

/* Bounded: whoever has the lock may be waiting for us. */
void
pw_flush_before_end(void)
{
    enum { TRIES = 2000 };
    static const struct timespec pause = {0, 1000000};
    pw_session *s = &pw_current;
    int tries = 0;
    if (!pw_session_generation() || !s->draining) return;
    while (pthread_mutex_trylock(&s->lock) != 0) {
        if (++tries > TRIES) return;
        nanosleep(&pause, NULL);
    }
    uint32_t wanted = atomic_fetch_add(&s->flushes_wanted, 1) + 1;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    while ((int32_t)(atomic_load(&s->flushes_done) - wanted) < 0 && s->draining && ++tries <= TRIES) nanosleep(&pause, NULL);
}

/* Names all that was seen so far and writes it, while the recording goes on. `ends_by`: the process certainly ends now; NULL: it may not. */
static void
complete_in_place(const char *ends_by)
{
    pw_own_begin();
    pw_thread *t = pw_self();
    if (t) {
        t->busy = 1;
        pw_capture_stack(t); /* with the call that is about to be made */
        t->busy = 0;
    }
    pw_flush_before_end(); /* what is in the ring has no names yet */
    pw_resolve_all();
    atomic_store(&pw_current.ends_by, ends_by);
    pw_flush_before_end();
    pw_own_end();
}

static VALUE
stop_to_complete(VALUE reason)
{
    return native_stop(m_native, reason);
}

bool
pw_complete(const char *reason)
{
    if (!pw_current.generation || changing || atomic_load(&forked) || !pw_in_main_ractor()) return false;
    for (int i = 0; i < PW_COLLECTORS; i++) {
        if (!asked_for(i) || !pw_collectors[i]->sees_endings) continue;
        complete_in_place(strcmp(reason, "exec") == 0 ? NULL : reason); /* exec may fail */
        return false;
    }
    int error = 0;
    VALUE saved = rb_errinfo();
    rb_protect(stop_to_complete, rb_str_new_cstr(reason), &error);
    if (error) rb_set_errinfo(saved);
    return !error;
}

static VALUE
native_recording_p(VALUE self)
{
    return pw_current.generation ? Qtrue : Qfalse;
}

/* errno of the first write that failed, after which nothing more is written; 0: none did */
static VALUE
native_write_error(VALUE self)
{
    return INT2NUM(pw_current.writer.error);
}

/* limit(bytes): what the file being written may grow to (0: anything), looked at before each flush. -> whether it has come to that, after
 * which nothing more is written */
static VALUE
native_limit(VALUE self, VALUE bytes)
{
    atomic_store(&pw_current.writer.limit, NUM2LL(bytes));
    return atomic_load(&pw_current.writer.full) ? Qtrue : Qfalse;
}

/* signal_foreign?(number): has a library a handler for it that Ruby knows nothing of? SIGINT's is Ruby's. */
static VALUE
native_signal_foreign_p(VALUE self, VALUE signo)
{
    struct sigaction its, rubys;
    int number = NUM2INT(signo);
    if (!pw_signal_taken(number) || sigaction(number, NULL, &its) != 0 || sigaction(SIGINT, NULL, &rubys) != 0) return Qfalse;
    return its.sa_handler == rubys.sa_handler ? Qfalse : Qtrue;
}

/* allowed_cores -> how many the calling thread, and those it starts, may run on; nil: nobody says */
static VALUE
native_allowed_cores(VALUE self)
{
#ifdef __linux__
    for (int most = 1024; most <= 1 << 16; most *= 2) {
        cpu_set_t *set = CPU_ALLOC(most);
        if (!set) break;
        size_t size = CPU_ALLOC_SIZE(most);
        int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : -errno;
        CPU_FREE(set);
        if (count > 0) return INT2NUM(count);
        if (count != -EINVAL) break; /* else there are more than there was room for */
    }
#endif
    return Qnil;
}

/* ---- fork ---- */

static void
before_fork(void)
{
    if (!pw_current.generation) return;
    pthread_mutex_lock(&pw_current.lock);
    pw_reader_lock();
}

static void
after_fork_in_parent(void)
{
    if (!pw_current.generation) return;
    pw_reader_unlock();
    pthread_mutex_unlock(&pw_current.lock);
}

/* The child has one thread, no timers and no drain. What the parent recorded is the parent's. A new recording is opened
 * only when the child runs Ruby again: most children exec at once. */
static void
after_fork_in_child(void)
{
    pw_signal_in_child();
    pw_stand_ins_in_child();
    if (!pw_current.generation) return;
    atomic_store(&live_generation, 0);
    atomic_store(&handlers, 0);
    changing = false; /* whichever thread did has not come along */
    pw_tls = (pw_self_slot){0};
    pthread_setspecific(thread_exit_key, NULL);
    pw_writer_abandon(&pw_current.writer);
    pthread_mutex_init(&pw_current.lock, NULL); /* before_fork holds it; collections before the job will want it */
    pw_reader_reset();
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
    pw_thread_events_in_child();
    pw_thread_events_stop();
    pw_labels_stop();
    pw_gc_stop();
    collectors_stop();
    if (pw_current.ticker) pw_current.ticker->stop_in_child();
    pw_current.threads = NULL;      /* their memory is a copy of the parent's; forgotten, not freed, */
    free_session(false);            /* for a buffer may have been growing when the process was copied */
    rb_protect(tell_child, Qnil, &error);
    if (error) rb_set_errinfo(saved);
}

/* A finalizer. When Ruby ends, and threads have been ended, at_exit's blocks are over, which should have stopped the recording; but a thread
 * may have begun one since. What is looked at and told of is taken apart next. */
static VALUE
end_with_ruby(VALUE self, VALUE id)
{
    if (atomic_load(&forked)) pw_gc_stop();
    else if (pw_current.generation) native_stop(self, rb_str_new_cstr("stop"));
    return Qnil;
}

void
Init_pitwall_sampler(VALUE native)
{
    m_native = native;
    pw_crc32_init();
    pw_valid_frames_init();
    pw_resolve_init();
    pw_thread_events_init();
    pw_gc_init(native);
    pw_labels_init(native);
    pw_queries_init(native);
    pw_libraries_init(native);
    pw_endings_init(native);
    Init_pitwall_allocations(native);
    pw_tracer_init(native);
    Init_pitwall_syscalls(native);
    pthread_key_create(&thread_exit_key, native_thread_exits);
    if (!pw_job_init(&fork_job, run_fork_job)) rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
    VALUE last = rb_obj_alloc(rb_cObject), end = rb_obj_alloc(rb_cObject);
    rb_define_singleton_method(end, "call", end_with_ruby, 1);
    rb_gc_register_mark_object(last);
    rb_gc_register_address(&changed_by);
    rb_gc_register_address(&held_back);
    rb_define_finalizer(last, end);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    rb_define_singleton_method(native, "start", native_start, -1);
    rb_define_singleton_method(native, "stop", native_stop, 1);
    rb_define_singleton_method(native, "recording?", native_recording_p, 0);
    rb_define_singleton_method(native, "write_error", native_write_error, 0);
    rb_define_singleton_method(native, "limit", native_limit, 1);
    rb_define_singleton_method(native, "allowed_cores", native_allowed_cores, 0);
    rb_define_singleton_method(native, "signal_foreign?", native_signal_foreign_p, 1);
}
