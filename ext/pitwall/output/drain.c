#include "output/drain.h"
#include "native/symbols.h"
#include "native/unwind.h"
#include "output/chunks.h"
#include "output/naming.h"
#include "output/native_names.h"
#include "output/output.h"
#include "output/rows.h"
#include "output/thread_rows.h"
#include "session/modules.h"
#include "tools/quiet_thread.h"
#include "vm/known_frames.h"
#include "vm/reader_lock.h"
#include <errno.h>
#include <time.h>

enum { FIRST_FLUSH_NS = 50000000, HURRIED_NS = 20000000 };
#define FLUSH_BYTES (4u << 20) /* tables are written early when they grow this large */
#define ENDED_THREADS 256u     /* so many ended threads wake the drain, and make it flush */

static struct {
    pthread_t thread;
    pthread_cond_t wake;
    bool draining, stopping; /* holds session lock */
    int64_t pause_ns;        /* fixed pause, where a collector fills the ring fast; 0: the function pause_ns decides */
    int64_t last_flush, flush_after;
    int64_t cpu;             /* CPU ns of the drain's thread; 0 until it has ended */
    _Atomic uint32_t flushes_wanted, flushes_done;
    /* the reason why the process is about to end; the next flush writes it to TAIL; NULL: none */
    _Atomic(const char *) ends_by;
    _Atomic uint32_t ended;        /* number of ended threads */
    bool (*takers[PW_REC_KINDS])(const pw_record_header *record); /* see pw_drain_take */
} state;

/* At this bound the tables are emptied even if names are missing: otherwise the tables would double once more. */
#define MOST_NODES (2 * PW_MAX_NODES - PW_MAX_DEPTH)

static void flush_locked(const char *reason);
static void bound_memory(void);

/* Takes an END record. True: the rows are to be written now. */
static bool
take_end(pw_thread *t, const pw_sample *s)
{
    uint32_t node = pw_node_of(t);
    if (!t->sample.any) node = pw_intern_node(&pw_out.tables, 0, PW_FRAME_NOT_SAMPLED, 0, 0);
    bool full = pw_add_row(t, node, s->header.state, 0, s->wall,
                           s->cpu + (int64_t)t->drain.cpu_due_units * pw_current.unit_ns);
    pw_current.ticker->thread_end(t);
    return pw_thread_rows_end(t) >= ENDED_THREADS || full;
}

/* Takes at most MOST records. True: there may be more. The bound matters when the ring fills as fast as it is emptied:
 * the lock must become free for others, and the rows have to be written. */
static bool
consume(void)
{
    enum { MOST = 1 << 16 };
    pw_record_header *record;
    for (int taken = 0; (record = pw_ring_peek(&pw_out.ring)); taken++) {
        if (taken == MOST) return true;
        pw_sample *s = (pw_sample *)record;
        pw_thread *t = s->thread;
        bool full = false;
        if (record->kind <= PW_REC_END) t->drain.row_label = s->label; /* only records that become rows */
        switch (record->kind) {
          case PW_REC_SAMPLE:
            pw_take_stack(t, s);
            full = pw_add_row(t, pw_node_of(t), record->state, record->captures, s->wall, s->cpu);
            break;
          case PW_REC_STACK:
            pw_take_stack(t, s);
            break;
          case PW_REC_CHARGE:
            full = pw_add_row(t, pw_node_of(t), record->state, 0, s->wall, s->cpu);
            break;
          case PW_REC_END:
            full = take_end(t, s);
            break;
          default:
            full = state.takers[record->kind] && state.takers[record->kind](record);
        }
        if (full) flush_locked(NULL);
        pw_ring_consume(&pw_out.ring, record);
        if (pw_out.tables.node_count >= MOST_NODES) bound_memory();
    }
    return false;
}

static void
flush_locked(const char *reason)
{
    bool last = reason != NULL;
    pw_modules_write(last);
    pw_chunks_write_objects();
    pw_chunks_write_strings();
    pw_naming_write();
    pw_thread_rows_write(last);
    pw_chunks_write_nodes();
    pw_modules_write_rows(last);
    pw_rows_write();
    pw_rows_write_open();
    pw_modules_write_end(last);
    pw_chunks_write_stat(state.cpu + (state.draining ? pw_own_cpu_ns() : 0));
    const char *ends_by = atomic_exchange(&state.ends_by, NULL);
    if (!ends_by) ends_by = reason;
    if (ends_by) pw_chunks_write_tail(ends_by);
    state.last_flush = pw_now_ns();
}

/* Empties the tables when they are full and all frames have names. At MOST_NODES it doesn't wait for the names, except
 * while stopping: frames without a name move to the new tables. */
static void
bound_memory(void)
{
    pw_intern *t = &pw_out.tables;
    if (!pw_intern_full(t)) return;
    pw_intern_end_waiting(t);
    if (pw_current.native) pw_name_native_frames();
    if (t->unresolved_from < t->frame_count && (t->node_count < MOST_NODES || state.stopping)) return;
    flush_locked(NULL);
    pw_intern before;
    pw_reader_lock();
    pw_known_clear(); /* before the reset: objects that leave the tables are no longer kept alive */
    pw_reader_unlock();
    if (!pw_intern_reset(t, &before)) return;
    pw_intern_carry_nameless(t, &before);
    for (pw_thread *thread = pw_current.threads; thread; thread = thread->next) pw_rows_reintern(thread, &before);
    pw_intern_forget(&before);
    pw_count(PW_RESETS, 1);
}

/* The pause between two visits of the ring. A wake-up costs as much as a tick, so about 200 ticks share one wake-up.
 * The pause is shorter in the first 0.2 s, and while names are missing, because a job gives only a few names. */
static int64_t
pause_ns(int64_t now, bool nameless)
{
    enum { LEAST = 50000000, MOST = 200000000 };
    if (state.pause_ns) return state.pause_ns;
    int64_t ns = pw_current.interval_ns * 200;
    if (ns > MOST) ns = MOST;
    return ns < LEAST || nameless || now - pw_current.origin < MOST ? LEAST : ns;
}

static void *
drain(void *unused)
{
    pw_session *s = &pw_current;
    pw_reserve_heap();
#ifdef __linux__
    pthread_setname_np(pthread_self(), "pitwall drain");
#endif
    pthread_mutex_lock(&s->lock);
    for (bool more = false, nameless = false; !state.stopping;) {
        int64_t at = pw_now_ns();
        at += pause_ns(at, nameless);
        struct timespec until = {at / 1000000000, at % 1000000000};
        if (!more) pthread_cond_timedwait(&state.wake, &s->lock, &until);
        more = consume();
        if (s->native) pw_name_native_frames();
        s->ticker->check();
        pw_modules_check();
        /* The first flush comes early, and the time between flushes doubles up to the setting. So a process that soon
         * calls exec or is killed still leaves a recording. */
        bool due = pw_now_ns() - state.last_flush >= state.flush_after;
        if (due) state.flush_after = state.flush_after * 2 < s->flush_ns ? state.flush_after * 2 : s->flush_ns;
        size_t tables = pw_out.tables.new_string_bytes.size + pw_out.tables.new_parents.size +
                        pw_out.tables.new_frames.size;
        uint32_t wanted = atomic_load(&state.flushes_wanted);
        if (due || tables > FLUSH_BYTES || (!more && wanted != atomic_load(&state.flushes_done))) flush_locked(NULL);
        bound_memory();
        nameless = pw_out.tables.unresolved_from < pw_out.tables.frame_count;
        bool names_missing = nameless;
        for (pw_thread *t = s->threads; t && !names_missing; t = t->next) names_missing = !t->drain.named;
        if (names_missing && !state.stopping) pw_naming_trigger();
        /* Writing may wait for the disk, so the lock is released: garbage collection needs the lock. */
        pthread_mutex_unlock(&s->lock);
        pw_writer_flush(&pw_out.writer);
        if (s->native) pw_unwind_refresh(); /* objects may have been loaded */
        pthread_mutex_lock(&s->lock);
        if (!more) atomic_store(&state.flushes_done, wanted);
    }
    state.cpu = pw_own_cpu_ns();
    state.draining = false;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void
pw_drain_init(bool hurried)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&state.wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    state.pause_ns = hurried ? HURRIED_NS : 0;
    state.last_flush = pw_now_ns();
    state.flush_after = FIRST_FLUSH_NS;
    state.cpu = 0;
    atomic_store(&state.flushes_wanted, 0);
    atomic_store(&state.flushes_done, 0);
    atomic_store(&state.ends_by, NULL);
    atomic_store(&state.ended, 0);
}

void
pw_drain_free(bool frees)
{
    if (frees) {
        pthread_cond_destroy(&state.wake);
        pw_symbols_release();
    }
    else pw_symbols_child();
    state.draining = state.stopping = false;
    state.cpu = 0;
}

int64_t pw_drain_cpu(void) { return state.cpu; }

void
pw_drain_take(uint8_t kind, bool (*take)(const pw_record_header *record))
{
    state.takers[kind] = take;
}

void
pw_drain_thread_ended(void)
{
    if ((atomic_fetch_add(&state.ended, 1) + 1) % ENDED_THREADS == 0) pthread_cond_signal(&state.wake);
}

void pw_drain_keep_tables(void) { state.stopping = true; }

int
pw_start_drain(void)
{
    state.stopping = false;
    state.draining = true;
    int error = pw_start_quiet_thread(&state.thread, drain);
    if (error) state.draining = false;
    return error;
}

void
pw_stop_drain(void)
{
    pthread_mutex_lock(&pw_current.lock);
    state.stopping = true;
    pthread_cond_signal(&state.wake);
    pthread_mutex_unlock(&pw_current.lock);
    pthread_join(state.thread, NULL);
    pthread_mutex_lock(&pw_current.lock);
    while (consume()) {}
    if (pw_current.native) pw_name_native_frames();
    pthread_mutex_unlock(&pw_current.lock);
}

void
pw_final_flush(const char *reason)
{
    pthread_mutex_lock(&pw_current.lock);
    flush_locked(reason);
    pthread_mutex_unlock(&pw_current.lock);
    pw_writer_flush(&pw_out.writer);
    pw_writer_ended(&pw_out.writer, (uint64_t)(pw_now_ns() - pw_current.origin));
}

/* The wait is bounded: the thread that has the lock may itself wait for the calling thread. */
void
pw_flush_before_end(void)
{
    enum { TRIES = 2000 };
    static const struct timespec pause = {0, 1000000};
    pw_session *s = &pw_current;
    int tries = 0;
    if (!pw_session_generation() || !state.draining) return;
    while (pthread_mutex_trylock(&s->lock) != 0) {
        if (++tries > TRIES) return;
        nanosleep(&pause, NULL);
    }
    uint32_t wanted = atomic_fetch_add(&state.flushes_wanted, 1) + 1;
    pthread_cond_signal(&state.wake);
    pthread_mutex_unlock(&s->lock);
    while ((int32_t)(atomic_load(&state.flushes_done) - wanted) < 0 && state.draining && ++tries <= TRIES) {
        nanosleep(&pause, NULL);
    }
}

void
pw_flush_as_end(const char *reason)
{
    atomic_store(&state.ends_by, reason);
    pw_flush_before_end();
}
