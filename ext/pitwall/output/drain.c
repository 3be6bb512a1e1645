/* The drain: takes records from the ring, turns stacks into nodes, collects rows and writes them. Never calls into Ruby. */
#include "sampling/capture.h"
#include "sampling/gc_log.h"
#include "vm/known_frames.h"
#include "sampling/labels.h"
#include "sampling/queries.h"
#include "sampler.h"
#include "collectors/syscalls/syscalls.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 16384, FIRST_FLUSH_NS = 50000000 };
#define FLUSH_BYTES (4u << 20) /* tables are written early when they grow this large */

static struct row { uint64_t wall, cpu; uint32_t thread, node, captures, label; uint8_t state; } *rows;
static uint32_t row_count;
static int64_t last_flush, flush_after;

/* Ended threads wait here until their THRD row is written. */
static pw_thread *gone;
static uint32_t ended; /* threads, since the last flush */

bool
pw_rows_init(void)
{
    rows = malloc(ROWS * sizeof(*rows));
    row_count = 0;
    gone = NULL;
    ended = 0;
    last_flush = pw_now_ns();
    flush_after = FIRST_FLUSH_NS;
    return rows != NULL;
}

void
pw_rows_free(void)
{
    free(rows);
    rows = NULL;
}

/* Re-enters a thread's whole path into emptied tables. */
static void
reintern(pw_thread *t, const pw_intern *before)
{
    uint32_t parent = 0;
    for (uint32_t i = 0; i < t->depth; i++) {
        pw_path_entry *e = &t->path[i];
        parent = e->node = pw_intern_node(&pw_current.tables, parent, e->frame, pw_intern_owner(before, e->frame), e->line);
    }
}

static void
take_stack(pw_thread *t, const pw_sample *s)
{
    const VALUE *owners = s->frames + s->fresh;
    const int *lines = (const int *)(owners + s->owned);
    uint32_t depth = s->common < t->depth ? s->common : t->depth;
    uint32_t parent = depth ? t->path[depth - 1].node : 0;
    for (uint32_t i = s->fresh; i-- > 0;) {
        pw_path_entry *e = &t->path[depth++];
        e->frame = s->frames[i];
        e->line = lines[i] > 0 ? (uint32_t)lines[i] : 0;
        VALUE owner = s->owned ? owners[i] : 0;
        parent = e->node = pw_intern_node(&pw_current.tables, parent, e->frame, owner, e->line);
        if (owner) pw_intern_tell_owner(&pw_current.tables, e->frame, owner); /* the node may be an old one */
    }
    t->depth = depth;
    t->told_nodes[++t->told_serial % PW_TOLD] = depth ? t->path[depth - 1].node : 0;
}

static uint32_t
node_of(const pw_thread *t)
{
    return t->depth ? t->path[t->depth - 1].node : 0;
}

static void flush_locked(const char *reason);

/* Without thread events nobody says that a stack waits; the next row does: the same stack again with hardly any CPU.
 * What the first was charged is then due to the next row at another stack (see pw_cpu_to_charge). From outside a stack that
 * stands gives no row until it is over: `stand` in outside_ticker.c charges it once at once, for this to see. */
static uint64_t
settle_cpu(pw_thread *t, struct row *before, uint32_t node, uint64_t wall, uint64_t cpu)
{
    bool same = before && before->node == node;
    if (same && before->captures == 1 && cpu * 5 < wall && before->cpu * 20 < before->wall * 19) {
        t->cpu_due_units += before->cpu;
        before->cpu = 0;
    }
    if (same) return cpu;
    cpu += t->cpu_due_units;
    t->cpu_due_units = 0;
    return cpu;
}

static void
add_row(pw_thread *t, uint32_t node, uint8_t state, uint32_t captures, int64_t wall, int64_t cpu)
{
    /* Clocks are rounded, not their differences, so that nothing drifts. */
    if (!pw_samples()) return;
    int64_t wall_units = wall / pw_current.unit_ns, cpu_units = cpu / pw_current.unit_ns;
    uint64_t dw = wall_units > t->row_wall ? (uint64_t)(wall_units - t->row_wall) : 0;
    uint64_t dc = cpu_units > t->row_cpu ? (uint64_t)(cpu_units - t->row_cpu) : 0;
    if (!dw && !dc && !captures) return; /* a stack taken in advance */
    if (wall_units > t->row_wall) t->row_wall = wall_units;
    if (cpu_units > t->row_cpu) t->row_cpu = cpu_units;
    struct row *before = t->last_row ? &rows[t->last_row - 1] : NULL;
    if (state == PW_UNKNOWN) dc = settle_cpu(t, before, node, dw, dc);
    if (before && state != PW_RUNNING && before->node == node && before->state == state && before->label == t->row_label && dc * 4 < dw) {
        before->wall += dw, before->cpu += dc, before->captures += captures; /* the same wait again: one row */
        return;
    }
    rows[row_count] = (struct row){dw, dc, t->id, node, captures, t->row_label, state};
    t->last_row = ++row_count;
    if (row_count == ROWS) flush_locked(NULL);
}

static void
forget_thread(pw_thread *t)
{
    for (pw_thread **at = &pw_current.threads; *at; at = &(*at)->next) {
        if (*at != t) continue;
        *at = t->next;
        t->next = gone;
        gone = t;
        ended++;
        return;
    }
}

/* Beyond this the tables are emptied though not all in them has a name: they would double once more. */
#define MOST_NODES (2 * PW_MAX_NODES - PW_MAX_DEPTH)

static void bound_memory(void);

/* Whether there may be more: who fills the ring as fast as it is emptied must not keep the lock from others, and what was taken has to be
 * written. */
static bool
consume(void)
{
    enum { MOST = 1 << 16 };
    pw_record_header *record;
    for (int taken = 0; (record = pw_ring_peek(&pw_current.ring)); taken++) {
        if (taken == MOST) return true;
        pw_sample *s = (pw_sample *)record;
        pw_thread *t = s->thread;
        if (record->kind <= PW_REC_END) t->row_label = s->label; /* those that become rows */
        switch (record->kind) {
          case PW_REC_SAMPLE:
            take_stack(t, s);
            add_row(t, node_of(t), record->state, record->captures, s->wall, s->cpu);
            break;
          case PW_REC_STACK:
            take_stack(t, s);
            break;
          case PW_REC_SYSCALL:
            pw_syscalls_take((const pw_syscall_row *)record);
            if (pw_syscalls_full()) flush_locked(NULL);
            break;
          case PW_REC_CHARGE:
            add_row(t, node_of(t), record->state, 0, s->wall, s->cpu);
            break;
          case PW_REC_END: {
            uint32_t node = node_of(t);
            if (!t->sampled) {
                node = pw_intern_node(&pw_current.tables, 0, PW_FRAME_NOT_SAMPLED, 0, 0);
            }
            add_row(t, node, record->state, 0, s->wall, s->cpu + (int64_t)t->cpu_due_units * pw_current.unit_ns);
            pw_current.ticker->thread_end(t);
            forget_thread(t);
            if (ended >= PW_ENDED) flush_locked(NULL);
            break;
          }
          case PW_REC_MARK:
            pw_labels_mark(t->id, s->label, s->wall - pw_current.origin, s->wall - s->cpu, (const pw_query_part *)s->frames, record->captures);
            break;
          case PW_REC_QUERY:
            pw_queries_take(s->label, (const pw_query_part *)s->frames, record->captures, false);
            break;
        }
        pw_ring_consume(&pw_current.ring, record);
        if (pw_current.tables.node_count >= MOST_NODES) bound_memory();
    }
    return false;
}

/* ---- chunks ---- */

typedef struct { pw_buffer payload, columns[4]; } chunk;

static void
chunk_free(chunk *c)
{
    pw_buffer_free(&c->payload);
    for (int i = 0; i < 4; i++) pw_buffer_free(&c->columns[i]);
}

static void
write_and_free(chunk *c, const char *type)
{
    pw_writer_chunk(&pw_current.writer, type, c->payload.data, c->payload.size);
    chunk_free(c);
}

static void
write_strings(void)
{
    pw_intern *t = &pw_current.tables;
    if (!t->new_strings) return;
    chunk c = {0};
    pw_buffer_int(&c.payload, t->first_new_string);
    pw_buffer_int(&c.payload, t->new_strings);
    pw_buffer_column(&c.payload, &t->new_string_lengths);
    pw_buffer_put(&c.payload, t->new_string_bytes.data, t->new_string_bytes.size);
    write_and_free(&c, "STRS");
    pw_buffer_clear(&t->new_string_lengths);
    pw_buffer_clear(&t->new_string_bytes);
    t->new_strings = 0;
}

static void
write_frames(void)
{
    pw_session *s = &pw_current;
    if (!s->named_frames) return;
    chunk c = {0};
    pw_buffer *columns[] = {&s->frame_ids, &s->frame_kinds, &s->frame_names, &s->frame_paths, &s->frame_lines};
    pw_buffer_int(&c.payload, s->named_frames);
    for (int i = 0; i < 5; i++) {
        pw_buffer_column(&c.payload, columns[i]);
        pw_buffer_clear(columns[i]);
    }
    s->named_frames = 0;
    write_and_free(&c, "FRAM");
}

static void
write_nodes(void)
{
    pw_intern *t = &pw_current.tables;
    if (!t->new_nodes) return;
    chunk c = {0};
    pw_buffer_int(&c.payload, t->first_new_node);
    pw_buffer_int(&c.payload, t->new_nodes);
    pw_buffer_column(&c.payload, &t->new_parents);
    pw_buffer_column(&c.payload, &t->new_frames);
    pw_buffer_column(&c.payload, &t->new_lines);
    pw_buffer_clear(&t->new_parents);
    pw_buffer_clear(&t->new_frames);
    pw_buffer_clear(&t->new_lines);
    t->new_nodes = 0;
    write_and_free(&c, "NODE");
}

static uint32_t
announce(chunk *c, pw_thread *list)
{
    uint32_t n = 0;
    for (pw_thread *t = list; t; t = t->next) {
        pid_t native = atomic_load(&t->native);
        if (t->announced && (t->announced_native || !native)) continue;
        int64_t start = t->started - pw_current.origin;
        pw_buffer_int(&c->columns[0], t->id);
        pw_buffer_int(&c->columns[1], (uint64_t)native);
        pw_buffer_int(&c->columns[2], start > 0 ? (uint64_t)start : 0);
        pw_buffer_int(&c->columns[3], t->name_id);
        t->announced = true;
        t->announced_native = native;
        n++;
    }
    return n;
}

/* Ended threads to which native threads still lead stay until these have left them, or to the end. */
static void
free_gone(bool all)
{
    for (pw_thread **at = &gone; *at;) {
        pw_thread *t = *at;
        if (!all && atomic_load(&t->entered)) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        pw_thread_free(t);
    }
}

static void
write_threads(bool last)
{
    chunk c = {0};
    uint32_t n = announce(&c, pw_current.threads) + announce(&c, gone);
    if (n) pw_writer_table(&pw_current.writer, "THRD", 1, (uint64_t[]){n}, 4, c.columns);
    chunk_free(&c);
    free_gone(last);
    ended = 0;
}

/* A run column: (value, how many rows) pairs. */
static void
run_column(pw_buffer *payload, uint32_t (*value)(const struct row *))
{
    pw_buffer runs = {0};
    for (uint32_t i = 0; i < row_count;) {
        uint32_t from = i, v = value(&rows[i]);
        while (i < row_count && value(&rows[i]) == v) i++;
        pw_buffer_int(&runs, v);
        pw_buffer_int(&runs, i - from);
    }
    pw_buffer_column(payload, &runs);
    pw_buffer_free(&runs);
}

static void
column(pw_buffer *payload, uint64_t (*value)(const struct row *))
{
    pw_buffer ints = {0};
    for (uint32_t i = 0; i < row_count; i++) pw_buffer_int(&ints, value(&rows[i]));
    pw_buffer_column(payload, &ints);
    pw_buffer_free(&ints);
}

static uint32_t row_thread(const struct row *r) { return r->thread; }
static uint32_t row_state(const struct row *r) { return r->state; }
static uint32_t row_captures(const struct row *r) { return r->captures; }
static uint32_t row_label(const struct row *r) { return r->label; }
static uint64_t row_node(const struct row *r) { return r->node; }
static uint64_t row_wall(const struct row *r) { return r->wall; }
static uint64_t row_cpu(const struct row *r) { return r->cpu; }

static void
write_rows(void)
{
    if (!row_count) return;
    chunk c = {0};
    pw_buffer_int(&c.payload, row_count);
    run_column(&c.payload, row_thread);
    run_column(&c.payload, row_state);
    column(&c.payload, row_node);
    column(&c.payload, row_wall);
    column(&c.payload, row_cpu);
    run_column(&c.payload, row_captures);
    if (pw_labels_used()) run_column(&c.payload, row_label);
    row_count = 0;
    for (pw_thread *t = pw_current.threads; t; t = t->next) t->last_row = 0;
    write_and_free(&c, "SAMP");
}

/* What threads have spent since their last row: superseded by the next flush. */
static void
write_open(void)
{
    if (!pw_samples()) return;
    enum { COLUMNS = 6 };
    pw_buffer columns[COLUMNS] = {{0}};
    int64_t now = pw_now_ns();
    uint32_t n = 0;
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (t->finished) continue;
        int64_t wall = now / pw_current.unit_ns - t->row_wall;
        pw_reader_lock();
        int64_t cpu_now = pw_thread_cpu_now(t);
        pw_reader_unlock();
        int64_t cpu = cpu_now < 0 ? 0 : cpu_now / pw_current.unit_ns - t->row_cpu;
        if (wall <= 0) continue;
        if (cpu < 0) cpu = 0;
        cpu += (int64_t)t->cpu_due_units;
        uint32_t node = node_of(t);
        if (!t->sampled) {
            node = pw_intern_node(&pw_current.tables, 0, PW_FRAME_NOT_SAMPLED, 0, 0);
        }
        uint64_t values[COLUMNS] = {t->id, (uint64_t)atomic_load(&t->state), node, (uint64_t)wall, (uint64_t)cpu, t->row_label};
        pw_buffer_row(columns, values, COLUMNS);
        n++;
    }
    write_nodes(); /* "(not sampled)" may be new */
    pw_writer_table(&pw_current.writer, "OPEN", 1, (uint64_t[]){n}, pw_labels_used() ? COLUMNS : COLUMNS - 1, columns);
    pw_buffers_free(columns, COLUMNS);
}

static void
write_stat(void)
{
    char json[1280];
    pw_session *s = &pw_current;
    int64_t own = s->drain_cpu + (s->draining ? pw_own_cpu_ns() : 0) + atomic_load(&s->helper_cpu);
    int n = snprintf(json, sizeof json,
        "{\"elapsed_ns\":%lld,\"ticks\":%lld,\"captures\":%lld,\"missed_ticks\":%lld,\"deferred_ticks\":%lld,\"dropped\":%lld,"
        "\"torn_reads\":%lld,\"refused_frames\":%lld,\"truncated\":%lld,\"handler_ns\":%lld,\"naming_ns\":%lld,\"own_cpu_ns\":%lld,\"process_cpu_ns\":%lld,"
        "\"resets\":%lld,\"threads\":%u,\"timers_refused\":%lld,\"signal_lost\":%lld,\"write_error\":%d,\"labels_left_out\":%lld,\"queries_left_out\":%lld,\"queries_failed\":%lld,"
        "\"bursts\":%lld,\"gc_count\":%lld,\"gc_untold\":%lld,\"gc_ns\":{\"marking\":%lld,\"sweeping\":%lld}}",
        (long long)(pw_now_ns() - s->origin), (long long)pw_counter(PW_TICKS), (long long)pw_counter(PW_CAPTURES),
        (long long)pw_counter(PW_MISSED), (long long)pw_counter(PW_DEFERRED), (long long)pw_counter(PW_DROPPED),
        (long long)pw_counter(PW_TORN_READS), (long long)pw_counter(PW_REFUSED), (long long)pw_counter(PW_TRUNCATED), (long long)pw_counter(PW_HANDLER_NS),
        (long long)pw_counter(PW_NAMING_NS), (long long)own, (long long)(pw_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - s->started_process_cpu),
        (long long)pw_counter(PW_RESETS), s->next_thread_id - 1, (long long)pw_counter(PW_TIMERS_REFUSED),
        (long long)pw_counter(PW_SIGNAL_LOST), s->writer.error, (long long)pw_counter(PW_LABELS_LEFT_OUT),
        (long long)pw_counter(PW_QUERIES_LEFT_OUT), (long long)pw_counter(PW_QUERIES_FAILED), (long long)pw_counter(PW_BURSTS),
        (long long)pw_counter(PW_GC_COUNT), (long long)pw_counter(PW_GC_UNTOLD),
        (long long)pw_counter(PW_GC_MARKING_NS), (long long)pw_counter(PW_GC_SWEEPING_NS));
    if (n > 0 && (size_t)n < sizeof json) pw_writer_chunk(&s->writer, "STAT", json, (size_t)n);
}

static void
flush_locked(const char *reason)
{
    pw_collectors_write(reason != NULL);
    write_strings();
    write_frames();
    write_threads(reason != NULL);
    write_nodes();
    pw_labels_write();
    pw_collectors_write_rows();
    write_rows();
    write_open();
    pw_gc_log_write(reason != NULL);
    write_stat();
    const char *ends_by = atomic_exchange(&pw_current.ends_by, NULL);
    if (!ends_by) ends_by = reason;
    if (ends_by) {
        char json[64];
        int n = snprintf(json, sizeof json, "{\"reason\":\"%s\"}", ends_by);
        pw_writer_chunk(&pw_current.writer, "TAIL", json, (size_t)n);
    }
    last_flush = pw_now_ns();
}

/* Empties the tables when they have reached their bounds and everything in them is named (or can't be for long). */
static void
bound_memory(void)
{
    pw_intern *t = &pw_current.tables;
    if (!pw_intern_full(t)) return;
    pw_intern_end_waiting(t);
    if (t->unresolved_from < t->frame_count && (t->node_count < MOST_NODES || pw_current.stopping)) return;
    flush_locked(NULL);
    pw_intern before;
    pw_reader_lock();
    pw_known_clear(); /* first: what leaves the tables is no longer kept alive */
    pw_reader_unlock();
    if (!pw_intern_reset(t, &before)) return;
    for (pw_thread *thread = pw_current.threads; thread; thread = thread->next) reintern(thread, &before);
    pw_intern_forget(&before);
    pw_count(PW_RESETS, 1);
}

/* A wake-up costs as much as a tick: some 200 ticks share one; the first tenths of a second have more, and while names are missing, which
 * come a few at a time. */
static int64_t
pause_ns(int64_t now, bool nameless)
{
    enum { LEAST = 50000000, MOST = 200000000 };
    if (pw_current.pause_ns) return pw_current.pause_ns;
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
    for (bool more = false, nameless = false; !s->stopping;) {
        int64_t at = pw_now_ns();
        at += pause_ns(at, nameless);
        struct timespec until = {at / 1000000000, at % 1000000000};
        if (!more) pthread_cond_timedwait(&s->wake, &s->lock, &until);
        more = consume();
        s->ticker->check();
        pw_gc_check();
        /* Soon at first, then ever later up to the setting: a process that soon execs or is killed leaves something too. */
        bool due = pw_now_ns() - last_flush >= flush_after;
        if (due) flush_after = flush_after * 2 < s->flush_ns ? flush_after * 2 : s->flush_ns;
        size_t tables = s->tables.new_string_bytes.size + s->tables.new_parents.size + s->tables.new_frames.size;
        uint32_t wanted = atomic_load(&s->flushes_wanted);
        if (due || tables > FLUSH_BYTES || (!more && wanted != atomic_load(&s->flushes_done))) flush_locked(NULL);
        bound_memory();
        bool names = nameless = s->tables.unresolved_from < s->tables.frame_count;
        for (pw_thread *t = s->threads; t && !names; t = t->next) names = !t->named;
        if (names && !s->stopping) pw_resolve_trigger();
        /* Writing waits for the disk: not under the lock that garbage collection needs. */
        pthread_mutex_unlock(&s->lock);
        pw_writer_flush(&s->writer);
        pthread_mutex_lock(&s->lock);
        if (!more) atomic_store(&s->flushes_done, wanted);
    }
    s->drain_cpu = pw_own_cpu_ns();
    s->draining = false;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int
pw_start_drain(void)
{
    pw_current.stopping = false;
    pw_current.draining = true;
    int error = pw_start_quiet_thread(&pw_current.drain_thread, drain);
    if (error) pw_current.draining = false;
    return error;
}

void
pw_stop_drain(void)
{
    pthread_mutex_lock(&pw_current.lock);
    pw_current.stopping = true;
    pthread_cond_signal(&pw_current.wake);
    pthread_mutex_unlock(&pw_current.lock);
    pthread_join(pw_current.drain_thread, NULL);
    pthread_mutex_lock(&pw_current.lock);
    while (consume()) {}
    pthread_mutex_unlock(&pw_current.lock);
}

void
pw_final_flush(const char *reason)
{
    pthread_mutex_lock(&pw_current.lock);
    flush_locked(reason);
    pthread_mutex_unlock(&pw_current.lock);
    pw_writer_flush(&pw_current.writer);
    pw_writer_ended(&pw_current.writer, (uint64_t)(pw_now_ns() - pw_current.origin));
}
