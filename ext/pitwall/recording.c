/* Start and stop of a recording, and its handling of exec, exit! and fork. Calls the modules in order. */
#include "recording.h"
#include "collectors/allocations/allocations.h"
#include "collectors/boot/boot.h"
#include "collectors/caches/caches.h"
#include "collectors/syscalls/syscalls.h"
#include "collectors/trace/tracer.h"
#include "native/unwind.h"
#include "output/compress.h"
#include "output/drain.h"
#include "output/naming.h"
#include "output/output.h"
#include "output/rows.h"
#include "output/thread_rows.h"
#include "sampling/capture.h"
#include "sampling/gc.h"
#include "sampling/gc_log.h"
#include "sampling/held_signal.h"
#include "sampling/labels.h"
#include "sampling/libraries.h"
#include "sampling/native_stack.h"
#include "sampling/queries.h"
#include "sampling/registry.h"
#include "sampling/signal_ticker.h"
#include "sampling/thread_events.h"
#include "sampling/tickers.h"
#include "sampling/waiting.h"
#include "session/change.h"
#include "session/modules.h"
#include "tools/quietly.h"
#include "tools/stand_ins.h"
#include "tools/wipe_stack.h"
#include "vm/gvl_watch.h"
#include "vm/known_frames.h"
#include "vm/reader_lock.h"
#include "vm/valid_frames.h"
#include "vm/walk_tests.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All modules. Their functions are called in this order. */
static const pw_module *const modules[] = {
    &pw_thread_events, &pw_labels, &pw_queries, &pw_gc, &pw_gc_log, &pw_libraries,
    &pw_allocations, &pw_tracer, &pw_syscalls, &pw_caches, &pw_boot,
};

/* RING_BYTES holds the samples of the deepest stacks between two passes of the drain, and fits a second-level cache.
 * LARGE_RING_BYTES holds the rows of 100,000 system calls a second, or such samples with native frames. */
#define RING_BYTES (1u << 20)
#define LARGE_RING_BYTES (1u << 23)

static struct {
    VALUE native;
    pw_job fork_job;
    _Atomic bool forked; /* forked from a recorded process; the fork job has not run yet */
} state;

/* ---- start and stop ---- */

static const char *
start_failure(const char *what, int error)
{
    static char text[200];
    snprintf(text, sizeof text, "%s: %s", what, strerror(error));
    return text;
}

/* `frees`: false in a forked child, where the tables are left as they are. */
static void
forget_session(bool frees)
{
    pw_modules_forget(frees);
    pw_threads_forget(frees);
    pw_ring_free(&pw_out.ring);
    if (frees) {
        pw_intern_free(&pw_out.tables);
        pw_rows_free();
        if (pw_current.native) pw_unwind_release();
    }
    pw_naming_free(frees);
    pw_drain_free(frees);
    pw_out = (pw_output){.writer = {.fd = -1}};
    pw_session_clear(frees);
}

typedef struct {
    VALUE path, append, head, others, collectors;
    int64_t interval_ns, unit_ns, flush_ns;
    const pw_ticker *ticker;
    int signo;
    bool native;
} start_options;

/* start(path, append, head, interval_ns, unit_ns, flush_ns, mode, signo, others, collectors, native).
 * Raises on a wrong argument. */
static start_options
read_arguments(VALUE *given)
{
    FilePathValue(given[0]);
    StringValue(given[2]);
    Check_Type(given[8], T_ARRAY);
    Check_Type(given[9], T_HASH);
    StringValueCStr(given[0]);
    start_options w = {
        .path = given[0], .append = given[1], .head = given[2], .others = given[8], .collectors = given[9],
        .interval_ns = NUM2LL(given[3]), .unit_ns = NUM2LL(given[4]), .flush_ns = NUM2LL(given[5]),
    };
    w.ticker = pw_ticker_named(given[6]);
    if (!w.ticker) rb_raise(rb_eArgError, "no such mode");
    if (w.interval_ns < 1000 || w.unit_ns < 1 || w.flush_ns < 1) {
        rb_raise(rb_eArgError, "interval, unit and flush must be positive");
    }
    w.signo = NUM2INT(given[7]);
    w.native = RTEST(given[10]);
    return w;
}

/* Prepares the ticker: on 3.1 this installs the watch of the GVL. Runs before the file is opened, so that a refused
 * start does not overwrite an existing recording. Returns NULL or the reason for the refusal. */
static const char *
prepare_ticker(const start_options *w)
{
    if (w->ticker == &pw_signal_ticker && pw_signal_taken(w->signo)) return "signal taken";
    pw_gvl_watched = w->ticker->looks_at_waiting && !PW_THREAD_EVENTS && pw_gvl_watch_install();
    if (w->ticker->looks_at_waiting) pw_waiting_prepare();
    if (w->native && w->ticker != &pw_signal_ticker) return "native frames are taken in mode signal only";
    if (w->native && pw_native_refusal()) return pw_native_refusal();
    return w->ticker->from_outside ? pw_outside_refusal() : NULL;
}

/* Prepares everything that the first sample needs. False: no memory. */
static bool
prepare(const start_options *w)
{
    pw_session *s = &pw_current;
    bool large = pw_modules_fill_ring(w->collectors);
    pw_session_init();
    bool room = pw_intern_init(&pw_out.tables);
    pw_known_clear();
    room = pw_rows_init() && room;
    pw_thread_rows_init();
    pw_counters_reset();
    s->interval_ns = w->interval_ns;
    s->unit_ns = w->unit_ns;
    s->flush_ns = w->flush_ns;
    s->signo = w->signo;
    s->origin = pw_now_ns();
    s->started_process_cpu = pw_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    s->native = w->native;
    s->ticker = w->ticker;
    s->helper_cpu = 0;
    pw_drain_init(large);
    room = pw_ring_init(&pw_out.ring, large || w->native ? LARGE_RING_BYTES : RING_BYTES) && room;
    pw_modules_prepare();
    s->generation = pw_next_generation();
    atomic_store(&pw_live_generation, s->generation);
    return room;
}

/* Returns NULL or the reason for the failure. After a failure everything that was started is stopped again. */
static const char *
begin_collecting(const start_options *w)
{
    int error;
    const char *refusal;
    if ((error = pw_start_drain())) return start_failure("cannot start the drain thread", error);
    if ((error = pw_current.ticker->start())) {
        atomic_store(&pw_live_generation, 0);
        pw_stop_drain();
        return error == EBUSY ? "signal taken" : start_failure("cannot start ticking", error);
    }
    if ((refusal = pw_modules_start(w->collectors))) {
        pw_current.ticker->stop();
        atomic_store(&pw_live_generation, 0);
        pw_modules_stop();
        pw_stop_drain();
    }
    return refusal;
}

static VALUE
start_session(VALUE arguments)
{
    start_options w = read_arguments((VALUE *)arguments);
    const char *file = RSTRING_PTR(w.path), *failure = prepare_ticker(&w);
    if (failure) return rb_str_new_cstr(failure);
    int error = pw_writer_open(&pw_out.writer, file, RTEST(w.append), RSTRING_PTR(w.head), (size_t)RSTRING_LEN(w.head));
    if (error) return rb_str_new_cstr(start_failure("cannot write the recording", error));

    failure = prepare(&w) ? begin_collecting(&w) : start_failure("no memory for the recording", ENOMEM);
    if (failure) {
        VALUE text = rb_str_new_cstr(failure);
        atomic_store(&pw_live_generation, 0);
        pw_writer_close(&pw_out.writer);
        struct stat st;
        if (!RTEST(w.append) && stat(file, &st) == 0 && S_ISREG(st.st_mode)) unlink(file);
        forget_session(true);
        return text;
    }
    pw_own_begin();
    pw_modules_begin();
    pw_thread *starter = pw_register_thread(rb_thread_current(), pw_gettid(), true);
    if (starter) starter->own.stays = !pw_threads_move;
    pw_register_others(w.others);
    pw_own_end();
    RB_GC_GUARD(w.path);
    RB_GC_GUARD(w.head);
    return Qnil;
}

/* start(path, append, head, interval_ns, unit_ns, flush_ns, mode, signo, others, collectors, native) -> nil or a String
 * with the reason for the failure */
static VALUE
native_start(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 11, 11);
    if (pw_current.generation || pw_changing()) rb_raise(rb_eRuntimeError, "already recording");
    pw_remember_main_ractor();
    return pw_change(start_session, (VALUE)argv);
}

static void
put_stat(VALUE stats, const char *name, int64_t value)
{
    rb_hash_aset(stats, ID2SYM(rb_intern(name)), LL2NUM(value));
}

static VALUE
stop_stats(void)
{
    VALUE stats = rb_hash_new();
    for (int i = 0; i < PW_COUNTERS; i++) {
        if (pw_counter_infos[i].returned) put_stat(stats, pw_counter_infos[i].name, pw_counter(i));
    }
    put_stat(stats, "own_cpu_ns", pw_drain_cpu() + atomic_load(&pw_current.helper_cpu));
    put_stat(stats, "write_error", pw_out.writer.error);
    put_stat(stats, "bytes", pw_out.writer.written);
    return stats;
}

static VALUE
stop_session(VALUE reason)
{
    const char *why = StringValueCStr(reason);
    pw_end_dead_threads();
    pw_current.ticker->stop();
    pw_modules_stop();
    atomic_store(&pw_live_generation, 0);
    pw_wait_for_handlers();
    pw_modules_end();
    pw_stop_drain();
    pw_naming_finish();
    pw_final_flush(why);
    VALUE stats = stop_stats();
    pw_writer_close(&pw_out.writer);
    forget_session(true);
    RB_GC_GUARD(reason);
    return stats;
}

/* stop(reason) -> Hash of counters; nil while another thread starts or stops the recording; false in a Ractor that
 * is not the main one */
static VALUE
native_stop(VALUE self, VALUE reason)
{
    if (!pw_in_main_ractor()) return Qfalse;
    if (pw_changing()) return Qnil;
    if (!pw_current.generation) rb_raise(rb_eRuntimeError, "not recording");
    pw_wipe_stack(); /* collectors count living objects at the end */
    return pw_change(stop_session, reason);
}

/* Names and writes all data so far. The recording continues.
 * `ends_by`: the call that ends the process for certain, e.g. "exit!"; NULL: the process may survive. */
static void
complete_in_place(const char *ends_by)
{
    pw_own_begin();
    pw_thread *t = pw_self();
    if (t) {
        t->own.busy = 1;
        pw_capture_stack(t); /* records the stack of the coming exec or exit! */
        t->own.busy = 0;
    }
    pw_flush_before_end(); /* the rows in the ring have no names yet */
    pw_naming_finish();
    pw_flush_as_end(ends_by);
    pw_own_end();
}

static VALUE
stop_to_complete(VALUE reason)
{
    return native_stop(state.native, reason);
}

bool
pw_complete(const char *reason)
{
    if (!pw_current.generation || pw_changing() || atomic_load(&state.forked) || !pw_in_main_ractor()) return false;
    if (pw_modules_see_endings()) {
        complete_in_place(strcmp(reason, "exec") == 0 ? NULL : reason); /* exec may fail */
        return false;
    }
    pw_current.before_exec = strcmp(reason, "exec") == 0;
    bool stopped = pw_attempt(stop_to_complete, rb_str_new_cstr(reason), NULL);
    if (!stopped) pw_current.before_exec = false;
    return stopped;
}

static VALUE
native_recording_p(VALUE self)
{
    return pw_current.generation ? Qtrue : Qfalse;
}

/* errno of the first failed write; nothing is written after a failed write. 0: no write failed. */
static VALUE
native_write_error(VALUE self)
{
    return INT2NUM(pw_out.writer.error);
}

/* limit(bytes): sets the largest size of the recording's file; 0: no limit. The size is checked before each flush.
 * -> whether the limit has been reached; nothing is written after that */
static VALUE
native_limit(VALUE self, VALUE bytes)
{
    atomic_store(&pw_out.writer.limit, NUM2LL(bytes));
    return atomic_load(&pw_out.writer.full) ? Qtrue : Qfalse;
}

static VALUE
before_ractor(VALUE unused)
{
    pw_modules_before_ractor();
    pw_modules_leave_gc();
    return Qnil;
}

/* stop_gc_frames: stops recording collections before a Ractor starts. Ruby 3.1 dereferences a null pointer when it
 * reports a collection that begins in a Ractor's thread before the thread's first frame. */
static VALUE
native_stop_gc_frames(VALUE self)
{
    pw_change_alone(before_ractor);
    return Qnil;
}

/* ---- fork ---- */

static void
before_fork(void)
{
    if (!pw_current.generation) return;
    if (pw_current.native) pw_unwind_before_fork();
    pthread_mutex_lock(&pw_current.lock);
    pw_reader_lock();
}

static void
after_fork_in_parent(void)
{
    if (!pw_current.generation) return;
    pw_reader_unlock();
    pthread_mutex_unlock(&pw_current.lock);
    if (pw_current.native) pw_unwind_in_parent();
}

/* The child has one thread, no timers and no drain. The parent's recording stays with the parent.
 * The child opens a new recording only when it runs Ruby again, because most children exec at once. */
static void
after_fork_in_child(void)
{
    pw_signal_in_child();
    pw_stand_ins_in_child();
    if (!pw_current.generation) return;
    if (pw_current.native) pw_unwind_child();
    atomic_store(&pw_live_generation, 0);
    pw_forget_handlers();
    pw_forget_change();
    pw_tls = (pw_self_slot){0};
    pw_registry_in_child();
    pw_writer_abandon(&pw_out.writer);
    /* before_fork locked the mutex. The child cannot unlock it, so it is made anew: a garbage collection may lock it
     * before the fork job runs. */
    pthread_mutex_init(&pw_current.lock, NULL);
    pw_reader_reset();
    atomic_store(&state.forked, true);
    pw_job_trigger(&state.fork_job);
}

static VALUE
report_fork(VALUE unused)
{
    rb_funcall(state.native, rb_intern("forked"), 0);
    return Qnil;
}

static void
run_fork_job(void *unused)
{
    if (!atomic_exchange(&state.forked, false)) return;
    pw_modules_in_child();
    pw_modules_end();
    pw_modules_stop();
    if (pw_current.ticker) pw_current.ticker->stop_in_child();
    /* The memory is a copy of the parent's. It is not freed, because a buffer may have been growing during the
     * fork. */
    forget_session(false);
    pw_attempt(report_fork, Qnil, NULL);
}

/* A finalizer, which runs while Ruby ends. An at_exit block should have stopped the recording, but a thread may have
 * started another one since. All threads have ended by now. Ruby frees the objects that collectors read next, so the
 * recording must stop here. */
static VALUE
end_with_ruby(VALUE self, VALUE id)
{
    if (atomic_load(&state.forked)) pw_modules_leave_gc();
    else if (pw_current.generation) native_stop(self, rb_str_new_cstr("stop"));
    return Qnil;
}

void
pw_recording_init(VALUE native)
{
    state.native = native;
    pw_crc32_init();
    pw_valid_frames_init();
    pw_naming_init(native);
    pw_change_init();
    pw_registry_init(native);
    pw_native_stack_init(native);
    pw_modules_use(modules, (int)(sizeof modules / sizeof *modules));
    pw_modules_init(native);
    if (!pw_job_init(&state.fork_job, run_fork_job)) {
        rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
    }
    VALUE last = rb_obj_alloc(rb_cObject), end = rb_obj_alloc(rb_cObject);
    rb_define_singleton_method(end, "call", end_with_ruby, 1);
    rb_gc_register_mark_object(last);
    rb_define_finalizer(last, end);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    rb_define_singleton_method(native, "start", native_start, -1);
    rb_define_singleton_method(native, "stop", native_stop, 1);
    rb_define_singleton_method(native, "recording?", native_recording_p, 0);
    rb_define_singleton_method(native, "write_error", native_write_error, 0);
    rb_define_singleton_method(native, "limit", native_limit, 1);
    rb_define_singleton_method(native, "stop_gc_frames", native_stop_gc_frames, 0);
}
