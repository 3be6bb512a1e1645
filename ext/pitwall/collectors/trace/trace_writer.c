#include "collectors/trace/trace_writer.h"
#include "output/output.h"
#include <stdio.h>
#undef snprintf /* Ruby's snprintf may allocate objects, and the drain has no GVL */

enum { COLUMNS = 9, ROWS_A_CHUNK = 1 << 16 };

static void
number_node(pw_call_tree *tree, pw_call_node *node, void *data)
{
    (void)tree;
    bool all = data != NULL;
    if (node->id || (!node->parent && !node->wall && !node->wait && !node->objects)) return;
    VALUE frame = node->parent ? node->key->frame : PW_FRAME_NOT_TRACED, owner = node->parent ? node->key->owner : 0;
    uint32_t parent = node->parent && node->parent->parent ? node->parent->id : 0;
    if (node->parent && node->parent->parent && !parent) return;
    /* Number no node while the tables are full. Their content must be named before they are emptied. */
    if (!all && pw_intern_full(&pw_out.tables)) return;
    node->id = pw_intern_new_node(&pw_out.tables, parent, frame, owner, 0);
}

void
pw_trace_number(pw_call_tree *tree)
{
    pw_call_nodes_each(tree, number_node, tree);
}

typedef struct {
    const pw_trace_facts *facts;
    pw_buffer columns[COLUMNS];
    uint32_t rows;
    bool skipped; /* a node has no number yet */
    double tick_ns;
} sheet;

static void
write_sheet(sheet *s)
{
    if (!s->rows) return;
    pw_writer_table(&pw_out.writer, "CALL", 1, (uint64_t[]){s->rows}, COLUMNS, s->columns);
    s->rows = 0;
}

static uint64_t
seen(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void
give_outside(pw_call_tree *tree, pw_call_node *node, void *data)
{
    (void)tree;
    const sheet *s = data;
    node->outside = 0;
    if (!node->parent || node->key->kind >= PW_CALL_KINDS) return;
    node->parent->outside += (uint64_t)((double)seen(&node->calls) * s->facts->probes[node->key->kind].outside);
}

static void
write_node(pw_call_tree *tree, pw_call_node *node, void *data)
{
    sheet *s = data;
    uint64_t calls = seen(&node->calls), hidden = seen(&node->hidden), wall = seen(&node->wall),
                     wait = seen(&node->wait);
    uint64_t objects = seen(&node->objects), bytes = seen(&node->bytes);
    int64_t off = (int64_t)seen((uint64_t *)&node->off);
    number_node(tree, node, NULL);
    if (!node->id) {
        s->skipped |= node->parent != NULL;
        return;
    }
    uint64_t print = pw_fingerprint((uint64_t[]){calls, hidden, wall, wait, objects, bytes, (uint64_t)off}, 7);
    if (print == node->written) return;
    node->written = print;
    double probes = (double)node->outside, cpu = (double)wall - (double)off;
    if (node->parent && node->key->kind < PW_CALL_KINDS) {
        probes += (double)calls * s->facts->probes[node->key->kind].inside;
    }
    /* Filtered calls are mostly C functions or small methods, so use the mean cost of the probes. */
    for (int i = 0; i < PW_CALL_KINDS; i++) {
        probes += (double)hidden * (s->facts->probes[i].inside + s->facts->probes[i].outside) / PW_CALL_KINDS;
    }
    if (cpu < 0 || !s->facts->cpu) cpu = 0;
    uint64_t values[COLUMNS] = {
        tree->thread_id, node->id, calls, (uint64_t)((double)wall * s->tick_ns), (uint64_t)((double)wait * s->tick_ns),
        (uint64_t)(cpu * s->tick_ns), (uint64_t)(probes * s->tick_ns), objects, bytes};
    pw_buffer_row(s->columns, values, COLUMNS);
    if (++s->rows == ROWS_A_CHUNK) write_sheet(s);
}

static void
write_tree(pw_call_tree *tree, void *data)
{
    sheet *s = data;
    bool ended = __atomic_load_n(&tree->ended, __ATOMIC_ACQUIRE); /* read before the nodes are read */
    s->skipped = false;
    pw_call_nodes_each(tree, give_outside, data);
    pw_call_nodes_each(tree, write_node, data);
    tree->settled = ended && !s->skipped;
}

static void
write_summary(const sheet *s)
{
    char json[1024];
    long long tenths[PW_CALL_KINDS][3]; /* tenths of ns; not %f, because its decimal point depends on the locale */
    for (int i = 0; i < PW_CALL_KINDS; i++) {
        const double ticks[] = {s->facts->probes[i].inside, s->facts->probes[i].outside, s->facts->probes[i].error};
        for (int j = 0; j < 3; j++) tenths[i][j] = (long long)(ticks[j] * s->tick_ns * 10 + 0.5);
    }
#define TENTHS(i, j) tenths[i][j] / 10, tenths[i][j] % 10
#define TRIPLE "[%lld.%lld,%lld.%lld,%lld.%lld]"
    int n = snprintf(json, sizeof json,
        "{\"clock\":\"%s\",\"tick_fs\":%lld,\"cpu\":%s,\"objects\":%s,\"bytes\":%s,\"nodes\":%u,\"max_nodes\":%u,\"lost_calls\":%llu,"
        "\"gc\":\"%s\",\"gc_over_memory\":%llu,"
        "\"probe_ns\":{\"ruby\":" TRIPLE ",\"block\":" TRIPLE ",\"c\":" TRIPLE "}}",
        s->facts->clock->counter ? "tsc" : "monotonic", (long long)(s->tick_ns * 1e6),
            s->facts->cpu ? "true" : "false", s->facts->objects ? "true" : "false", s->facts->bytes ? "true" : "false",
        pw_call_nodes(), pw_call_rules_now.max_nodes, (unsigned long long)pw_call_lost(),
        s->facts->gc, (unsigned long long)s->facts->gc_over,
        TENTHS(0, 0), TENTHS(0, 1), TENTHS(0, 2), TENTHS(1, 0), TENTHS(1, 1), TENTHS(1, 2), TENTHS(2, 0), TENTHS(2, 1),
            TENTHS(2, 2));
#undef TENTHS
#undef TRIPLE
    if (n > 0 && (size_t)n < sizeof json) pw_writer_chunk(&pw_out.writer, "TRAC", json, (size_t)n);
}

/* Writes the calls. The drain writes the stack nodes that the calls refer to right afterwards. */
void
pw_trace_write(const pw_trace_facts *facts)
{
    sheet s = {.facts = facts, .tick_ns = pw_tick_clock_tick_ns(facts->clock)};
    pw_call_trees_each(write_tree, &s);
    write_sheet(&s);
    pw_buffers_free(s.columns, COLUMNS);
    write_summary(&s);
    pw_call_trees_sweep();
}

