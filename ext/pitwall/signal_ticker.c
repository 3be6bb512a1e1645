#include "capture.h"
#include "sampler.h"
#include <errno.h>
#include <string.h>

/* One timer a thread, on the monotonic clock, delivered to exactly that thread. A helper thread that signals would cost
 * a wake-up and an inter-processor interrupt more a tick (measured: 55 against 28 µs).
 *
 * A thread without the GVL cannot change its Ruby stack. It is sampled once, then its timer is switched off until it
 * has the GVL again (Ruby 3.2+), and the stack is charged for the time between: blocked calls are interrupted at most
 * once (mostly never: see hold in thread_events.c), and idle threads cost nothing. */

static struct sigaction previous_action;
static _Atomic bool handler_installed;

static void
arm(pw_thread *t, bool on)
{
    if (!t->has_timer) return;
    struct itimerspec spec = {0};
    if (on) {
        int64_t at = pw_next_tick(pw_now_ns());
        spec.it_value = (struct timespec){at / 1000000000, at % 1000000000};
        spec.it_interval = (struct timespec){pw_current.interval_ns / 1000000000, pw_current.interval_ns % 1000000000};
    }
    timer_settime(t->timer, TIMER_ABSTIME, &spec, NULL);
}

/* A thread that had a stack and has none has ended. One that never had may still be waiting for its first turn. */
static uint32_t
looks_at_nothing(const pw_thread *t)
{
    return t->sampled ? 3 : (uint32_t)(1000000000 / pw_current.interval_ns) + 3;
}

static void
tick(pw_thread *t, int overrun)
{
    int64_t wall = pw_now_ns();
    pw_count(PW_TICKS, 1);
    if (overrun > 0) pw_count(PW_MISSED, overrun);
    if (t->busy || t->finished || t->owes) {
        pw_count(PW_DEFERRED, 1);
        return;
    }
    if (pw_gc_takes_tick(t, wall)) return;
    pw_resolve_if_wanted();

    uint8_t state = (uint8_t)atomic_load_explicit(&t->state, memory_order_relaxed);
    bool off_gvl = state == PW_WAITING || state == PW_BLOCKED;
    if (!(off_gvl && atomic_load_explicit(&t->held, memory_order_relaxed))) {
        if (pw_capture(t, 0, state, 1, wall, pw_cpu_to_charge(t, off_gvl, wall))) {
            pw_count(PW_CAPTURES, 1);
            if (off_gvl) atomic_store_explicit(&t->held, true, memory_order_relaxed);
        }
        else off_gvl = false; /* ring full: try again at the next tick */
    }
    if (t->empty >= looks_at_nothing(t) && state == PW_UNKNOWN && !pw_tls.pinned) {
        arm(t, false);
        pw_thread_vanished(t);
        return;
    }
    if (off_gvl) {
        atomic_store_explicit(&t->parked, true, memory_order_relaxed);
        arm(t, false);
    }
    pw_count(PW_HANDLER_NS, pw_now_ns() - wall);
}

static void
on_signal(int signo, siginfo_t *info, void *context)
{
    int saved = errno;
    /* si_code tells a timer's signal from one somebody sent. */
    if (info->si_code == SI_TIMER && pw_enter_handler()) {
        pw_thread *t = pw_self();
        if (!t) { /* registered by another thread: this is the first signal it gets */
            uint64_t word = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
            t = pw_thread_at((uint32_t)(word >> 32), (uint32_t)word);
            if (t && t->tid == pw_gettid()) {
                pw_tls.thread = t;
                pw_tls.generation = t->generation;
            }
            else t = NULL;
        }
        if (t) tick(t, info->si_overrun);
        pw_leave_handler();
    }
    errno = saved;
}

bool
pw_signal_taken(int signo)
{
    struct sigaction now;
    if (sigaction(signo, NULL, &now) != 0) return false; /* no such signal: start says why */
    return (now.sa_flags & SA_SIGINFO) || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
}

static int
start(void)
{
    if (pw_signal_taken(pw_current.signo)) return EBUSY;
    struct sigaction action = {0};
    action.sa_sigaction = on_signal;
    /* ONSTACK: a sample may hit a thread at the very end of its machine stack. */
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(pw_current.signo, &action, &previous_action) != 0) return errno;
    atomic_store(&handler_installed, true);
    return 0;
}

static bool
ours(void)
{
    struct sigaction now;
    return sigaction(pw_current.signo, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal;
}

static void
thread_end(pw_thread *t)
{
    if (atomic_exchange(&t->has_timer, false)) timer_delete(t->timer);
}

static void
give_signal_back(void)
{
    if (atomic_exchange(&handler_installed, false) && ours()) sigaction(pw_current.signo, &previous_action, NULL);
}

static void
stop(void)
{
    pthread_mutex_lock(&pw_current.lock);
    for (pw_thread *t = pw_current.threads; t; t = t->next) thread_end(t);
    pthread_mutex_unlock(&pw_current.lock);
    /* Given back only if it is still ours; the signal is one that is ignored by default, so a last one on its way harms nobody. */
    give_signal_back();
}

static void
thread_begin(pw_thread *t)
{
    if (!atomic_load(&handler_installed)) return; /* the signal was lost */
    struct sigevent event = {0};
    event.sigev_signo = pw_current.signo;
    event.sigev_value.sival_ptr = (void *)(uintptr_t)pw_thread_word(t);
#ifdef __linux__
    event.sigev_notify = SIGEV_THREAD_ID;
# ifdef sigev_notify_thread_id
    event.sigev_notify_thread_id = t->tid;
# else
    event._sigev_un._tid = t->tid;
# endif
#else
    event.sigev_notify = SIGEV_SIGNAL;
#endif
    if (timer_create(CLOCK_MONOTONIC, &event, &t->timer) != 0) {
        pw_count(PW_TIMERS_REFUSED, 1); /* RLIMIT_SIGPENDING, or the thread is just gone */
        return;
    }
    atomic_store(&t->has_timer, true);
    if (atomic_load(&handler_installed)) arm(t, true);
    else thread_end(t); /* the signal was lost while we were here: its new owner must not get our ticks */
}

static void
thread_resumed(pw_thread *t)
{
    if (atomic_exchange_explicit(&t->parked, false, memory_order_relaxed)) arm(t, true);
}

static void
thread_left(pw_thread *t)
{
    atomic_store_explicit(&t->parked, true, memory_order_relaxed);
    arm(t, false);
}

/* The program installed a handler of its own: get out of its way at once. */
static void
check(void)
{
    if (!atomic_load(&handler_installed) || ours()) return;
    atomic_store(&handler_installed, false);
    pw_count(PW_SIGNAL_LOST, 1);
    for (pw_thread *t = pw_current.threads; t; t = t->next) thread_end(t);
}

const pw_ticker pw_signal_ticker = {"signal", start, stop, give_signal_back, thread_begin, thread_end, thread_resumed, thread_left, check, NULL, NULL};
