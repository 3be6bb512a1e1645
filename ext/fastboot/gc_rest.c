/*
 * Garbage collection rests while files are loaded. Half of a boot's objects and more stay alive, and each collection
 * marks them again.
 *
 * A thread outside of Ruby reads every 10 ms the process's memory and the number of loaded files. It asks for the end
 * of a rest when memory has grown too much, or when no file was loaded for a while. The thread only asks. A job with
 * the GVL ends the rest at Ruby's next safepoint. Before Ruby 3.3 no such thread may trigger jobs: there is no rest.
 */
#include "gc_rest.h"

#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER

#include <ruby/debug.h>
#include <ruby/ractor.h>
#include <ruby/vm.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "extension_frames.h"
#include "memory_limits.h"
#include "outside_thread.h"
#include "tools.h"

#define MIB (UINT64_C(1) << 20)
#define TICK_NS 10000000
#define IDLE_TICKS 50       /* without a file: the rest ends. The next file begins another one. */
#define OVER_TICKS 500      /* without a file: the boot is over */
#define SLOW_DOWN 10        /* times as long a tick, while no Ruby thread does what was asked */
#define FIRST_DESCRIPTOR 60 /* or a fifth of it, where the limit of descriptors is low */
#define LONGEST_TICKS 12000 /* of a boot */
#define GROWTH 2.0          /* of memory, in one rest */
#define LEAST_GROWTH (72 * MIB)
/* A boot that will collect does so after a share of its growth: EARLY_SMALL if it grows by SMALL or less, EARLY if it
 * grows by LARGE or more, else between them. The earlier, the less there is to mark, and the less garbage is freed.
 * Small boots have little garbage. */
#define EARLY_SMALL 0.3
#define EARLY 0.6
#define SMALL (100 * MIB)
#define LARGE (150 * MIB)
#define MORE 1.25           /* times the expected memory: a boot that is like the last one takes less */
#define TOO_SMALL 0.9       /* share of the limit: a boot that takes less memory needs no collection */
#define SURVIVORS 0.3       /* least share of objects that survives a collection; else there is no further rest */
#define GARBAGE 0.75        /* memory of a freed object / that of an average object; estimated from two applications */
#define PUT_OFF_TICKS 25    /* after the end of a rest was put off, until the thread asks again */
#define MOST_AGEING 3       /* collections before the first fork. An object that has survived three is old. */
#define OLD 0.75            /* share of old objects that is enough before the first fork */

enum state {
    OVER,       /* nothing is done any more; also before it begins */
    RESTING,    /* this library has disabled collections */
    COLLECTING, /* memory has grown: Ruby is to collect once */
    IDLE,       /* no file was loaded for a while */
};

static struct {
    _Atomic enum state state; /* changes with the GVL only; the thread reads it */
    _Atomic uint64_t limit; /* of memory: where this rest ends. Changes with the GVL only. */
    uint64_t most;          /* of memory: no rest ends later */
    _Atomic uint64_t peak;  /* of memory, while collections were disabled. Only the thread writes it. */
    uint64_t spared;        /* memory that the boot may take without a collection; 0: unknown */
    int exceeded;           /* the boot took more than `spared` */
    uint64_t begun;         /* memory when rest_gc was called */
    uint64_t expected;      /* memory that the boot is expected to take; 0: unknown */
    uint64_t collected;     /* memory that collections have freed, estimated */
    size_t collections;     /* before Ruby was to collect */
    size_t objects;         /* how many there were before Ruby was to collect */
    size_t earlier_objects; /* how many there were when rest_gc was called */
    unsigned long rests, growths;
    rb_postponed_job_handle_t job;
    VALUE enable, disable, set_stress, set_limit, fork, new_ractor; /* the Methods that were replaced */
    char *extensions;       /* the folder of Ruby's own */
    int statm;              /* a descriptor of /proc/self/statm */
    struct stat opened;     /* its file */
    int is_young;           /* A rest has kept objects from getting old. */
} rest = {.enable = Qnil, .disable = Qnil, .set_stress = Qnil, .set_limit = Qnil, .fork = Qnil, .new_ractor = Qnil,
          .statm = -1};

/* While the thread holds it, Ruby does not end. */
static pthread_mutex_t alive = PTHREAD_MUTEX_INITIALIZER;
static int has_ended; /* with `alive` */

static atomic_ulong loads;
static _Atomic enum state wish = RESTING; /* what the thread asks for; RESTING: nothing */
static atomic_int put_off; /* the job did not do what the thread had asked for, because of an extension */

/* The descriptor stays open. If the thread opened files, the program could get other numbers for its own files. Its
 * number is 60, because most programs use lower numbers only. From 64 on, Linux would enlarge the process's table of
 * descriptors. In a process with threads that takes 14 ms, because Linux waits until each processor has left the old
 * table. */
static void
open_statm(void)
{
    int low = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (low < 0) return;
    rest.statm = fcntl(low, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (rest.statm < 0) rest.statm = fcntl(low, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR / 5);
    close(low);
    fstat(rest.statm, &rest.opened);
}

/* How many bytes of the process are in memory; 0: unknown. If the program has closed the descriptor, its number may
 * belong to another file. */
static uint64_t
resident(void)
{
    char text[128];
    struct stat now;
    if (fstat(rest.statm, &now) != 0 || now.st_dev != rest.opened.st_dev || now.st_ino != rest.opened.st_ino) return 0;
    ssize_t length = pread(rest.statm, text, sizeof text - 1, 0);
    if (length <= 0) return 0;
    text[length] = 0;
    char *second;
    if (strtoull(text, &second, 10) == 0 || *second != ' ') return 0;
    return strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static size_t
gc_stat(const char *name)
{
    return rb_gc_stat(ID2SYM(rb_intern(name)));
}

static void
begin_rest(void)
{
    if (RTEST(rb_gc_disable())) { /* somebody else has disabled it */
        rest.state = OVER;
        return;
    }
    rest.rests++;
    rest.is_young = 1;
    rest.state = RESTING;
}

static void
end_rest(enum state next)
{
    if (rest.state == RESTING) rb_gc_enable();
    rest.state = next;
}

/* Has memory grown too much? 0: how much there is, is unknown. */
static int
is_over_limit(uint64_t now)
{
    return now == 0 || now > rest.limit;
}

/* Sets the limit of this rest. */
static void
set_limit(uint64_t wanted)
{
    uint64_t limit = wanted < rest.spared ? rest.spared : wanted;
    rest.limit = limit < rest.most ? limit : rest.most;
}

/* The limit if nothing is known of the boot. */
static uint64_t
usual_limit(uint64_t now)
{
    uint64_t grown = (uint64_t)((double)now * GROWTH), limit = now + LEAST_GROWTH;
    return grown > limit ? grown : limit;
}

/* The limit of the first rest.
 * uncollected: memory that the boot would take without a collection, in bytes; 0: earlier boots did not collect */
static uint64_t
first_limit(uint64_t now, uint64_t uncollected)
{
    uint64_t usual = usual_limit(now);
    if ((double)uncollected < (double)usual * TOO_SMALL || rest.expected <= now) return usual;
    uint64_t growth = rest.expected - now;
    double share = growth < LARGE ? EARLY_SMALL : EARLY;
    if (growth > SMALL && growth < LARGE) {
        share += (EARLY - EARLY_SMALL) * (double)(growth - SMALL) / (double)(LARGE - SMALL);
    }
    return now + (uint64_t)((double)growth * share);
}

/* The limit after a collection. */
static uint64_t
next_limit(uint64_t now)
{
    uint64_t usual = usual_limit(now), more = (uint64_t)((double)rest.expected * MORE);
    return usual > more ? usual : more;
}

/* Which share of this boot's objects has survived the collection? In boots of Rails 0.4 to 0.55. */
static double
survivors_of(size_t before, size_t after)
{
    if (before <= rest.earlier_objects || after <= rest.earlier_objects) return after < before ? 0 : 1;
    return (double)(after - rest.earlier_objects) / (double)(before - rest.earlier_objects);
}

/* Ruby has begun to collect. rb_gc_disable lets Ruby end this collection first. */
static void
rest_again(void)
{
    uint64_t now = resident();
    set_limit(next_limit(now));
    begin_rest();
    if (rest.state == OVER) return;
    double survivors = survivors_of(rest.objects, gc_stat("heap_live_slots"));
    if (now > rest.begun && survivors < 1) {
        rest.collected += (uint64_t)((double)(now - rest.begun) * (1 - survivors) * GARBAGE);
    }
    if (now == 0 || now >= rest.limit || survivors < SURVIVORS || rest.exceeded) end_rest(OVER);
}

void
fb_gc_rest_loads(void)
{
    if (rest.state == OVER) return;

    atomic_fetch_add(&loads, 1);
    if (rest.state == IDLE) {
        begin_rest();
    } else if (rest.state == COLLECTING && rb_gc_count() != rest.collections) {
        rest_again();
    }
}

/* ---- The thread ---- */

/* Is the rest to end even if an extension is on the stack?
 * now: how much memory the process takes, in bytes; 0: unknown */
static int
is_urgent(enum state wanted, uint64_t now)
{
    return wanted == OVER || now == 0 || now > rest.limit + LEAST_GROWTH || now >= rest.most;
}

static void
do_wish(void *unused)
{
    enum state wanted = atomic_exchange(&wish, RESTING);
    if (wanted == RESTING || rest.state == OVER) return;
    if (rest.state != RESTING && wanted != OVER) return; /* too late */
    uint64_t now = resident();
    /* A C extension may itself have disabled collections, and have called the Ruby code that runs now. Ruby does not
     * tell that. So the rest goes on while there is an extension on the stack, but not for long. */
    if (!is_urgent(wanted, now) && fb_in_extension(rest.extensions)) {
        put_off = 1;
        return;
    }
    if (wanted == COLLECTING) {
        if (!is_over_limit(now)) return; /* the limit was raised meanwhile */
        rest.exceeded = rest.spared && now > rest.spared;
        rest.growths++;
        rest.collections = rb_gc_count();
        rest.objects = gc_stat("heap_live_slots");
    }
    end_rest(wanted);
}

/* Returns 0 where Ruby has ended. */
static int
ask(enum state wanted)
{
    pthread_mutex_lock(&alive);
    int is_alive = !has_ended;
    if (is_alive) {
        wish = wanted;
        rb_postponed_job_trigger(rest.job);
    }
    pthread_mutex_unlock(&alive);
    return is_alive;
}

/* Asks until it is done. If all Ruby threads sleep, the main thread gets the job, and may not wake. */
static void *
watch(void *unused)
{
    unsigned long seen = atomic_load(&loads);
    int quiet = 0, ticks = 0, pause = 0;
    for (;;) {
        int is_over = quiet >= OVER_TICKS || ticks >= LONGEST_TICKS;
        struct timespec tick = {0, is_over ? TICK_NS * SLOW_DOWN : TICK_NS};
        nanosleep(&tick, NULL);
        enum state state = rest.state;
        if (state == OVER) return NULL;

        unsigned long count = atomic_load(&loads);
        quiet = count == seen ? quiet + !is_over : 0;
        seen = count;
        ticks += !is_over;
        if (atomic_exchange(&put_off, 0)) pause = PUT_OFF_TICKS;
        enum state wanted = RESTING;
        if (is_over) wanted = OVER;
        else if (state == RESTING) {
            uint64_t now = resident();
            if (now > rest.peak) rest.peak = now;
            if (fb_has_memory_limit()) wanted = OVER; /* the program has set it */
            else if (is_over_limit(now)) wanted = COLLECTING;
            else if (quiet >= IDLE_TICKS) wanted = IDLE;
            if (pause > 0 && pause-- && !is_urgent(wanted, now)) continue;
        }
        if (wanted != RESTING && !ask(wanted)) return NULL;
    }
}

/* The VM is about to be freed. */
static void
note_end(ruby_vm_t *unused)
{
    pthread_mutex_lock(&alive);
    has_ended = 1;
    pthread_mutex_unlock(&alive);
}

/* The child has no such thread. */
static void
after_fork_in_child(void)
{
    pthread_mutex_init(&alive, NULL); /* the thread may have held it */
    end_rest(OVER);
    rest.is_young = 0;
}

/* ---- For Ruby ---- */

/* The program sees to collections itself from now on. */
static VALUE
end_and_call(VALUE method, int argc, const VALUE *argv)
{
    end_rest(OVER);
    rest.is_young = 0;
    return rb_method_call(argc, argv, method);
}

static VALUE
gc_enable(VALUE self)
{
    return end_and_call(rest.enable, 0, NULL);
}

static VALUE
gc_disable(VALUE self)
{
    return end_and_call(rest.disable, 0, NULL);
}

static VALUE
gc_set_stress(VALUE self, VALUE value)
{
    return end_and_call(rest.set_stress, 1, &value);
}

/* Process.setrlimit. If the system gives no more memory, Ruby collects before it raises NoMemoryError, but not while
 * collections are disabled. */
static VALUE
process_setrlimit(int argc, VALUE *argv, VALUE self)
{
    VALUE result = rb_method_call(argc, argv, rest.set_limit);
    if (fb_has_memory_limit()) end_rest(OVER);
    return result;
}

/* Ractor.new. Only the main Ractor can end a rest, because the main Ractor runs the jobs. While it waits for another
 * Ractor, it runs no job. So the first Ractor.new ends the rest, and no further rest begins. The receiver may be a
 * subclass of Ractor, so the original method is kept unbound. */
static VALUE
ractor_new(int argc, VALUE *argv, VALUE self)
{
    end_rest(OVER);
    VALUE *arguments = ALLOCA_N(VALUE, argc + 1);
    arguments[0] = self;
    MEMCPY(arguments + 1, argv, VALUE, argc);
    VALUE block = rb_block_given_p() ? rb_block_proc() : Qnil;
    return rb_funcall_with_block_kw(rest.new_ractor, rb_intern("bind_call"), argc + 1, arguments, block,
                                    RB_PASS_CALLED_KEYWORDS);
}

/* Process._fork. Ruby writes to an object when the object gets old. A child that writes to a page gets its own copy of
 * the page. So the boot's objects get old here, before the child exists. Without rests they get old during the boot. */
static VALUE
process_fork(VALUE self)
{
    for (int i = 0; i < MOST_AGEING && rest.is_young; i++) {
        if ((double)gc_stat("old_objects") >= (double)gc_stat("heap_live_slots") * OLD) break;
        rb_gc_start();
    }
    if (rest.state != RESTING) rest.is_young = 0;
    return rb_method_call(0, NULL, rest.fork);
}

/* rest_gc(expected, uncollected, extensions) -> nil, or why it does not rest. Called once.
 * expected: MiB that the boot is expected to take; 0: unknown
 * uncollected: MiB that the boot would take without a collection; 0: earlier boots did not collect
 * extensions: the folder of Ruby's own extensions */
static VALUE
native_rest_gc(VALUE self, VALUE expected, VALUE uncollected, VALUE extensions)
{
    open_statm();
    uint64_t now = resident();
    if (now == 0) return rb_str_new_cstr("/proc/self/statm can't be read");
    rest.begun = now;
    if (fb_has_memory_limit()) return rb_str_new_cstr("memory is limited (ulimit)");
    rest.most = fb_most_memory();
    rest.expected = (uint64_t)NUM2UINT(expected) * MIB;
    set_limit(first_limit(now, (uint64_t)NUM2UINT(uncollected) * MIB));
    rest.earlier_objects = gc_stat("heap_live_slots");
    if (now >= rest.limit) return rb_str_new_cstr("there is little memory");
    if (RTEST(rb_funcall(rb_mGC, rb_intern("stress"), 0))) return rb_str_new_cstr("GC.stress is on");

    rest.extensions = strdup(StringValueCStr(extensions));
    if (!rest.extensions) return rb_str_new_cstr("there is no memory");
    rest.job = rb_postponed_job_preregister(0, do_wish, NULL);
    if (rest.job == POSTPONED_JOB_HANDLE_INVALID) return rb_str_new_cstr("Ruby takes no more postponed jobs");
    int failure = pthread_atfork(NULL, NULL, after_fork_in_child);
    if (failure) return rb_str_new_cstr(strerror(failure));
    ruby_vm_at_exit(note_end);
    begin_rest();
    if (rest.state == OVER) return rb_str_new_cstr("GC is disabled");
    if (!fb_start_thread(watch)) {
        end_rest(OVER);
        return rb_str_new_cstr("there is no thread for it");
    }
    rest.enable = fb_replace_method(rb_mGC, "enable", gc_enable, 0);
    rest.disable = fb_replace_method(rb_mGC, "disable", gc_disable, 0);
    rest.set_stress = fb_replace_method(rb_mGC, "stress=", gc_set_stress, 1);
    rest.set_limit = fb_replace_method(rb_mProcess, "setrlimit", process_setrlimit, -1);
    rest.fork = fb_replace_method(rb_mProcess, "_fork", process_fork, 0);
    rest.new_ractor = rb_funcall(fb_replace_method(rb_cRactor, "new", ractor_new, -1), rb_intern("unbind"), 0);
    return Qnil;
}

/* let_memory_grow(MiB): this rest, and each later rest, goes on until the process has so much memory. A limit that is
 * higher already stays. */
static VALUE
native_let_memory_grow(VALUE self, VALUE wanted)
{
    rest.spared = (uint64_t)NUM2UINT(wanted) * MIB;
    if (rest.spared > rest.most) rest.spared = rest.most;
    if (rest.state == RESTING && rest.spared > rest.limit) rest.limit = rest.spared;
    return Qnil;
}

/* gc_rests -> [rests, how many of them ended because memory had grown, the most MiB in memory during rests, an estimate
 * of these MiB for a boot without collections] */
static VALUE
native_gc_rests(VALUE self)
{
    uint64_t peak = rest.peak, now = rest.state == RESTING || rest.state == COLLECTING ? resident() : 0;
    if (now > peak) peak = now;
    return rb_ary_new_from_args(4, ULONG2NUM(rest.rests), ULONG2NUM(rest.growths), ULL2NUM(peak / MIB),
                                ULL2NUM((peak + rest.collected) / MIB));
}

void
fb_define_gc_rest(VALUE native)
{
    rb_define_singleton_method(native, "rest_gc", native_rest_gc, 3);
    rb_define_singleton_method(native, "let_memory_grow", native_let_memory_grow, 1);
    rb_define_singleton_method(native, "gc_rests", native_gc_rests, 0);
    fb_hold((VALUE *const[]){&rest.enable, &rest.disable, &rest.set_stress, &rest.set_limit, &rest.fork,
                             &rest.new_ractor, NULL});
}

#else

void
fb_gc_rest_loads(void)
{
}

void
fb_define_gc_rest(VALUE native)
{
}

#endif
