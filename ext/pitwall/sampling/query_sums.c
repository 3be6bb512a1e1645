#include "sampling/query_sums.h"
#include "output/output.h"
#include "session/counters.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_SUMS = 65536 };

typedef struct { uint32_t label, query, most; uint64_t works, count, ns; bool changed; } sum;

static struct {
    sum *rows;
    uint32_t count, room;
    uint32_t *index; /* row number + 1, by hash; 0: empty */
    uint32_t slots;
} sums;

static sum *
find_sum(uint32_t label, uint32_t query)
{
    uint32_t mask = sums.slots - 1, i = (uint32_t)pw_query_hash(label, query) & mask;
    for (; sums.slots && sums.index[i]; i = (i + 1) & mask) {
        sum *row = &sums.rows[sums.index[i] - 1];
        if (row->label == label && row->query == query) return row;
    }
    return NULL;
}

static void
enter_index(uint32_t row)
{
    uint32_t mask = sums.slots - 1, i = (uint32_t)pw_query_hash(sums.rows[row].label, sums.rows[row].query) & mask;
    while (sums.index[i]) i = (i + 1) & mask;
    sums.index[i] = row + 1;
}

static bool
room_for_sum(void)
{
    if (sums.count < sums.room) return true;
    uint32_t room = sums.room ? sums.room * 2 : 64;
    sum *rows = pw_noted(realloc(sums.rows, room * sizeof(sum)));
    if (!rows) return false;
    sums.rows = rows;
    uint32_t *index = pw_noted(calloc(room * 2, sizeof(uint32_t)));
    if (!index) return false;
    free(sums.index);
    sums.index = index;
    sums.slots = room * 2;
    sums.room = room;
    for (uint32_t i = 0; i < sums.count; i++) enter_index(i);
    return true;
}

static sum *
sum_of(uint32_t label, uint32_t query)
{
    sum *row = find_sum(label, query);
    if (row) return row;
    if (sums.count >= MOST_SUMS || !room_for_sum()) return NULL;
    row = &sums.rows[sums.count++];
    *row = (sum){.label = label, .query = query};
    enter_index(sums.count - 1);
    return row;
}

void
pw_query_sums_add(uint32_t label, const pw_query_part *parts, uint32_t count, bool of_work)
{
    for (uint32_t i = 0; i < count; i++) {
        sum *row = sum_of(label, parts[i].query);
        if (!row) {
            pw_count(PW_QUERIES_LEFT_OUT, parts[i].count);
            continue;
        }
        row->works += of_work;
        row->count += parts[i].count;
        row->ns += parts[i].ns;
        if (of_work && parts[i].count > row->most) row->most = parts[i].count;
        row->changed = true;
    }
}

void
pw_query_sums_write(void)
{
    pw_buffer columns[6] = {{0}};
    uint32_t rows = 0;
    for (uint32_t i = 0; i < sums.count; i++) {
        sum *row = &sums.rows[i];
        if (!row->changed) continue;
        uint64_t values[6] = {row->label, row->query, row->works, row->count, row->ns, row->most};
        pw_buffer_row(columns, values, 6);
        row->changed = false;
        rows++;
    }
    if (rows) pw_writer_table(&pw_out.writer, "QSUM", 1, (uint64_t[]){rows}, 6, columns);
    pw_buffers_free(columns, 6);
}

void
pw_query_sums_forget(bool frees)
{
    if (frees) {
        free(sums.rows);
        free(sums.index);
    }
    memset(&sums, 0, sizeof sums);
}
