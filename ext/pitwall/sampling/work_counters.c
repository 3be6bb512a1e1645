#include "sampling/work_counters.h"
#include "output/output.h"
#include "vm/vm_stat.h"
#include <stdlib.h>
#include <string.h>

/* Slots for pieces of work that run at once. Further ones are not counted. */
enum { SLOTS = 64, SLOT_BITS = 7, MARK_COLUMNS = 4, SUM_COLUMNS = 4 };

/* nested: the fiber runs other work already, whose increase includes this one's.
 * begun: how many pieces of work had begun before, without nested ones. */
typedef struct { VALUE fiber; bool used, nested, alone; uint32_t begun; uint64_t values[PW_WORK_COUNTERS]; } slot;
/* Work that ended under one set of labels. counted: pieces that ran alone, so that their increase is known. */
typedef struct { uint64_t counted, increase[PW_WORK_COUNTERS]; bool changed; } sum;

static struct {
    bool looked;
    int count; /* counters that this Ruby has */
    VALUE names[PW_WORK_COUNTERS]; /* Symbols */
    const char *texts[PW_WORK_COUNTERS]; /* the names: the drain may not ask Ruby, it is no thread of a Ractor */
    slot slots[SLOTS];
    uint32_t generation, open, begun; /* open, begun: pieces of work, without nested ones */
} state;

static struct {
    sum *sums; /* by label */
    uint32_t room, rows, name_ids[PW_WORK_COUNTERS];
    pw_buffer marks[MARK_COLUMNS];
} written;

/* ---- the counters ---- */

static int
add_name(VALUE name, VALUE value, VALUE unused)
{
    if (state.count < PW_WORK_COUNTERS && RB_SYMBOL_P(name) && RB_INTEGER_TYPE_P(value)) {
        state.texts[state.count] = strdup(rb_id2name(SYM2ID(name)));
        state.names[state.count++] = ID2SYM(SYM2ID(name)); /* never collected */
    }
    return ST_CONTINUE;
}

static VALUE
look(VALUE unused)
{
    if (pw_vm_stat_find()) rb_hash_foreach(pw_vm_stat_all(), add_name, Qnil);
    return Qnil;
}

void
pw_work_counters_reset(void)
{
    if (!state.looked) {
        int error = 0;
        VALUE saved = rb_errinfo();
        state.looked = true;
        rb_protect(look, Qnil, &error);
        if (error) rb_set_errinfo(saved);
    }
    state.generation++;
    state.open = state.begun = 0;
    memset(state.slots, 0, sizeof state.slots);
}

static bool
is_nested(VALUE fiber)
{
    for (int i = 0; i < SLOTS; i++) {
        if (state.slots[i].used && state.slots[i].fiber == fiber) return true;
    }
    return false;
}

/* count_work() -> the argument for `mark`: a piece of work begins in the running fiber. */
static VALUE
native_count_work(VALUE self)
{
    if (!state.count) return Qnil;
    VALUE fiber = rb_fiber_current();
    bool nested = is_nested(fiber);
    if (!nested) state.open++, state.begun++;
    int at = 0;
    while (at < SLOTS && state.slots[at].used) at++;
    if (at < SLOTS) {
        slot *s = &state.slots[at];
        *s = (slot){.fiber = fiber, .used = true, .nested = nested, .alone = state.open == 1, .begun = state.begun};
        for (int i = 0; i < state.count; i++) s->values[i] = pw_vm_stat(state.names[i]);
    }
    else if (nested) return Qnil;
    return ULL2NUM((uint64_t)state.generation << SLOT_BITS | (uint64_t)at);
}

pw_work_increase
pw_work_counters_end(VALUE token)
{
    pw_work_increase increase = {.known = false};
    if (!RB_FIXNUM_P(token) || (uint64_t)FIX2LONG(token) >> SLOT_BITS != state.generation) return increase;
    int at = (int)(FIX2LONG(token) & ((1 << SLOT_BITS) - 1));
    slot *s = at < SLOTS ? &state.slots[at] : NULL;
    if (!s || !s->nested) state.open--;
    if (!s) return increase;
    increase.known = s->alone && s->begun == state.begun;
    for (int i = 0; increase.known && i < state.count; i++) {
        uint64_t now = pw_vm_stat(state.names[i]);
        increase.increase[i] = now > s->values[i] ? (uint32_t)(now - s->values[i]) : 0;
    }
    s->used = false;
    return increase;
}

void
pw_work_counters_init(VALUE native)
{
    rb_define_singleton_method(native, "count_work", native_count_work, 0);
}

/* ---- in the drain ---- */

void *
pw_label_table(void *table, uint32_t *room, size_t size, uint32_t label)
{
    if (label < *room) return table;
    uint32_t wanted = *room ? *room : 64;
    while (wanted <= label) wanted *= 2;
    char *larger = realloc(table, wanted * size);
    if (!larger) {
        pw_noted(NULL);
        return table;
    }
    memset(larger + *room * size, 0, (wanted - *room) * size);
    *room = wanted;
    return larger;
}

/* Names are interned before the rows that have them are written. */
static void
intern_names(void)
{
    for (int i = 0; i < state.count && !written.name_ids[i]; i++) {
        const char *name = state.texts[i] ? state.texts[i] : "";
        written.name_ids[i] = pw_intern_string(&pw_out.tables, name, strlen(name));
    }
}

void
pw_work_counters_add(uint32_t label, const pw_work_increase *increase)
{
    if (!increase->known) return;
    intern_names();
    written.sums = pw_label_table(written.sums, &written.room, sizeof(sum), label);
    if (label >= written.room) return;
    sum *s = &written.sums[label];
    s->counted++;
    for (int i = 0; i < state.count; i++) s->increase[i] += increase->increase[i];
    s->changed = true;
}

void
pw_work_counters_mark(uint32_t thread, int64_t end, const pw_work_increase *increase)
{
    for (int i = 0; increase->known && i < state.count; i++, written.rows++) {
        uint64_t values[MARK_COLUMNS] = {thread, (uint64_t)end, written.name_ids[i], increase->increase[i]};
        pw_buffer_row(written.marks, values, MARK_COLUMNS);
    }
}

void
pw_work_counters_write(void)
{
    if (written.rows) {
        pw_writer_table(&pw_out.writer, "CMRK", 1, (uint64_t[]){written.rows}, MARK_COLUMNS, written.marks);
    }
    written.rows = 0;
    pw_buffer columns[SUM_COLUMNS] = {{0}};
    uint32_t rows = 0;
    for (uint32_t label = 0; label < written.room; label++) {
        sum *s = &written.sums[label];
        for (int i = 0; s->changed && i < state.count; i++, rows++) {
            uint64_t values[SUM_COLUMNS] = {label, written.name_ids[i], s->counted, s->increase[i]};
            pw_buffer_row(columns, values, SUM_COLUMNS);
        }
        s->changed = false;
    }
    if (rows) pw_writer_table(&pw_out.writer, "CWRK", 1, (uint64_t[]){rows}, SUM_COLUMNS, columns);
    pw_buffers_free(columns, SUM_COLUMNS);
}

void
pw_work_counters_forget(bool frees)
{
    if (frees) {
        free(written.sums);
        pw_buffers_free(written.marks, MARK_COLUMNS);
    }
    memset(&written, 0, sizeof written);
}
