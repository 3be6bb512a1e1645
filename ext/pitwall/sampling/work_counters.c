#include "sampling/work_counters.h"
#include "output/output.h"
#include "vm/vm_stat.h"
#include <stdlib.h>
#include <string.h>

/* Slots for pieces of work that run at once. Further ones are not counted. */
enum { SLOTS = 64, DEPTH_BITS = 16, MARK_COLUMNS = 4, SUM_COLUMNS = 4 };

/* begun: how many pieces of work had begun before, without nested ones. */
typedef struct { bool used, alone; uint32_t begun; uint64_t values[PW_WORK_COUNTERS]; } slot;
/* A piece of work that has begun: the object that Native.count_work gives. Only the frame that runs the work has the
 * object. So the object is collected if the work never ends, because its fiber was not resumed.
 * at: its slot, or SLOTS. nested: the fiber runs other work already, whose increase includes this one's. */
typedef struct { uint32_t generation; int at; bool nested, open; } work;
/* Work that ended under one set of labels. counted: pieces that ran alone, so that their increase is known. */
typedef struct { uint64_t counted, increase[PW_WORK_COUNTERS]; bool changed; } sum;

static struct {
    bool looked;
    int count; /* counters that this Ruby has */
    VALUE names[PW_WORK_COUNTERS]; /* Symbols */
    const char *texts[PW_WORK_COUNTERS]; /* the names: the drain may not ask Ruby, it is no thread of a Ractor */
    slot slots[SLOTS];
    uint32_t generation, open, begun; /* open, begun: pieces of work, without nested ones */
    VALUE work_class;
    ID depth; /* fiber-local variable: generation, and pieces of work that the fiber runs */
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

/* Gives the slot back. Called during garbage collection for work that did not end. */
static void
close_work(work *w)
{
    if (!w->open || w->generation != state.generation) return;
    w->open = false;
    if (!w->nested) state.open--;
    if (w->at < SLOTS) state.slots[w->at].used = false;
}

static void
work_free(void *data)
{
    close_work(data);
    xfree(data);
}

static size_t work_size(const void *data) { return sizeof(work); }

static const rb_data_type_t work_type = {"Pitwall/counted work", {NULL, work_free, work_size}, NULL, NULL,
                                         RUBY_TYPED_FREE_IMMEDIATELY};

/* Pieces of work that the running fiber has begun in this recording. */
static uint32_t
depth(VALUE thread)
{
    VALUE value = rb_thread_local_aref(thread, state.depth);
    if (!RB_FIXNUM_P(value) || (uint64_t)FIX2LONG(value) >> DEPTH_BITS != state.generation) return 0;
    return (uint32_t)FIX2LONG(value) & ((1u << DEPTH_BITS) - 1);
}

static void
set_depth(VALUE thread, uint32_t depth)
{
    if (rb_obj_frozen_p(thread) || depth >> DEPTH_BITS) return;
    rb_thread_local_aset(thread, state.depth, ULL2NUM((uint64_t)state.generation << DEPTH_BITS | depth));
}

/* count_work() -> the argument for `mark`: a piece of work begins in the running fiber. */
static VALUE
native_count_work(VALUE self)
{
    if (!state.count) return Qnil;
    work *w;
    VALUE object = TypedData_Make_Struct(state.work_class, work, &work_type, w), thread = rb_thread_current();
    uint32_t outer = depth(thread);
    set_depth(thread, outer + 1);
    *w = (work){.generation = state.generation, .nested = outer > 0, .open = true};
    if (!w->nested) state.open++, state.begun++;
    while (w->at < SLOTS && state.slots[w->at].used) w->at++;
    if (w->at == SLOTS) return object;
    slot *s = &state.slots[w->at];
    *s = (slot){.used = true, .alone = state.open == 1, .begun = state.begun};
    for (int i = 0; i < state.count; i++) s->values[i] = pw_vm_stat(state.names[i]);
    return object;
}

pw_work_increase
pw_work_counters_end(VALUE object)
{
    pw_work_increase increase = {.known = false};
    work *w = rb_typeddata_is_kind_of(object, &work_type) ? RTYPEDDATA_DATA(object) : NULL;
    if (!w || !w->open || w->generation != state.generation) return increase;
    slot *s = w->at < SLOTS ? &state.slots[w->at] : NULL;
    increase.known = s && s->alone && s->begun == state.begun;
    for (int i = 0; increase.known && i < state.count; i++) {
        uint64_t now = pw_vm_stat(state.names[i]);
        increase.increase[i] = now > s->values[i] ? (uint32_t)(now - s->values[i]) : 0;
    }
    close_work(w);
    VALUE thread = rb_thread_current();
    uint32_t inside = depth(thread);
    if (inside) set_depth(thread, inside - 1);
    RB_GC_GUARD(object);
    return increase;
}

void
pw_work_counters_init(VALUE native)
{
    state.depth = rb_intern("__pitwall_counted");
    state.work_class = rb_define_class_under(native, "CountedWork", rb_cObject);
    rb_undef_alloc_func(state.work_class);
    rb_gc_register_mark_object(state.work_class);
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
