/* One row per collection run. Rows are in blocks that never move, and are published when complete. So the drain can
 * read rows while the program collects. When the table is full, each two neighbouring rows are merged.
 * Merging takes the lock, because it changes published rows. */
#include "sampling/gc_log.h"
#include "output/output.h"
#include "session/session.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, MOST = 100 * BLOCK }; /* 9 MB at most */

/* As in doc/record-format.md; the names are Ruby's. */
static const char *const causes[] = {"", "newobj", "malloc", "method", "capi", "stress"};
static const char *const major_causes[] = {"", "nofree", "oldgen", "shady", "force", "oldmalloc"};
enum { CAUSES = 6, MAJOR_CAUSES = 6, MIXED = 15 };
_Static_assert(sizeof causes / sizeof *causes == CAUSES && CAUSES <= MIXED, "each cause has its number");
_Static_assert(sizeof major_causes / sizeof *major_causes == MAJOR_CAUSES && MAJOR_CAUSES <= MIXED,
               "each cause of a major one as well");

typedef struct {
    int64_t start, end, marking, sweeping, longest, longest_at;
    uint64_t allocated, living;
    uint32_t runs, majors, immediate, pauses, thread;
    uint8_t cause, major_cause;
} row;

static struct {
    row *blocks[MOST / BLOCK];
    _Atomic uint32_t count; /* rows published */
    uint32_t written;
    uint32_t level;         /* a row holds 2**level runs */
    row pending;            /* fewer runs than a row holds */
    row run;                /* the current run */
    uint64_t allocated;     /* objects ever allocated, when the run began */
} table;

static struct {
    VALUE cause_symbols[CAUSES], major_symbols[MAJOR_CAUSES];
    VALUE gc_by, major_by, immediate_sweep, total_allocated, total_freed;
} symbols;

static row *at(uint32_t i) { return &table.blocks[i / BLOCK][i % BLOCK]; }

static VALUE symbol(const char *name) { return ID2SYM(rb_intern(name)); }

void
pw_gc_log_init(void)
{
    for (int i = 1; i < CAUSES; i++) symbols.cause_symbols[i] = symbol(causes[i]);
    for (int i = 1; i < MAJOR_CAUSES; i++) symbols.major_symbols[i] = symbol(major_causes[i]);
    symbols.gc_by = symbol("gc_by");
    symbols.major_by = symbol("major_by");
    symbols.immediate_sweep = symbol("immediate_sweep");
    symbols.total_allocated = symbol("total_allocated_objects");
    symbols.total_freed = symbol("total_freed_objects");
    /* Ruby creates its symbols at the first call, which must not happen during a collection. */
    rb_gc_latest_gc_info(symbols.gc_by);
    rb_gc_stat(symbols.total_allocated);
}

void
pw_gc_log_start(void)
{
    table.allocated = rb_gc_stat(symbols.total_allocated);
    table.run = table.pending = (row){0};
}

static void
forget(bool frees)
{
    for (int i = 0; i < MOST / BLOCK; i++) {
        if (frees) free(table.blocks[i]);
        table.blocks[i] = NULL;
    }
    atomic_store(&table.count, 0);
    table.written = table.level = 0;
}

static void
add(row *sum, const row *r)
{
    if (!sum->pauses) {
        *sum = *r;
        return;
    }
    bool causes_differ = sum->runs && sum->cause != r->cause, majors_differ = sum->majors && r->majors &&
                         sum->major_cause != r->major_cause;
    sum->cause = causes_differ ? MIXED : r->cause;
    if (r->majors) sum->major_cause = majors_differ ? MIXED : r->major_cause;
    if (r->longest > sum->longest) {
        sum->longest = r->longest;
        sum->longest_at = r->longest_at;
        sum->thread = r->thread;
    }
    sum->end = r->end;
    sum->marking += r->marking;
    sum->sweeping += r->sweeping;
    sum->allocated += r->allocated;
    sum->living = r->living;
    sum->runs += r->runs;
    sum->majors += r->majors;
    sum->immediate += r->immediate;
    sum->pauses += r->pauses;
}

static void
halve(void)
{
    pthread_mutex_lock(&pw_current.lock);
    uint32_t count = atomic_load(&table.count) / 2;
    for (uint32_t i = 0; i < count; i++) {
        row sum = *at(2 * i);
        add(&sum, at(2 * i + 1));
        *at(i) = sum;
    }
    atomic_store(&table.count, count);
    table.level++;
    table.written = 0;
    pthread_mutex_unlock(&pw_current.lock);
}

static void
publish(const row *r)
{
    uint32_t n = atomic_load_explicit(&table.count, memory_order_relaxed);
    if (!table.blocks[n / BLOCK]) table.blocks[n / BLOCK] = pw_noted(malloc(BLOCK * sizeof(row)));
    if (!table.blocks[n / BLOCK]) return;
    *at(n) = *r;
    atomic_store_explicit(&table.count, n + 1, memory_order_release);
}

static void
finish_run(void)
{
    if (!table.run.pauses) return;
    add(&table.pending, &table.run);
    table.run = (row){0};
    if (table.pending.runs >> table.level == 0 && table.pending.runs) return;
    publish(&table.pending);
    table.pending = (row){0};
    if (atomic_load_explicit(&table.count, memory_order_relaxed) == MOST) halve();
}

static uint8_t
number_of(VALUE name, const VALUE *list, uint8_t count)
{
    for (uint8_t i = 1; i < count; i++) {
        if (list[i] == name) return i;
    }
    return 0;
}

void
pw_gc_log_begin(int64_t began, uint32_t thread_id)
{
    finish_run();
    uint64_t allocated = rb_gc_stat(symbols.total_allocated);
    VALUE major = rb_gc_latest_gc_info(symbols.major_by);
    table.run = (row){
        .start = began, .runs = 1, .thread = thread_id,
        .majors = RTEST(major), .major_cause = number_of(major, symbols.major_symbols, MAJOR_CAUSES),
        .cause = number_of(rb_gc_latest_gc_info(symbols.gc_by), symbols.cause_symbols, CAUSES),
        .immediate = RTEST(rb_gc_latest_gc_info(symbols.immediate_sweep)),
        .allocated = allocated > table.allocated ? allocated - table.allocated : 0,
    };
    if (allocated > table.allocated) table.allocated = allocated;
}

void
pw_gc_log_time(bool sweeping, int64_t ns)
{
    *(sweeping ? &table.run.sweeping : &table.run.marking) += ns;
}

/* Living objects: allocated when the run began, minus freed. A run cannot free objects allocated after its begin.
 * (Ractors report allocations late. Then more objects may seem freed than allocated, and the result is 0: unknown.) */
void
pw_gc_log_swept(void)
{
    uint64_t freed = rb_gc_stat(symbols.total_freed);
    if (table.run.runs) table.run.living = table.allocated > freed ? table.allocated - freed : 0;
}

void
pw_gc_log_pause(int64_t from, int64_t to, uint32_t thread_id)
{
    row *r = &table.run;
    if (!r->pauses++ && !r->runs) r->start = from; /* began before the recording */
    r->end = to;
    if (to - from < r->longest) return;
    r->longest = to - from;
    r->longest_at = from;
    r->thread = thread_id;
}

static uint64_t
value(const row *r, int column)
{
    switch (column) {
      case 0: return (uint64_t)(r->start - pw_current.origin);
      case 1: return (uint64_t)(r->end - r->start);
      case 2: return (uint64_t)r->marking;
      case 3: return (uint64_t)r->sweeping;
      case 4: return r->pauses;
      case 5: return (uint64_t)r->longest;
      case 6: return (uint64_t)(r->longest_at - r->start);
      case 7: return r->thread;
      case 8: return r->runs;
      case 9: return r->majors;
      case 10: return r->immediate;
      case 11: return r->cause;
      case 12: return r->major_cause;
      case 13: return r->allocated;
      default: return r->living;
    }
}
enum { COLUMNS = 15 };

static void
write_end(bool last)
{
    if (last) {
        if (table.run.pauses) add(&table.pending, &table.run);
        if (table.pending.pauses) publish(&table.pending); /* a full table is halved at once, so there is room */
        table.run = table.pending = (row){0};
    }
    uint32_t count = atomic_load_explicit(&table.count, memory_order_acquire);
    if (count == table.written) return;
    pw_buffer payload = {0}, column = {0};
    pw_buffer_int(&payload, table.level);
    pw_buffer_int(&payload, table.written);
    pw_buffer_int(&payload, count - table.written);
    for (int c = 0; c < COLUMNS; c++) {
        for (uint32_t i = table.written; i < count; i++) pw_buffer_int(&column, value(at(i), c));
        pw_buffer_column(&payload, &column);
        pw_buffer_clear(&column);
    }
    pw_writer_chunk(&pw_out.writer, "GCEV", payload.data, payload.size);
    pw_buffer_free(&column);
    pw_buffer_free(&payload);
    table.written = count;
}

const pw_module pw_gc_log = {.forget = forget, .write_end = write_end};
