#include "collectors/boot/repeats.h"
#include "collectors/boot/load_callers.h"
#include "collectors/boot/loads.h"
#include "output/drain.h"
#include "output/output.h"
#include "output/record_kinds.h"
#include "session/modules.h"
#include <string.h>

enum { ROWS_A_CHUNK = 1 << 12, LONGEST = 4096, SLOTS = 1 << 12, TEXTS = 2 };
enum { AROUND, KIND, NAME, FROM, LINE, COLUMNS };

typedef struct {
    pw_record_header header;
    uint32_t sizes[TEXTS]; /* bytes of name and from, which follow one another in `text` */
    int kind, line;
    uint64_t around;
    char text[];
} repeat_row;

static struct {
    /* Hashes of rows that were written, so that a loop does not fill the recording. A row that lost its slot to another
     * is written again. needs GVL */
    uint64_t seen[SLOTS];
    pw_buffer columns[COLUMNS];
    uint32_t rows;
} state;

static uint32_t
size_of(VALUE text)
{
    if (!RB_TYPE_P(text, T_STRING)) return 0;
    return RSTRING_LEN(text) > LONGEST ? LONGEST : (uint32_t)RSTRING_LEN(text);
}

/* FNV-1a (Fowler, Noll, Vo), 64 bits. */
static uint64_t
hashed(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * 0x100000001b3ULL;
    return hash;
}

static bool
is_new(const repeat_row *row, const char *const *texts)
{
    uint64_t numbers[] = {row->around, (uint64_t)row->kind, (uint64_t)row->line};
    uint64_t hash = hashed(0xcbf29ce484222325ULL, numbers, sizeof numbers);
    for (int i = 0; i < TEXTS; i++) hash = hashed(hash, texts[i], row->sizes[i]);
    uint64_t *slot = &state.seen[(hash ^ hash >> 32) % SLOTS];
    if (*slot == hash) return false;
    *slot = hash;
    return true;
}

/* The caller's line asked for `name`. */
static void
on_repeated(uint64_t around, int kind, VALUE name)
{
    if (!RB_TYPE_P(name, T_STRING)) return;
    repeat_row found = {.kind = kind, .around = around};
    VALUE from = pw_load_asked_by(&found.line);
    VALUE strings[TEXTS] = {name, from};
    const char *texts[TEXTS];
    uint32_t bytes = sizeof found;
    for (int i = 0; i < TEXTS; i++) {
        texts[i] = RB_TYPE_P(strings[i], T_STRING) ? RSTRING_PTR(strings[i]) : "";
        bytes += found.sizes[i] = size_of(strings[i]);
    }
    if (!is_new(&found, texts)) return;
    repeat_row *row = pw_loads_reserve(bytes);
    if (!row) return; /* then loads are lost, too, and counted */
    row->header.kind = PW_REC_REPEAT;
    row->kind = kind;
    row->line = found.line;
    row->around = around;
    memcpy(row->sizes, found.sizes, sizeof row->sizes);
    char *to = row->text;
    for (int i = 0; i < TEXTS; to += found.sizes[i++]) memcpy(to, texts[i], found.sizes[i]);
    pw_ring_commit(&row->header, bytes);
    RB_GC_GUARD(from);
}

/* ---- in the drain ---- */

/* holds session lock */
static bool
take(const pw_record_header *record)
{
    const repeat_row *row = (const repeat_row *)record;
    const char *from = row->text + row->sizes[0];
    uint64_t values[COLUMNS] = {
        [AROUND] = row->around, [KIND] = pw_loads_kind_id(row->kind),
        [NAME] = pw_intern_string(&pw_out.tables, row->text, row->sizes[0]),
        [FROM] = pw_intern_string(&pw_out.tables, from, row->sizes[1]), [LINE] = (uint64_t)row->line};
    pw_buffer_row(state.columns, values, COLUMNS);
    return ++state.rows >= ROWS_A_CHUNK;
}

void
pw_repeats_write_rows(void)
{
    if (!state.rows) return;
    pw_writer_table(&pw_out.writer, "AGIN", 1, (uint64_t[]){state.rows}, COLUMNS, state.columns);
    state.rows = 0;
}

/* ---- start and stop ---- */

void
pw_repeats_init(void)
{
    pw_drain_take(PW_REC_REPEAT, take);
    pw_loads_repeated = on_repeated;
}

void pw_repeats_start(void) { memset(state.seen, 0, sizeof state.seen); }

void
pw_repeats_forget(bool frees)
{
    if (frees) pw_buffers_free(state.columns, COLUMNS);
    for (int i = 0; i < COLUMNS; i++) state.columns[i] = (pw_buffer){0};
    state.rows = 0;
}
