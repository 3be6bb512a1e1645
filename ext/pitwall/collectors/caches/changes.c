#include "collectors/caches/changes.h"
#include "output/drain.h"
#include "output/output.h"
#include "sampling/capture.h"
#include "sampling/registry.h"
#include "sampling/works.h"
#include "session/modules.h"
#include "vm/reader_lock.h"
#include "vm/vm_layout.h"
#include <limits.h>
#include <stdio.h>
#include <time.h>
#undef snprintf /* Ruby's snprintf may allocate objects, and the drain has no GVL */

enum { ROWS_A_CHUNK = 1 << 14, PAUSE_NS = 200000, PAUSES = 5000, OTHERS = 24, OTHER_NAME = 48 };
#define NO_STACK UINT32_MAX
#define MISSES_NAME "constant_cache_misses"
enum { THREAD, AT, KIND, NODE, SUBJECT, BEGUN, ENDED, COUNTED, LABEL = COUNTED + PW_VM_COUNTERS, MISSES, COLUMNS };

static const char *const kinds[PW_CHANGES] = {
#define PW_CHANGE_NAME(constant, name) name,
    PW_CHANGE_KINDS(PW_CHANGE_NAME)
#undef PW_CHANGE_NAME
};

static struct {
    _Atomic bool active;
    _Atomic uint64_t lost;       /* changes without room in the ring or of threads not recorded, and unwatched hooks */
    char home[PATH_MAX];         /* Pitwall's own folder; "": not known */
    _Atomic uint64_t own[PW_VM_COUNTERS]; /* increase through Pitwall's own code */
    uint64_t from[PW_VM_COUNTERS];
    _Atomic uint64_t now[PW_VM_COUNTERS];
    uint64_t misses_from;
    _Atomic uint64_t misses_now;
    struct { char name[OTHER_NAME]; uint64_t from, to; } others[OTHERS];
    int other_count;
    pw_buffer columns[COLUMNS];
    uint32_t rows, kind_ids[PW_CHANGES];
} state;

void pw_change_lost(void) { atomic_fetch_add(&state.lost, 1); }

bool
pw_changes_wanted(void)
{
    return atomic_load_explicit(&state.active, memory_order_relaxed) && !pw_own_work;
}

/* The drain does not need the GVL, so waiting for room with the GVL does not block the drain. */
static pw_change_row *
room(uint32_t bytes)
{
    for (int i = 0; i < PAUSES; i++) {
        pw_change_row *row = (pw_change_row *)pw_ring_reserve(&pw_out.ring, bytes);
        if (row) return row;
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    }
    return NULL;
}

__thread pw_stack_top pw_change_top __attribute__((tls_model("initial-exec")));

/* Takes the stack from the frame pw_change_top on. For this the top frame is changed for a moment. Nobody else reads
 * the stack then: this thread has the GVL and, in mode outside, the reader's lock. Its signal handler sees `busy`. */
static bool
take_stack(pw_thread *t)
{
    pw_stack_top top = pw_change_top;
    if (!top.ec) return pw_capture_stack(t);
    VALUE *context = (VALUE *)top.ec, *frame = (VALUE *)top.cfp, before = context[PW_EC_CFP], at = frame[PW_CFP_PC];
    bool outside = pw_current.ticker && pw_current.ticker->from_outside;
    if (outside) pw_reader_lock();
    context[PW_EC_CFP] = (VALUE)top.cfp;
    if (top.pc) frame[PW_CFP_PC] = top.pc;
    bool taken = pw_capture_stack(t);
    frame[PW_CFP_PC] = at;
    context[PW_EC_CFP] = before;
    if (outside) pw_reader_unlock();
    return taken;
}

static uint32_t
stack_of(pw_thread *t)
{
    t->own.busy = 1;
    bool taken = take_stack(t);
    for (int i = 0; i < PAUSES && !taken; i++) {
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        taken = take_stack(t);
    }
    t->own.busy = 0;
    return taken ? t->sample.serial : NO_STACK;
}

/* Is the innermost Ruby code a file of Pitwall? */
static bool
is_own(void)
{
    const char *file = state.home[0] ? rb_sourcefile() : NULL;
    return file && strncmp(file, state.home, strlen(state.home)) == 0;
}

void
pw_change_note(int change, const pw_subject *subject, const uint64_t increase[PW_VM_COUNTERS])
{
    for (int i = 0; i < PW_VM_COUNTERS; i++) {
        atomic_store_explicit(&state.now[i], atomic_load(&pw_vm_counters[i].seen), memory_order_relaxed);
    }
    uint64_t misses = pw_vm_misses();
    atomic_store_explicit(&state.misses_now, misses, memory_order_relaxed);
    if (is_own()) {
        for (int i = 0; i < PW_VM_COUNTERS; i++) atomic_fetch_add(&state.own[i], increase[i]);
        return;
    }
    pw_thread *t = pw_registered_self();
    if (!t || t->sample.finished || t->own.busy) {
        atomic_fetch_add(&state.lost, 1);
        return;
    }
    uint32_t serial = stack_of(t), bytes = (uint32_t)(sizeof(pw_change_row) + subject->size);
    pw_change_row *row = room(bytes);
    if (!row) {
        atomic_fetch_add(&state.lost, 1);
        return;
    }
    row->header.kind = PW_REC_CHANGE;
    row->thread = t;
    row->at = pw_now_ns();
    row->serial = serial;
    row->change = (uint16_t)change;
    row->subject_size = (uint16_t)subject->size;
    row->begun = atomic_load_explicit(&pw_works.begun, memory_order_relaxed);
    row->ended = atomic_load_explicit(&pw_works.ended, memory_order_relaxed);
    row->label = atomic_load_explicit(&t->own.label, memory_order_relaxed);
    row->misses = misses > state.misses_from ? misses - state.misses_from : 0;
    memcpy(row->increase, increase, sizeof row->increase);
    memcpy(row->subject, subject->text, subject->size);
    pw_ring_commit(&row->header, bytes);
}

/* ---- in the drain ---- */

static uint32_t
kind_id(int change)
{
    if (!state.kind_ids[change]) {
        state.kind_ids[change] = pw_intern_string(&pw_out.tables, kinds[change], strlen(kinds[change]));
    }
    return state.kind_ids[change];
}

/* holds session lock */
static bool
take(const pw_record_header *record)
{
    const pw_change_row *row = (const pw_change_row *)record;
    const pw_thread *t = row->thread;
    bool kept = row->serial != NO_STACK && t->drain.stack_serial - row->serial < PW_KEPT_STACKS;
    uint64_t values[COLUMNS] = {
        t->id, row->at > pw_current.origin ? (uint64_t)(row->at - pw_current.origin) : 0, kind_id(row->change),
        kept ? t->drain.stack_nodes[row->serial % PW_KEPT_STACKS] : 0,
        pw_intern_string(&pw_out.tables, row->subject, row->subject_size), row->begun, row->ended};
    for (int i = 0; i < PW_VM_COUNTERS; i++) values[COUNTED + i] = row->increase[i];
    values[LABEL] = row->label;
    values[MISSES] = row->misses;
    pw_buffer_row(state.columns, values, COLUMNS);
    return ++state.rows >= ROWS_A_CHUNK;
}

void
pw_changes_write_rows(void)
{
    if (!state.rows) return;
    pw_writer_table(&pw_out.writer, "CHNG", 1, (uint64_t[]){state.rows}, COLUMNS, state.columns);
    state.rows = 0;
}

static bool
is_written(const char *name)
{
    for (int i = 0; i < PW_VM_COUNTERS; i++) {
        if (pw_vm_counters[i].name && strcmp(pw_vm_counters[i].name, name) == 0) return true;
    }
    return pw_vm_misses_known() && strcmp(name, MISSES_NAME) == 0;
}

void
pw_changes_others(VALUE list, bool last)
{
    if (!last) state.other_count = 0;
    for (long i = 0; RB_TYPE_P(list, T_ARRAY) && i + 1 < RARRAY_LEN(list); i += 2) {
        VALUE name = rb_ary_entry(list, i), value = rb_ary_entry(list, i + 1);
        if (!RB_TYPE_P(name, T_STRING) || !RB_FIXNUM_P(value) || RSTRING_LEN(name) >= OTHER_NAME) continue;
        char text[OTHER_NAME];
        snprintf(text, sizeof text, "%.*s", (int)RSTRING_LEN(name), RSTRING_PTR(name));
        int at = 0;
        while (at < state.other_count && strcmp(state.others[at].name, text) != 0) at++;
        if (at == state.other_count && (last || at == OTHERS || is_written(text))) continue;
        if (!last) {
            state.other_count++;
            memcpy(state.others[at].name, text, sizeof text);
            state.others[at].from = (uint64_t)FIX2LONG(value);
        }
        state.others[at].to = (uint64_t)FIX2LONG(value);
    }
    RB_GC_GUARD(list);
}

void
pw_changes_write_sums(const char *watched, uint32_t rests)
{
    char json[4096];
    int n = snprintf(json, sizeof json, "{\"counters\":{");
    bool first = true;
    for (int i = 0; i < PW_VM_COUNTERS; i++) {
        if (!pw_vm_counters[i].name) continue;
        n += snprintf(json + n, sizeof json - (size_t)n, "%s\"%s\":[%llu,%llu,%llu]", first ? "" : ",",
                      pw_vm_counters[i].name, (unsigned long long)state.from[i],
                      (unsigned long long)atomic_load(&state.now[i]), (unsigned long long)atomic_load(&state.own[i]));
        first = false;
    }
    if (pw_vm_misses_known()) {
        n += snprintf(json + n, sizeof json - (size_t)n, "%s\"%s\":[%llu,%llu,0]", first ? "" : ",", MISSES_NAME,
                      (unsigned long long)state.misses_from, (unsigned long long)atomic_load(&state.misses_now));
        first = false;
    }
    for (int i = 0; i < state.other_count; i++, first = false) {
        n += snprintf(json + n, sizeof json - (size_t)n, "%s\"%s\":[%llu,%llu,0]", first ? "" : ",",
                      state.others[i].name, (unsigned long long)state.others[i].from, (unsigned long long)state.others[i].to);
    }
    n += snprintf(json + n, sizeof json - (size_t)n,
                  "},\"watched\":\"%s\",\"rests\":%u,\"begun\":%u,\"ended\":%u,\"lost\":%llu}", watched, rests,
                  atomic_load(&pw_works.begun), atomic_load(&pw_works.ended),
                  (unsigned long long)atomic_load(&state.lost));
    if (n > 0 && (size_t)n < sizeof json) pw_writer_chunk(&pw_out.writer, "CHSM", json, (size_t)n);
}

/* ---- start and stop ---- */

void
pw_changes_init(void)
{
    pw_drain_take(PW_REC_CHANGE, take);
}

void
pw_changes_begin(const char *home)
{
    uint64_t increase[PW_VM_COUNTERS];
    atomic_store(&state.lost, 0);
    snprintf(state.home, sizeof state.home, "%s", home);
    for (int i = 0; i < PW_VM_COUNTERS; i++) atomic_store(&state.own[i], 0);
    pw_vm_counters_claim(increase);
    for (int i = 0; i < PW_VM_COUNTERS; i++) {
        state.from[i] = atomic_load(&pw_vm_counters[i].seen);
        atomic_store(&state.now[i], state.from[i]);
    }
    state.misses_from = pw_vm_misses();
    atomic_store(&state.misses_now, state.misses_from);
    atomic_store(&state.active, true);
}

void
pw_changes_end(void)
{
    if (!atomic_exchange(&state.active, false)) return;
    for (int i = 0; i < PW_VM_COUNTERS; i++) atomic_store(&state.now[i], pw_vm_counter_read(&pw_vm_counters[i]));
    atomic_store(&state.misses_now, pw_vm_misses());
}

void
pw_changes_forget(bool frees)
{
    atomic_store(&state.active, false);
    if (frees) pw_buffers_free(state.columns, COLUMNS);
    for (int i = 0; i < COLUMNS; i++) state.columns[i] = (pw_buffer){0};
    state.rows = 0;
    memset(state.kind_ids, 0, sizeof state.kind_ids);
}
