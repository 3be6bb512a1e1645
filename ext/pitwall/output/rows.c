#include "output/rows.h"
#include "output/chunks.h"
#include "output/output.h"
#include "vm/reader_lock.h"
#include <stdlib.h>

enum { ROWS = 16384 };

struct row { uint64_t wall, cpu; uint32_t thread, node, captures, label; uint8_t state; };

static struct {
    struct row *rows;
    uint32_t count;
    bool labels; /* rows have a column of labels */
} table;

bool
pw_rows_init(void)
{
    table.rows = malloc(ROWS * sizeof(*table.rows));
    table.count = 0;
    table.labels = false;
    return table.rows != NULL;
}

void
pw_rows_free(void)
{
    free(table.rows);
    table.rows = NULL;
}

void pw_rows_with_labels(void) { table.labels = true; }

void
pw_rows_reintern(pw_thread *t, const pw_intern *before)
{
    uint32_t parent = 0;
    for (uint32_t i = 0; i < t->drain.depth; i++) {
        pw_path_entry *e = &t->drain.path[i];
        parent = e->node = pw_intern_node(&pw_out.tables, parent, e->frame, pw_intern_owner(before, e->frame), e->line);
    }
}

void
pw_take_stack(pw_thread *t, const pw_sample *s)
{
    const VALUE *owners = s->frames + s->fresh;
    const int *lines = (const int *)(owners + s->owned);
    uint32_t depth = s->common < t->drain.depth ? s->common : t->drain.depth;
    uint32_t parent = depth ? t->drain.path[depth - 1].node : 0;
    for (uint32_t i = s->fresh; i-- > 0;) {
        pw_path_entry *e = &t->drain.path[depth++];
        e->frame = s->frames[i];
        e->line = lines[i] > 0 ? (uint32_t)lines[i] : 0;
        VALUE owner = s->owned ? owners[i] : 0;
        parent = e->node = pw_intern_node(&pw_out.tables, parent, e->frame, owner, e->line);
        if (owner) pw_intern_tell_owner(&pw_out.tables, e->frame, owner); /* the node may have existed already */
    }
    t->drain.depth = depth;
    t->drain.stack_nodes[++t->drain.stack_serial % PW_KEPT_STACKS] = depth ? t->drain.path[depth - 1].node : 0;
}

uint32_t
pw_node_of(const pw_thread *t)
{
    return t->drain.depth ? t->drain.path[t->drain.depth - 1].node : 0;
}

/* Without thread events only the next row shows that a stack waits: the same stack again, with hardly any CPU. Then the
 * CPU of the first row is moved to the next row at another stack (see pw_cpu_to_charge). With the outside ticker an
 * unchanged stack gives no row until it changes. So `extend` in outside_ticker.c charges the stack once at once, to
 * give the second row. */
static uint64_t
settle_cpu(pw_thread *t, struct row *before, uint32_t node, uint64_t wall, uint64_t cpu)
{
    bool same = before && before->node == node;
    if (same && before->captures == 1 && cpu * 5 < wall && before->cpu * 20 < before->wall * 19) {
        t->drain.cpu_due_units += before->cpu;
        before->cpu = 0;
    }
    if (same) return cpu;
    cpu += t->drain.cpu_due_units;
    t->drain.cpu_due_units = 0;
    return cpu;
}

bool
pw_add_row(pw_thread *t, uint32_t node, uint8_t state, uint32_t captures, int64_t wall, int64_t cpu)
{
    /* The clocks are rounded, not their differences, so that rounding errors do not add up. */
    if (!pw_samples()) return false;
    int64_t wall_units = wall / pw_current.unit_ns, cpu_units = cpu / pw_current.unit_ns;
    uint64_t dw = wall_units > t->drain.row_wall ? (uint64_t)(wall_units - t->drain.row_wall) : 0;
    uint64_t dc = cpu_units > t->drain.row_cpu ? (uint64_t)(cpu_units - t->drain.row_cpu) : 0;
    if (!dw && !dc && !captures) return false; /* a stack taken in advance */
    if (wall_units > t->drain.row_wall) t->drain.row_wall = wall_units;
    if (cpu_units > t->drain.row_cpu) t->drain.row_cpu = cpu_units;
    struct row *before = t->drain.last_row ? &table.rows[t->drain.last_row - 1] : NULL;
    if (state == PW_UNKNOWN) dc = settle_cpu(t, before, node, dw, dc);
    if (before && state != PW_RUNNING && before->node == node && before->state == state &&
        before->label == t->drain.row_label && dc * 4 < dw) {
        /* the same wait continues: extend its row */
        before->wall += dw, before->cpu += dc, before->captures += captures;
        return false;
    }
    table.rows[table.count] = (struct row){dw, dc, t->id, node, captures, t->drain.row_label, state};
    t->drain.last_row = ++table.count;
    return table.count == ROWS;
}

/* A run column: (value, how many rows) pairs. */
static void
run_column(pw_buffer *payload, uint32_t (*value)(const struct row *))
{
    pw_buffer runs = {0};
    for (uint32_t i = 0; i < table.count;) {
        uint32_t from = i, v = value(&table.rows[i]);
        while (i < table.count && value(&table.rows[i]) == v) i++;
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
    for (uint32_t i = 0; i < table.count; i++) pw_buffer_int(&ints, value(&table.rows[i]));
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

void
pw_rows_write(void)
{
    if (!table.count) return;
    pw_buffer payload = {0};
    pw_buffer_int(&payload, table.count);
    run_column(&payload, row_thread);
    run_column(&payload, row_state);
    column(&payload, row_node);
    column(&payload, row_wall);
    column(&payload, row_cpu);
    run_column(&payload, row_captures);
    if (table.labels) run_column(&payload, row_label);
    table.count = 0;
    for (pw_thread *t = pw_current.threads; t; t = t->next) t->drain.last_row = 0;
    pw_chunks_put("SAMP", &payload);
}

enum { OPEN_COLUMNS = 6 };

/* Writes one row of OPEN if there is wall time. Returns the number of rows written. */
static uint32_t
open_row(pw_buffer *columns, const pw_thread *t, int state, uint32_t node, int64_t wall, int64_t cpu)
{
    if (wall <= 0) return 0;
    uint64_t values[OPEN_COLUMNS] = {t->id, (uint64_t)state, node, (uint64_t)wall, (uint64_t)cpu, t->drain.row_label};
    pw_buffer_row(columns, values, OPEN_COLUMNS);
    return 1;
}

/* For a thread that waits for the GVL: how long the thread was blocked before this wait, in units. Counted from the
 * thread's last row, because earlier time is in that row. */
static int64_t
blocked_units(const pw_thread *t)
{
    int64_t from = atomic_load(&t->own.suspended_at) / pw_current.unit_ns;
    int64_t to = atomic_load(&t->own.ready_at) / pw_current.unit_ns;
    if (from < t->drain.row_wall) from = t->drain.row_wall;
    return to > from ? to - from : 0;
}

void
pw_rows_write_open(void)
{
    if (!pw_samples()) return;
    pw_buffer columns[OPEN_COLUMNS] = {{0}};
    int64_t now = pw_now_ns();
    uint32_t n = 0;
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (t->sample.finished) continue;
        int state = atomic_load(&t->own.state);
        int64_t wall = now / pw_current.unit_ns - t->drain.row_wall;
        pw_reader_lock();
        int64_t cpu_now = pw_thread_cpu_now(t);
        pw_reader_unlock();
        int64_t cpu = cpu_now < 0 ? 0 : cpu_now / pw_current.unit_ns - t->drain.row_cpu;
        if (wall <= 0) continue;
        if (cpu < 0) cpu = 0;
        cpu += (int64_t)t->drain.cpu_due_units;
        uint32_t node = pw_node_of(t);
        if (!t->sample.any) {
            node = pw_intern_node(&pw_out.tables, 0, PW_FRAME_NOT_SAMPLED, 0, 0);
        }
        int64_t blocked = state == PW_WAITING ? blocked_units(t) : 0;
        if (blocked > wall) blocked = wall;
        /* If there are two rows, the first one gets CPU time up to its wall time, the second one the rest. */
        int64_t of_blocked = cpu < blocked || blocked == wall ? cpu : blocked;
        n += open_row(columns, t, PW_BLOCKED, node, blocked, of_blocked);
        n += open_row(columns, t, state, node, wall - blocked, cpu - of_blocked);
    }
    pw_chunks_write_nodes(); /* "(not sampled)" may be new */
    pw_writer_table(&pw_out.writer, "OPEN", 1, (uint64_t[]){n}, table.labels ? OPEN_COLUMNS : OPEN_COLUMNS - 1,
                    columns);
    pw_buffers_free(columns, OPEN_COLUMNS);
}
