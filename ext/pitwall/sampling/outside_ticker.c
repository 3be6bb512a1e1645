#include "sampling/outside_ticker.h"
#include "output/naming.h"
#include "sampling/capture.h"
#include "sampling/gc.h"
#include "sampling/registry.h"
#include "tools/quiet_thread.h"
#include "vm/reader_lock.h"
#include <errno.h>
#include <semaphore.h>
#include <string.h>
#ifdef __linux__
# include <sys/prctl.h>
# include <unistd.h>
#endif

/* A helper thread, on another core if there is one, reads the stacks of other threads while those threads run. There is
 * no signal and no interruption, and the stack is read at any point of the code. Threads only note when they release
 * and get the GVL.
 *
 * The stack is unchanged if the thread has used no CPU since the last look, or if the thread waits for the GVL or
 * without the GVL. Then the stack is not read again. It is charged for the time in one record, at the end of that time.
 *
 * The helper may be late when other programs use its core. The time of missed ticks is then attributed by the noted
 * changes: a thread that released the GVL ran until then, and a thread that got the GVL waited until then. Otherwise
 * all of that time would go to the next stack read.
 *
 * While all threads wait without the GVL, no stack can change. So after a while the helper rests until a thread gets
 * the GVL. */

static struct {
    pw_thread *list[PW_SLOTS]; /* holds reader lock, as does `listed` */
    uint32_t listed;
    pthread_t helper;
    _Atomic bool running;
    _Atomic bool resting;          /* the helper waits for `rested` */
    _Atomic int64_t ended_rest_at;
    bool rest_unattributed; /* holds reader lock: threads that waited during the rest don't have that time yet */
    sem_t rested;
    pw_job naming_job; /* up to 3.2 only a thread of Ruby's may ask for names */
} reader;

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t
last_wall(const pw_thread *t)
{
    return atomic_load_explicit(&t->sample.last_wall, memory_order_relaxed);
}

static int64_t last_cpu(const pw_thread *t) { return atomic_load_explicit(&t->sample.last_cpu, memory_order_relaxed); }
/* The tick before the tick of a look at `wall`. */
static int64_t tick_before(int64_t wall) { return pw_last_tick(wall) - pw_current.interval_ns; }

/* Returns until when the wait that was seen is known to have lasted. holds reader lock */
static int64_t
unchanged_until(const pw_thread *t, uint32_t since, int64_t wall)
{
    int64_t until = t->seen.unchanged_until;
    /* the rest is for a thread that got the GVL once since then */
    if (!t->seen.in_sight || !pw_off_gvl(t->seen.state) || since < 1 || since > 2) return until;
    int64_t missed = sooner(pw_last_tick(t->own.resumed_at), tick_before(wall));
    return missed > later(until, last_wall(t)) ? missed : until;
}

/* Charges the last stack seen for the time that the stack is known to be unchanged. CPU time used after the wait is
 * not the wait's. CPU time used before the wait (cpu_due) is not the wait's, either. */
static void
settle(pw_thread *t, int64_t wall, int64_t cpu)
{
    uint32_t since = atomic_load(&t->own.changes) - t->seen.changes;
    int64_t before = last_wall(t), until = unchanged_until(t, since, wall), charged = last_cpu(t);
    t->seen.unchanged_until = 0;
    if (until <= before) return;
    if (pw_off_gvl(t->seen.state) && cpu > charged) {
        int64_t burnt = cpu - charged - t->sample.cpu_due;
        if (since) {
            int64_t from = t->own.resumed_at, to = t->own.suspended_at > from ? t->own.suspended_at : wall;
            burnt -= to - from;
        }
        if (burnt > until - before) burnt = until - before;
        if (burnt > 0) charged += burnt;
    }
    pw_charge_under(t, PW_REC_CHARGE, t->seen.state, until, charged, t->sample.label);
}

/* Charges the last code seen for missed ticks during which it ran on. If the thread released the GVL, the code ran
 * until then. If the thread did not release the GVL, it is unknown how long the code ran. Then half of the time is
 * charged to the code that ran before, the other half to the code that runs now. */
static void
settle_run(pw_thread *t, bool waits, uint32_t since, int64_t wall, int64_t cpu)
{
    int64_t before = last_wall(t), charged = last_cpu(t), burnt = cpu - charged, until;
    bool ran = t->seen.state == PW_RUNNING || (t->seen.state == PW_UNKNOWN && burnt * 10 >= (wall - before) * 9);
    if (!t->seen.in_sight || !ran || since != (waits ? 1 : 0) || burnt <= 0 || tick_before(wall) <= before) return;
    int64_t ran_until = waits ? t->own.suspended_at : wall;
    if (waits) until = sooner(pw_last_tick(ran_until), tick_before(wall));
    else until = before + (wall - before) / 2;
    if (until <= before) return;
    if (burnt > ran_until - before) burnt = ran_until - before;
    pw_charge_under(t, PW_REC_CHARGE, t->seen.state, until,
        charged + (int64_t)((double)burnt * (double)(until - before) / (double)(ran_until - before)), t->sample.label);
}

/* Nothing has changed since the last look, so the time of the stack is extended. */
static void
extend(pw_thread *t, uint8_t state, int64_t wall)
{
    if (t->seen.unchanged_until && t->seen.state != state) settle(t, wall, pw_thread_cpu_now(t));
    t->seen.state = state;
    t->seen.unchanged_until = wall;
    if (t->seen.unchanged) return;
    t->seen.unchanged = true;
    /* the drain recognises a wait by the row that follows (settle_cpu) */
    if (state == PW_UNKNOWN) settle(t, wall, t->seen.cpu);
}

static void
unlist(pw_thread *t)
{
    if (!t->seen.place) return;
    pw_thread *last = reader.list[--reader.listed];
    reader.list[t->seen.place - 1] = last;
    last->seen.place = t->seen.place;
    t->seen.place = 0;
}

/* Returns the reading of the CPU clock up to which this sample is charged (see pw_cpu_to_charge). */
static int64_t
to_charge(pw_thread *t, bool waits, int64_t cpu)
{
    int64_t charged = last_cpu(t);
    t->sample.cpu_due = 0;
    if (waits) {
        int64_t ran = t->own.suspended_at - last_wall(t), burnt = cpu - charged;
        if (ran > 0 && burnt > 0) t->sample.cpu_due = burnt < ran ? burnt : ran;
    }
    return cpu - t->sample.cpu_due > charged ? cpu - t->sample.cpu_due : charged;
}

/* True: the stack is unchanged, and stays unchanged until the thread notes a change. */
static bool
look(pw_thread *t)
{
    uint32_t changes = atomic_load_explicit(&t->own.changes, memory_order_acquire);
    uint8_t state = (uint8_t)atomic_load_explicit(&t->own.state, memory_order_relaxed);
    bool waits = pw_off_gvl(state), same = t->seen.in_sight && changes == t->seen.changes;
    int64_t wall = pw_now_ns();
    if (same && waits) {
        extend(t, state, wall);
        return true;
    }
    int64_t cpu = pw_thread_cpu_now(t);
    if (cpu < 0) return false; /* the native thread has ended; the thread ends itself */
    if (same && cpu == t->seen.cpu) {
        extend(t, state, wall);
        return false;
    }
    pw_count(PW_TICKS, 1);
    settle(t, wall, cpu);
    settle_run(t, waits, changes - t->seen.changes, wall, cpu);
    t->seen.in_sight = t->seen.unchanged = false;
    if (pw_capture_outside(t, state, wall, to_charge(t, waits, cpu))) {
        pw_count(PW_CAPTURES, 1);
        /* clock and changes were read before the stack, so a change since then shows at the next look */
        t->seen.in_sight = true;
        t->seen.changes = changes;
        t->seen.cpu = cpu;
        t->seen.state = state;
    }
    else if (state == PW_UNKNOWN && t->sample.empty >= pw_looks_at_nothing(t) && pw_thread_vanished(t)) unlist(t);
    return false;
}

/* True: all threads wait, and no stack was new. */
static bool
look_at_all(void)
{
    bool all_wait = true;
    for (uint32_t i = 0;; i++) {
        pw_reader_lock();
        bool more = i < reader.listed, rests = pw_gc_rests();
        if (more && rests) all_wait = look(reader.list[i]) && all_wait;
        pw_reader_unlock();
        if (!more) return all_wait;
        /* the time goes to the next rows; the collecting thread's time goes to the time that gc.c counts */
        if (!rests) {
            pw_count(PW_DEFERRED, 1);
            return false;
        }
    }
}

static void
call(int64_t now)
{
    if (!atomic_load(&reader.resting)) return;
    atomic_store(&reader.ended_rest_at, now); /* set before any thread can see that the rest is over */
    if (atomic_exchange(&reader.resting, false)) sem_post(&reader.rested);
}

/* Called by a thread that has changed what the helper looks at. A fence orders this call after that change. The
 * helper checks for changes once more after it has said that it rests. */
void
pw_reader_awake(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&reader.resting, memory_order_relaxed)) call(pw_now_ns());
}

static bool
any_moved(void)
{
    bool moved = false;
    pw_reader_lock();
    for (uint32_t i = 0; i < reader.listed && !moved; i++) {
        const pw_thread *t = reader.list[i];
        moved = !t->seen.in_sight || atomic_load(&t->own.changes) != t->seen.changes;
    }
    pw_reader_unlock();
    return moved;
}

/* Gives all threads that waited the time of a rest that is over. Called by the helper, or by a thread that ends
 * before the helper has got a core. holds reader lock */
static void
attribute_rest(void)
{
    if (!reader.rest_unattributed || atomic_load(&reader.resting)) return;
    reader.rest_unattributed = false;
    int64_t until = pw_last_tick(atomic_load(&reader.ended_rest_at));
    for (uint32_t i = 0; i < reader.listed; i++) {
        pw_thread *t = reader.list[i];
        if (t->seen.in_sight && until > later(t->seen.unchanged_until, last_wall(t))) t->seen.unchanged_until = until;
    }
}

/* Waits until a thread gets the GVL, a thread is added, or the recording ends. */
static void
rest(void)
{
    pw_reader_lock();
    reader.rest_unattributed = true;
    atomic_store(&reader.resting, true);
    pw_reader_unlock();
    /* the change came before its thread could see the rest */
    if (any_moved() || !atomic_load(&reader.running)) call(pw_now_ns());
    while (sem_wait(&reader.rested) != 0) continue; /* EINTR */
    pw_reader_lock();
    attribute_rest();
    pw_reader_unlock();
}

static void
sleep_until(int64_t at)
{
    enum { NAP = 20000000 }; /* short, because stop waits for the helper */
    for (int64_t now; (now = pw_now_ns()) < at && atomic_load_explicit(&reader.running, memory_order_relaxed);) {
        int64_t next = at - now > NAP ? now + NAP : at;
        struct timespec until = {next / 1000000000, next % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
}

static void *
read_stacks(void *unused)
{
    pw_reserve_heap();
#ifdef __linux__
    pthread_setname_np(pthread_self(), "pitwall reader");
    prctl(PR_SET_TIMERSLACK, 1L); /* the default slack is 50 us */
#endif
    pw_ask_for_short_slices();
    enum { IDLE = 50000000, IDLE_LOOKS = 4 };
    int64_t last = pw_last_tick(pw_now_ns()), idle_since = 0;
    for (uint32_t n = 0, idle = 0; atomic_load_explicit(&reader.running, memory_order_relaxed); n++) {
        sleep_until(pw_next_tick(pw_now_ns()));
        if (!atomic_load_explicit(&reader.running, memory_order_relaxed)) break;
        int64_t tick = pw_last_tick(pw_now_ns()), missed = (tick - last) / pw_current.interval_ns - 1;
        if (missed > 0) pw_count(PW_MISSED, missed);
        last = tick;
        if (!look_at_all()) idle = 0;
        else if (idle++ == 0) idle_since = tick;
        else if (idle > IDLE_LOOKS && tick - idle_since >= IDLE) {
            atomic_store(&pw_current.helper_cpu, pw_own_cpu_ns());
            rest();
            last = pw_last_tick(pw_now_ns());
            idle = 0;
        }
        if (n % 64 == 0) atomic_store(&pw_current.helper_cpu, pw_own_cpu_ns());
    }
    atomic_store(&pw_current.helper_cpu, pw_own_cpu_ns());
    return NULL;
}

static void run_naming_job(void *unused) { pw_naming_trigger_if_wanted(); }

static int
start(void)
{
    if (!pw_may_trigger_anywhere()) {
        if (!reader.naming_job.func && !pw_job_init(&reader.naming_job, run_naming_job)) return ENOMEM;
        pw_job_trigger(&reader.naming_job); /* triggered from here first, as in safepoint_ticker.c */
    }
    reader.listed = 0;
    reader.rest_unattributed = false;
    sem_init(&reader.rested, 0, 0);
    atomic_store(&reader.resting, false);
    atomic_store(&reader.running, true);
    int error = pw_start_quiet_thread(&reader.helper, read_stacks);
    if (error) atomic_store(&reader.running, false);
    return error;
}

static void
stop(void)
{
    if (!atomic_exchange(&reader.running, false)) return;
    pw_reader_awake();
    pthread_join(reader.helper, NULL);
    pw_reader_lock();
    while (reader.listed) {
        pw_thread *t = reader.list[--reader.listed];
        t->seen.place = 0;
        if (t != pw_self() && pw_gc_rests()) look(t); /* the last look may be long ago */
        if (t->seen.unchanged_until) settle(t, pw_now_ns(), pw_thread_cpu_now(t));
    }
    pw_reader_unlock();
}

static void
stop_in_child(void)
{
    atomic_store(&reader.running, false);
    reader.listed = 0; /* threads in the list are forgotten */
}

static void
thread_begin(pw_thread *t)
{
    if (pw_self() == t) pw_walk_find_root(&t->stack.walk);
    pw_reader_lock();
    if (!t->seen.place && reader.listed < PW_SLOTS && atomic_load(&reader.running)) {
        reader.list[reader.listed] = t;
        t->seen.place = ++reader.listed;
    }
    pw_reader_unlock();
    pw_reader_awake();
}

static void
thread_end(pw_thread *t)
{
    pw_reader_lock();
    if (t->seen.place) {
        attribute_rest();
        unlist(t);
        if (t->seen.unchanged_until) settle(t, pw_now_ns(), pw_thread_cpu_now(t));
    }
    pw_reader_unlock();
}

/* Called in the thread of a collection, when no look is under way and none can begin. */
static bool
overdue(pw_thread *t, int64_t wall)
{
    if (t->seen.unchanged_until) settle(t, wall, pw_thread_cpu_now(t));
    return pw_last_tick(wall) - pw_last_tick(atomic_load(&t->sample.last_wall)) >= pw_current.interval_ns;
}

static void
take(pw_thread *t, int64_t wall, int64_t cpu)
{
    if (pw_capture(t, 0, (uint8_t)atomic_load(&t->own.state), 1, wall, cpu)) pw_count(PW_CAPTURES, 1);
    t->seen.in_sight = false;
}

static void nothing(pw_thread *t) { (void)t; }

static void
check(void)
{
    if (pw_naming_wanted()) pw_job_trigger(&reader.naming_job);
}

const pw_ticker pw_outside_ticker = {
    .name = "outside", .start = start, .stop = stop, .stop_in_child = stop_in_child, .thread_begin = thread_begin,
            .thread_end = thread_end,
    .thread_resumed = nothing, .thread_left = nothing, .check = check, .overdue = overdue, .take = take,
                      .samples = true, .from_outside = true};
