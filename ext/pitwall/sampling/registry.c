#include "sampling/registry.h"
#include "native/stack_bounds.h"
#include "output/drain.h"
#include "output/naming.h"
#include "sampling/capture.h"
#include "session/modules.h"
#include <time.h>

static struct {
    pthread_key_t exit_key; /* its destructor runs when a native thread exits */
} state;

#if PW_THREAD_IN_EVENT
static rb_internal_thread_specific_key_t specific_key;
#endif

/* Lets pw_thread_of_event find the thread. needs GVL */
static void
remember(pw_thread *t)
{
#if PW_THREAD_IN_EVENT
    rb_internal_thread_specific_set(t->thread, specific_key, (void *)(uintptr_t)pw_thread_word(t));
#else
    (void)t;
#endif
}

#if PW_THREAD_IN_EVENT
pw_thread *
pw_thread_of_event(VALUE thread)
{
    uint64_t word = (uint64_t)(uintptr_t)rb_internal_thread_specific_get(thread, specific_key);
    return word ? pw_thread_at((uint32_t)(word >> 32), (uint32_t)word) : NULL;
}
#endif

void
pw_enter_thread(pw_thread *t)
{
    pw_now_running(t);
    if (t->native) pw_unwind_know_stack();
    pw_tls.ended = 0;
    /* Ruby may end a thread without an event: then the exit of its native thread shows the end */
    pthread_setspecific(state.exit_key, t);
    pw_modules_here();
}

pw_thread *
pw_register_thread(VALUE thread, pid_t tid, bool caller)
{
    pthread_mutex_lock(&pw_current.lock);
    pw_thread *t = pw_thread_find(thread);
    bool is_new = !t && (t = pw_thread_add(thread, tid));
    pthread_mutex_unlock(&pw_current.lock);
    if (!t) return NULL;
    if (is_new) remember(t);
    if (caller) pw_enter_thread(t);
    else if (pw_thread_states()) atomic_store(&t->own.state, PW_BLOCKED); /* the calling thread has the GVL */
    if (is_new && tid) pw_current.ticker->thread_begin(t);
    return t;
}

void
pw_enter_known_thread(VALUE thread)
{
    pthread_mutex_lock(&pw_current.lock);
    pw_thread *t = pw_thread_find(thread);
    pthread_mutex_unlock(&pw_current.lock);
    if (t) pw_enter_thread(t);
}

/* The estimated end of a thread whose end was not reported. The thread ran for the CPU time since its last sample, so
 * the end is that much time after the sample. */
static void
last_moment(pw_thread *t, int64_t cpu_now, int64_t *wall, int64_t *cpu)
{
    int64_t before = atomic_load(&t->sample.last_wall), charged = atomic_load(&t->sample.last_cpu);
    int64_t unseen = cpu_now - charged, passed = pw_now_ns() - before;
    if (unseen > passed) unseen = passed;
    if (unseen < 0) unseen = 0;
    *wall = before + unseen;
    *cpu = charged + unseen;
}

/* `unreported`: the time of the end is unknown. */
static void
end_thread(pw_thread *t, bool unreported)
{
    t->own.busy = 1;
    pw_current.ticker->thread_end(t); /* from here on no outside reader can end the thread */
    pw_tls.ended = t->generation;
    pw_tls.ended_thread = t->thread;
    if (!t->sample.finished) {
        int64_t wall = pw_now_ns(), cpu = pw_thread_cpu(t);
        if (unreported) last_moment(t, cpu, &wall, &cpu);
        uint8_t now = pw_thread_states() ? PW_RUNNING : PW_UNKNOWN;
        t->sample.finished = true;
        pw_thread_hide(t);
        int tries = 0;
        while (!pw_charge(t, PW_REC_END, now, wall, cpu)) {
            if (++tries == 2000) {
                pw_count(PW_DROPPED, 1);
                break;
            }
            struct timespec pause = {0, 1000000};
            nanosleep(&pause, NULL); /* the ring is full; the drain empties it within 50 ms */
        }
        pw_drain_thread_ended();
    }
    pthread_setspecific(state.exit_key, NULL);
    pw_now_running(NULL); /* the last use of `t`: after END, the drain frees `t` when no pw_tls points to it */
}

void pw_thread_ended(pw_thread *t) { end_thread(t, false); }
void pw_thread_replaced(pw_thread *t) { end_thread(t, true); }

/* A thread that had a stack and has none now has ended. A thread that never had a stack may still wait for its first
 * turn, so it gets one more second. */
uint32_t
pw_looks_at_nothing(const pw_thread *t)
{
    return t->sample.any ? 3 : (uint32_t)(1000000000 / pw_current.interval_ns) + 3;
}

bool
pw_thread_vanished(pw_thread *t)
{
    t->sample.finished = true;
    int64_t wall, cpu;
    last_moment(t, pw_thread_cpu_now(t), &wall, &cpu);
    pw_thread_hide(t);
    /* the drain deletes the timer, and frees the thread when no pw_tls points to it */
    if (pw_charge(t, PW_REC_END, PW_UNKNOWN, wall, cpu)) {
        if (pw_tls.thread == t) pw_now_running(NULL);
        return true;
    }
    pw_thread_show(t); /* the ring is full: try again at the next tick */
    return t->sample.finished = false;
}

/* Where events report every end, the exit of a native thread does not end the thread that it carried (M:N). */
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

/* Has the thread had its first turn? Before that it has no execution context, and reading its frames crashes Ruby
 * before 3.3. Such a thread is registered by its own begin event. */
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

/* Ruby 3.1 does not report the end of a thread that ends by an exception. A thread killed before its first turn never
 * had a stack, so pw_thread_vanished does not find its end. Its time would run to the end of the recording.
 * needs GVL */
void
pw_end_dead_threads(void)
{
    if (PW_THREAD_EVENTS) return;
    pw_own_begin();
    /* with room for all threads, because nothing may be allocated under the lock */
    VALUE threads = rb_ary_new_capa((long)pw_current.next_thread_id);
    pthread_mutex_lock(&pw_current.lock);
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (!t->sample.finished) rb_ary_push(threads, t->thread);
    }
    pthread_mutex_unlock(&pw_current.lock);
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        int error = 0;
        VALUE saved = rb_errinfo(), thread = rb_ary_entry(threads, i), alive = rb_protect(is_alive, thread, &error);
        if (error) rb_set_errinfo(saved);
        pthread_mutex_lock(&pw_current.lock);
        pw_thread *t = error || RTEST(alive) ? NULL : pw_thread_find(thread);
        pthread_mutex_unlock(&pw_current.lock);
        if (!t || t == pw_self()) continue;
        pw_name_thread(thread); /* the thread may have begun and ended since the last naming job */
        pw_current.ticker->thread_end(t);
        pw_thread_vanished(t);
    }
    pw_own_end();
}

void
pw_register_others(VALUE native_thread_ids)
{
    for (long i = 0; i < RARRAY_LEN(native_thread_ids); i++) {
        VALUE pair = rb_ary_entry(native_thread_ids, i);
        VALUE thread = rb_ary_entry(pair, 0), tid = rb_ary_entry(pair, 1);
        if (thread == rb_thread_current() || !has_begun(thread)) continue;
        /* the thread had its first turn just now, so its native id was missing */
        if (!RB_FIXNUM_P(tid)) tid = rb_funcall(thread, rb_intern("native_thread_id"), 0);
        if (!RB_FIXNUM_P(tid)) continue;
        pw_thread *t = pw_register_thread(thread, (pid_t)FIX2LONG(tid), false);
        if (!t) continue;
        t->own.stays = !pw_threads_move;
        if (!PW_THREAD_EVENTS) pw_name_thread(thread); /* named now, because a kill is not reported */
    }
}

/* Without thread events a thread older than the recording is registered at its first tick. The caller may need the
 * thread before that tick. */
pw_thread *
pw_registered_self(void)
{
    pw_thread *t = pw_self();
    if (t || pw_thread_states() || !pw_session_generation()) return t;
    return pw_register_thread(rb_thread_current(), pw_gettid(), true);
}

void pw_registry_in_child(void) { pthread_setspecific(state.exit_key, NULL); }

void
pw_registry_init(VALUE native)
{
    (void)native;
    pthread_key_create(&state.exit_key, native_thread_exits);
#if PW_THREAD_IN_EVENT
    specific_key = rb_internal_thread_specific_key_create();
#endif
}
