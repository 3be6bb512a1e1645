/*
 * The lower limit of the cost of a sampler in the thread: a timer of the calling thread on the monotonic clock, whose
 * signal handler only counts. The cost of Pitwall or a peer above this limit is its own.
 */
#include <ruby.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static timer_t timer;
static volatile sig_atomic_t ticks;
static struct sigaction previous;

static void on_tick(int signal) { ticks++; }

/* BareTimer.start(interval_ns) */
static VALUE bare_timer_start(VALUE self, VALUE interval_ns)
{
    long long ns = NUM2LL(interval_ns);
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    struct itimerspec every = {.it_interval = {ns / 1000000000, ns % 1000000000}};

    every.it_value = every.it_interval;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    ticks = 0;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGPROF, &action, &previous)) rb_sys_fail("sigaction");
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) rb_sys_fail("timer_create");
    if (timer_settime(timer, 0, &every, NULL)) rb_sys_fail("timer_settime");
    return Qnil;
}

/* BareTimer.stop -> how many times the handler ran */
static VALUE bare_timer_stop(VALUE self)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    if (timer_delete(timer)) rb_sys_fail("timer_delete");
    /* A last signal may be on its way, and SIGPROF's default is to kill. */
    if (previous.sa_handler == SIG_DFL) sigaction(SIGPROF, &ignore, NULL);
    else sigaction(SIGPROF, &previous, NULL);
    return LONG2NUM(ticks);
}

void Init_bare_hook(void);

void Init_bare(void)
{
    VALUE module = rb_define_module("BareTimer");

    rb_define_singleton_method(module, "start", bare_timer_start, 1);
    rb_define_singleton_method(module, "stop", bare_timer_stop, 0);
    Init_bare_hook();
}
