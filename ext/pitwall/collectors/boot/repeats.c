#include "collectors/boot/repeats.h"
#include "collectors/boot/load_callers.h"
#include "collectors/boot/loads.h"
#include "output/drain.h"
#include "output/output.h"
#include "output/record_kinds.h"
#include "session/modules.h"
#include "tools/fnv.h"
#include <string.h>

enum { ROWS_A_CHUNK = 1 << 12, SLOTS = 1 << 12, TEXTS = 2 };
enum { AROUND, KIND, NAME, FROM, LINE, COLUMNS };

/* No padding: a request is hashed byte by byte. */
typedef struct {
    uint64_t around;
    int kind, line;
    uint32_t sizes[TEXTS]; /* bytes of name and from */
} request;

typedef struct {
    pw_record_header header;
    request asked;
    char text[]; /* name, then from */
} repeat_row;

static struct {
    /* Hashes of rows that were written. Such a row is not written again, so a loop does not fill the recording. If two
     * rows share a slot, the slot has the later row's hash, and the earlier row may be written again. needs GVL */
    uint64_t seen[SLOTS];
    pw_buffer columns[COLUMNS];
    uint32_t rows;
} state;

static bool
is_new(const request *asked, const char *const *texts)
{
    uint64_t hash = pw_fnv(PW_FNV_START, asked, sizeof *asked);
    for (int i = 0; i < TEXTS; i++) hash = pw_fnv(hash, texts[i], asked->sizes[i]);
    uint64_t *slot = &state.seen[(hash ^ hash >> 32) % SLOTS];
    if (*slot == hash) return false;
    *slot = hash;
    return true;
}

static void
on_repeated(uint64_t around, int kind, VALUE name)
{
    if (!RB_TYPE_P(name, T_STRING)) return;
    request asked = {.around = around, .kind = kind};
    VALUE from = pw_load_asked_by(&asked.line);
    VALUE strings[TEXTS] = {name, from};
    const char *texts[TEXTS];
    uint32_t bytes = sizeof(repeat_row);
    for (int i = 0; i < TEXTS; i++) {
        texts[i] = RB_TYPE_P(strings[i], T_STRING) ? RSTRING_PTR(strings[i]) : "";
        bytes += asked.sizes[i] = pw_loads_text_size(strings[i]);
    }
    if (!is_new(&asked, texts)) return;
    repeat_row *row = pw_loads_reserve(bytes);
    if (!row) return; /* the ring is full: loads are lost, too, and those are counted */
    row->header.kind = PW_REC_REPEAT;
    row->asked = asked;
    char *to = row->text;
    for (int i = 0; i < TEXTS; to += asked.sizes[i++]) memcpy(to, texts[i], asked.sizes[i]);
    pw_ring_commit(&row->header, bytes);
    RB_GC_GUARD(from);
}

/* ---- in the drain ---- */

/* holds session lock */
static bool
take(const pw_record_header *record)
{
    const repeat_row *row = (const repeat_row *)record;
    const request *asked = &row->asked;
    uint64_t values[COLUMNS] = {
        [AROUND] = asked->around, [KIND] = pw_loads_kind_id(asked->kind), [LINE] = (uint64_t)asked->line,
        [NAME] = pw_intern_string(&pw_out.tables, row->text, asked->sizes[0]),
        [FROM] = pw_intern_string(&pw_out.tables, row->text + asked->sizes[0], asked->sizes[1])};
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
