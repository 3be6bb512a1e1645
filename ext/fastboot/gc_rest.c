/*
 * Garbage collection rests while files are loaded. What a boot allocates stays alive for the most part, so each
 * collection marks all of it again.
 *
 * A thread that Ruby does not know looks every 10 ms at the process's memory and at the number of loaded files. It
 * ends a rest when memory has grown too much, or when no file was loaded for a while. It only asks for that: a job with
 * the GVL does it at Ruby's next safepoint. Before Ruby 3.3 no such thread may trigger jobs: there is no rest.
 */
#include "gc_rest.h"

#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER

#include <ruby/debug.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define TICK_NS 10000000
#define IDLE_TICKS 20       /* without a file: the rest ends. The next file begins another one. */
#define OVER_TICKS 500      /* without a file: the boot is over */
#define LONGEST_TICKS 12000 /* of a boot */
#define GROWTH 2.4          /* of memory, in one rest */
#define LEAST_GROWTH (48 * MIB)

enum state {
    OVER,       /* nothing is done any more; also before it begins */
    RESTING,    /* this library has disabled collections */
    COLLECTING, /* memory has grown: Ruby is to collect once */
    IDLE,       /* no file was loaded for a while */
};

static struct {
    enum state state;       /* changes with the GVL only; the thread reads it */
    uint64_t limit;         /* of memory: where this rest ends */
    uint64_t most;          /* of memory: no rest ends later */
    size_t collections;     /* before Ruby was to collect */
    unsigned long rests, growths;
    rb_postponed_job_handle_t job;
} rest;

static atomic_ulong loads;
static atomic_int wish; /* enum state: what the thread asks for */
static atomic_int state_now;

static void
enter(enum state state)
{
    rest.state = state;
    atomic_store(&state_now, (int)state);
}

/* Bytes of the process that are in memory; 0: unknown. async-signal-safe */
static uint64_t
resident(void)
{
    char text[128];
    int descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (length <= 0) return 0;
    text[length] = 0;
    const char *second = strchr(text, ' ');
    return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static void
begin_rest(void)
{
    if (RTEST(rb_gc_disable())) { /* somebody else has disabled it */
        enter(OVER);
        return;
    }
    rest.rests++;
    enter(RESTING);
}

static void
end_rest(enum state next)
{
    if (rest.state == RESTING) rb_gc_enable();
    rest.collections = rb_gc_count();
    enter(next);
}

static void
set_limit(uint64_t now)
{
    uint64_t grown = (uint64_t)((double)now * GROWTH);
    rest.limit = grown > now + LEAST_GROWTH ? grown : now + LEAST_GROWTH;
    if (rest.limit > rest.most) rest.limit = rest.most;
}

void
fb_gc_rest_loads(void)
{
    if (rest.state == OVER) return;

    atomic_fetch_add(&loads, 1);
    if (rest.state == IDLE) {
        begin_rest();
    } else if (rest.state == COLLECTING && rb_gc_count() != rest.collections) {
        uint64_t now = resident();
        set_limit(now);
        if (now && now < rest.limit) begin_rest();
        else enter(OVER);
    }
}

/* ---- The thread ---- */

static void
do_wish(void *unused)
{
    enum state wanted = (enum state)atomic_exchange(&wish, RESTING);
    if (wanted == RESTING || rest.state == OVER) return;
    if (rest.state != RESTING && wanted != OVER) return; /* too late */
    if (wanted == COLLECTING) rest.growths++;
    end_rest(wanted);
}

static void
ask(enum state wanted)
{
    atomic_store(&wish, (int)wanted);
    rb_postponed_job_trigger(rest.job);
}

static void *
watch(void *unused)
{
    const struct timespec tick = {0, TICK_NS};
    unsigned long seen = atomic_load(&loads);
    int quiet = 0;
    for (int ticks = 0; ticks < LONGEST_TICKS; ticks++) {
        nanosleep(&tick, NULL);
        enum state state = (enum state)atomic_load(&state_now);
        if (state == OVER) return NULL;

        unsigned long count = atomic_load(&loads);
        quiet = count == seen ? quiet + 1 : 0;
        seen = count;
        if (quiet >= OVER_TICKS) break;
        if (state != RESTING) continue;
        uint64_t now = resident();
        if (now == 0 || now > rest.limit) ask(COLLECTING);
        else if (quiet >= IDLE_TICKS) ask(IDLE);
    }
    ask(OVER);
    return NULL;
}

static int
start_thread(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) return 0;
    sigfillset(&all); /* signals are for Ruby's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    int failure = pthread_create(&thread, &attributes, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failure == 0;
}

/* The child has no such thread. */
static void
after_fork_in_child(void)
{
    end_rest(OVER);
}

/* ---- For Ruby ---- */

static uint64_t
number_in(const char *path)
{
    char text[32];
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return UINT64_MAX;
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (length <= 0 || text[0] < '0' || text[0] > '9') return UINT64_MAX; /* "max" */
    text[length] = 0;
    return strtoull(text, NULL, 10);
}

/* Half of what a container allows. */
static uint64_t
most_memory(void)
{
    uint64_t second = number_in("/sys/fs/cgroup/memory.max");
    uint64_t first = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    uint64_t limit = (first < second ? first : second) / 2;
    long pages = sysconf(_SC_PHYS_PAGES);
    uint64_t machine = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 2 : UINT64_MAX;
    return limit < machine ? limit : machine;
}

static int
has_rlimit(void)
{
    struct rlimit space, data;
    if (getrlimit(RLIMIT_AS, &space) != 0 || getrlimit(RLIMIT_DATA, &data) != 0) return 1;
    return space.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY;
}

/* rest_gc -> nil, or why it does not rest. Called once. */
static VALUE
native_rest_gc(VALUE self)
{
    uint64_t now = resident();
    if (now == 0) return rb_str_new_cstr("/proc/self/statm can't be read");
    if (has_rlimit()) return rb_str_new_cstr("memory is limited (ulimit)");
    rest.most = most_memory();
    set_limit(now);
    if (now >= rest.limit) return rb_str_new_cstr("there is little memory");
    if (RTEST(rb_funcall(rb_mGC, rb_intern("stress"), 0))) return rb_str_new_cstr("GC.stress is on");

    rest.job = rb_postponed_job_preregister(0, do_wish, NULL);
    if (rest.job == POSTPONED_JOB_HANDLE_INVALID) return rb_str_new_cstr("Ruby takes no more postponed jobs");
    if (pthread_atfork(NULL, NULL, after_fork_in_child) != 0) return rb_str_new_cstr(strerror(errno));
    begin_rest();
    if (rest.state == OVER) return rb_str_new_cstr("GC is disabled");
    if (start_thread()) return Qnil;
    end_rest(OVER);
    return rb_str_new_cstr("there is no thread for it");
}

/* gc_rests -> [rests, how many of them ended because memory had grown] */
static VALUE
native_gc_rests(VALUE self)
{
    return rb_assoc_new(ULONG2NUM(rest.rests), ULONG2NUM(rest.growths));
}

/* The program sees to collections itself from now on. */
static VALUE
end_and_call(VALUE self)
{
    if (rest.state != OVER) end_rest(OVER);
    return rb_call_super(0, NULL);
}

static VALUE
end_and_set(VALUE self, VALUE value)
{
    if (rest.state != OVER) end_rest(OVER);
    return rb_call_super(1, &value);
}

void
fb_define_gc_rest(VALUE fastboot, VALUE native)
{
    rb_define_singleton_method(native, "rest_gc", native_rest_gc, 0);
    rb_define_singleton_method(native, "gc_rests", native_gc_rests, 0);
    VALUE methods = rb_define_module_under(fastboot, "GCMethods");
    rb_define_method(methods, "enable", end_and_call, 0);
    rb_define_method(methods, "disable", end_and_call, 0);
    rb_define_method(methods, "stress=", end_and_set, 1);
}

#else

void
fb_gc_rest_loads(void)
{
}

void
fb_define_gc_rest(VALUE fastboot, VALUE native)
{
}

#endif
