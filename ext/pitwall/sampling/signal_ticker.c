#include "sampling/signal_ticker.h"
#include "output/naming.h"
#include "sampling/c_waits.h"
#include "sampling/capture.h"
#include "sampling/gc.h"
#include "sampling/held_signal.h"
#include "sampling/registry.h"
#include "sampling/waiting.h"
#include "session/native_room.h"
#include "tools/in_a_row.h"
#include "vm/reader_lock.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

/* One timer per thread, on the monotonic clock. The signal is delivered to exactly that thread. A helper thread that
 * sends signals would add a wake-up and an inter-processor interrupt to each tick (measured: 55 instead of 28 µs).
 *
 * A thread without the GVL cannot change its Ruby stack. A signal would interrupt the call in which the thread waits:
 * Ruby's own IO#sysread then fails with EAGAIN. So no tick reaches a waiting thread (Ruby 3.2+). Its native thread
 * blocks the signal until the thread has the GVL again. Then the stack is taken and charged for the wait
 * (thread_events.c). The kernel does not rearm a timer whose signal is pending, so idle threads cost nothing. The drain
 * takes the stack of a long wait from outside, because the wait may never end. Each native thread has its own mask, so
 * for threads that change native threads (M:N) the stack is taken before the wait and the timer is switched off
 * (`hold`).
 *
 * Without thread events (3.1) it is unknown which threads wait. A tick wakes an idle thread, which costs as much as a
 * tick of a busy thread, and many woken threads then queue for the GVL. So a thread rests when a tick finds the same
 * stack as the tick before, with hardly any CPU time used. The timer of a resting thread is off. A busy thread, the
 * watcher, checks at each of its own ticks whether the CPU clock of a resting thread has moved. Until then the stack is
 * unchanged. When the clock has moved, the resting thread gets a tick at once. There is always a watcher, even if the
 * watcher itself is idle. */

enum { MOST_RESTING = 64, SPARED = 32 };

static struct {
    struct sigaction previous_action;
    _Atomic bool handler_installed;
    pw_thread *resting[MOST_RESTING]; /* holds list lock; handlers only try to take it */
    uint32_t resting_count;
    _Atomic bool list_taken;
    _Atomic uint32_t watcher;     /* id of the watching thread */
    _Atomic int64_t watched_at;
} ticker;

static bool try_list(void) { return !atomic_exchange_explicit(&ticker.list_taken, true, memory_order_acquire); }
static void leave_list(void) { atomic_store_explicit(&ticker.list_taken, false, memory_order_release); }

static void
take_list(void)
{
    while (!try_list()) sched_yield();
}

static void
arm_from(pw_thread *t, int64_t at)
{
    if (!t->has_timer) return;
    struct itimerspec spec = {0};
    if (at) {
        spec.it_value = (struct timespec){at / 1000000000, at % 1000000000};
        spec.it_interval = (struct timespec){pw_current.interval_ns / 1000000000, pw_current.interval_ns % 1000000000};
    }
    timer_settime(t->timer, TIMER_ABSTIME, &spec, NULL);
}

static void arm(pw_thread *t, bool on) { arm_from(t, on ? pw_next_tick(pw_now_ns()) : 0); }

static void
unlist(pw_thread *t)
{
    if (!t->seen.place) return;
    pw_thread *last = ticker.resting[--ticker.resting_count];
    ticker.resting[t->seen.place - 1] = last;
    last->seen.place = t->seen.place;
    t->seen.place = 0;
}

/* ---- without thread events ---- */

/* async-signal-safe */
static void
rest(pw_thread *t)
{
    if (!try_list()) return; /* try again at the next tick */
    if (!t->seen.place && ticker.resting_count < MOST_RESTING && t->has_timer) {
        t->seen.cpu = -1;
        t->seen.unchanged_until = 0;
        t->seen.spared = 0;
        arm(t, false);
        ticker.resting[ticker.resting_count] = t;
        t->seen.place = ++ticker.resting_count;
    }
    leave_list();
}

/* Charges the old stack for the time until the last check, because the thread stood still until then. The CPU time
 * of being woken for the last sample is charged to the old stack, too. */
static void
charge_rest(pw_thread *t)
{
    int64_t until = t->seen.unchanged_until, charged = atomic_load_explicit(&t->sample.last_cpu, memory_order_relaxed);
    t->seen.unchanged_until = 0;
    if (until <= atomic_load_explicit(&t->sample.last_wall, memory_order_relaxed)) return;
    pw_charge_under(t, PW_REC_CHARGE, PW_UNKNOWN, until, t->seen.cpu > charged ? t->seen.cpu : charged,
                    t->sample.label);
}

/* Whether the thread still rests. Going back to rest after the last tick took some CPU time. More CPU time than that
 * is work. Every SPARED-th check has the thread sampled in any case, because the thread may have gone back to another
 * place. */
static bool
rests_on(pw_thread *t, int64_t now)
{
    enum { GOING_BACK_NS = 200000 };
    int64_t cpu = pw_thread_cpu_now(t);
    if (cpu < 0) return true; /* the native thread has ended; the thread ends itself */
    bool same = t->seen.cpu < 0 ? cpu - atomic_load(&t->sample.last_cpu) < GOING_BACK_NS : cpu == t->seen.cpu;
    if (!same || ++t->seen.spared == SPARED) return false;
    t->seen.cpu = cpu;
    t->seen.unchanged_until = now;
    return true;
}

/* async-signal-safe */
static void
watch(int64_t now)
{
    if (!try_list()) return;
    for (uint32_t i = ticker.resting_count; i-- > 0;) {
        pw_thread *t = ticker.resting[i];
        if (rests_on(t, now)) continue;
        unlist(t);
        arm_from(t, now);
    }
    atomic_store(&ticker.watched_at, now);
    leave_list();
}

static void
wake_all(void)
{
    take_list();
    while (ticker.resting_count) {
        pw_thread *t = ticker.resting[ticker.resting_count - 1];
        unlist(t);
        arm(t, true);
    }
    leave_list();
}

/* Called in the thread's handler, without thread events. */
static void
rest_or_watch(pw_thread *t, bool idle, int64_t wall)
{
    int64_t since = wall - atomic_load(&ticker.watched_at);
    if (!idle || since > 3 * pw_current.interval_ns) atomic_store(&ticker.watcher, t->id);
    if (atomic_load(&ticker.watcher) != t->id) rest(t);
    else if (since * 2 >= pw_current.interval_ns) watch(wall);
}

/* Called at the end of a tick that began at `began`. A tick can take longer than the interval, because the stack is deep.
 * Then the next signal is waiting already, and the program does no work between two ticks. So a tick that takes longer
 * than half of the interval is followed by a pause of PAUSE times its length. async-signal-safe */
static void
slow_down(pw_thread *t, int64_t began)
{
    enum { PAUSE = 3 };
    int64_t now = pw_now_ns(), took = now - began, until = pw_next_tick(now + PAUSE * took);
    if (!pw_in_a_row(&t->own.slow, took * 2 > pw_current.interval_ns)) return;
    pw_count(PW_MISSED, (until - pw_next_tick(now)) / pw_current.interval_ns);
    arm_from(t, until);
}

/* async-signal-safe */
static void
tick(pw_thread *t, int overrun)
{
    /* After a wait in C code, the sample is dated to the last tick of the grid, as if it had been taken then. The
     * beginning of the wait was charged to the code that ran before. */
    bool waited = pw_tls.waited;
    int64_t now = pw_now_ns(), wall = waited ? pw_last_tick(now) : now;
    pw_count(PW_TICKS, 1);
    if (overrun > 0 && !waited) pw_count(PW_MISSED, overrun);
    if (t->own.busy || t->sample.finished || t->own.wait_due) {
        pw_count(PW_DEFERRED, 1);
        return;
    }
    if (pw_gc_takes_tick(t, wall)) {
        slow_down(t, now);
        return;
    }
    pw_naming_trigger_if_wanted();

    uint8_t state = (uint8_t)atomic_load_explicit(&t->own.state, memory_order_relaxed);
    bool off_gvl = pw_off_gvl(state);
    if (state == PW_UNKNOWN) charge_rest(t);
    int64_t passed = wall - atomic_load_explicit(&t->sample.last_wall, memory_order_relaxed),
                     charged = atomic_load_explicit(&t->sample.last_cpu, memory_order_relaxed);
    if (!(off_gvl && atomic_load_explicit(&t->own.held, memory_order_relaxed))) {
        if (pw_capture(t, 0, state, 1, wall, pw_cpu_to_charge(t, off_gvl || waited, now))) {
            pw_count(PW_CAPTURES, 1);
            if (off_gvl) atomic_store_explicit(&t->own.held, true, memory_order_relaxed);
        }
        else off_gvl = false; /* ring full: try again at the next tick */
    }
    if (t->sample.empty >= pw_looks_at_nothing(t) && state == PW_UNKNOWN && !pw_tls.pinned) {
        arm(t, false);
        pw_thread_vanished(t);
        return;
    }
    if (state == PW_UNKNOWN) {
        int64_t burnt = atomic_load_explicit(&t->sample.last_cpu, memory_order_relaxed) - charged;
        rest_or_watch(t, t->sample.unchanged && !t->sample.empty && !pw_tls.pinned && burnt * 4 < passed, wall);
    }
    if (off_gvl) {
        atomic_store_explicit(&t->own.parked, true, memory_order_relaxed);
        arm(t, false);
    }
    else if (!t->seen.place) slow_down(t, now);
    pw_count(PW_HANDLER_NS, pw_now_ns() - now);
}

/* The handler. async-signal-safe */
static void
on_signal(int signo, siginfo_t *info, void *context)
{
    int saved = errno;
    /* si_code distinguishes a timer's signal from a signal that somebody sent. */
    if (info->si_code == SI_TIMER && !pw_tls.changing && !pw_tls.returning && pw_enter_handler()) {
        pw_thread *t = pw_self();
        if (!t) { /* another thread registered this thread, and this is its first signal */
            uint64_t word = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
            t = pw_thread_at((uint32_t)(word >> 32), (uint32_t)word);
            if (t && t->carrier.tid == pw_gettid()) pw_now_running(t);
            else t = NULL;
        }
        /* the signal is late: the thread is no longer on this native thread */
        if (t && atomic_load(&t->carrier.migrates) && t->carrier.tid != pw_gettid()) t = NULL;
        if (t && t->native) t->native->context = context;
        if (t) tick(t, info->si_overrun);
        if (t && pw_tls.thread == t && t->native) t->native->context = NULL; /* else the thread has ended */
        pw_leave_handler();
    }
    errno = saved;
}

bool
pw_signal_taken(int signo)
{
    struct sigaction now;
    if (sigaction(signo, NULL, &now) != 0) return false; /* no such signal: start reports why */
    return (now.sa_flags & SA_SIGINFO) || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
}

static int
start(void)
{
    if (pw_signal_taken(pw_current.signo)) return EBUSY;
    ticker.resting_count = 0;
    atomic_store(&ticker.watcher, 0);
    atomic_store(&ticker.watched_at, 0);
    leave_list(); /* in a forked child: another thread may have held the list at the fork */
    struct sigaction action = {0};
    action.sa_sigaction = on_signal;
    /* ONSTACK: a sample may hit a thread at the very end of its machine stack. */
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(pw_current.signo, &action, &ticker.previous_action) != 0) return errno;
    atomic_store(&ticker.handler_installed, true);
    pw_signal_is_handled(true);
    pw_c_waits_install();
    return 0;
}

static bool
ours(void)
{
    struct sigaction now;
    return sigaction(pw_current.signo, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal;
}

/* After this function the list does not contain the thread, so the thread may be freed. */
static void
thread_end(pw_thread *t)
{
    pw_reader_lock(); /* no look at the thread is under way, and none begins */
    bool had = atomic_exchange(&t->has_timer, false);
    pw_reader_unlock();
    if (had) timer_delete(t->timer);
    if (pw_thread_states()) return;
    take_list();
    unlist(t);
    leave_list();
}

static void
give_signal_back(void)
{
    pw_signal_is_handled(false);
    if (atomic_exchange(&ticker.handler_installed, false) && ours()) {
        sigaction(pw_current.signo, &ticker.previous_action, NULL);
    }
}

static void
stop(void)
{
    pthread_mutex_lock(&pw_current.lock);
    pw_look_at_waiting(0);
    for (pw_thread *t = pw_current.threads; t; t = t->next) thread_end(t);
    pthread_mutex_unlock(&pw_current.lock);
    pw_c_waits_remove();
    /* The signal is given back only if the handler is still ours. The signal is ignored by default, so a last signal
     * on its way does no harm. */
    give_signal_back();
}

static void
thread_begin(pw_thread *t)
{
    if (!atomic_load(&ticker.handler_installed)) return; /* the signal was lost */
    struct sigevent event = {0};
    event.sigev_signo = pw_current.signo;
    event.sigev_value.sival_ptr = (void *)(uintptr_t)pw_thread_word(t);
#ifdef __linux__
    event.sigev_notify = SIGEV_THREAD_ID;
# ifdef sigev_notify_thread_id
    event.sigev_notify_thread_id = t->carrier.tid;
# else
    event._sigev_un._tid = t->carrier.tid;
# endif
#else
    event.sigev_notify = SIGEV_SIGNAL;
#endif
    if (timer_create(CLOCK_MONOTONIC, &event, &t->timer) != 0) {
        pw_count(PW_TIMERS_REFUSED, 1); /* RLIMIT_SIGPENDING is reached, or the thread has just ended */
        return;
    }
    atomic_store(&t->has_timer, true);
    /* the thread has waited since before the recording */
    if (pw_waiting_looks() && !pw_threads_move && pw_off_gvl(atomic_load(&t->own.state))) {
        atomic_store(&t->own.suspended_at, pw_now_ns());
        atomic_store(&t->own.changes, 1);
        atomic_store(&t->own.parked, true);
    }
    else if (atomic_load(&ticker.handler_installed)) arm(t, true);
    /* the signal was lost during this function: the signal's new owner must not get our ticks */
    if (!atomic_load(&ticker.handler_installed)) thread_end(t);
}

static void
thread_resumed(pw_thread *t)
{
    if (atomic_exchange_explicit(&t->own.parked, false, memory_order_relaxed)) arm(t, true);
}

static void
thread_left(pw_thread *t)
{
    atomic_store_explicit(&t->own.parked, true, memory_order_relaxed);
    arm(t, false);
}

/* If the program has installed its own handler, stops all timers at once. */
static void
check(void)
{
    /* The watcher has ended, or is in a long collection. */
    if (ticker.resting_count && pw_now_ns() - atomic_load(&ticker.watched_at) > 3 * pw_current.interval_ns + 10000000) {
        wake_all();
    }
    if (!atomic_load(&ticker.handler_installed)) return;
    if (ours()) {
        enum { LONG_NS = 50000000 };
        pw_look_at_waiting(LONG_NS);
        return;
    }
    atomic_store(&ticker.handler_installed, false);
    pw_signal_is_handled(false);
    pw_count(PW_SIGNAL_LOST, 1);
    for (pw_thread *t = pw_current.threads; t; t = t->next) thread_end(t);
}

const pw_ticker pw_signal_ticker = {
    .name = "signal", .start = start, .stop = stop, .stop_in_child = give_signal_back, .thread_begin = thread_begin,
            .thread_end = thread_end,
    .thread_resumed = thread_resumed, .thread_left = thread_left, .check = check, .samples = true,
                      .looks_at_waiting = true};

/* signal_foreign?(number): whether a library has a handler for the signal that Ruby does not know. SIGINT's handler
 * is Ruby's. */
static VALUE
native_signal_foreign_p(VALUE self, VALUE signo)
{
    struct sigaction its, rubys;
    int number = NUM2INT(signo);
    if (!pw_signal_taken(number) || sigaction(number, NULL, &its) != 0 || sigaction(SIGINT, NULL, &rubys) != 0) {
        return Qfalse;
    }
    return its.sa_handler == rubys.sa_handler ? Qfalse : Qtrue;
}

void
pw_signal_ticker_init(VALUE native)
{
    rb_define_singleton_method(native, "signal_foreign?", native_signal_foreign_p, 1);
}
